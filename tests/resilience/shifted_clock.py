"""A real Redis whose clock a test sets forward and back while it runs."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self
from unittest import mock

from beat.dev import embedded

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis

SOURCE = Path(__file__).with_suffix(".c")
_COMPILERS = ("cc", "gcc", "clang")


def why_not() -> str:
    """Say why no clock can be shifted on this machine; nothing if one can."""
    if sys.platform != "linux":
        return "only Linux preloads a library that shifts the clock of Redis"
    if not any(map(shutil.which, _COMPILERS)):
        return f"no C compiler ({', '.join(_COMPILERS)}) is installed to build {SOURCE.name}"
    return ""


@functools.cache
def library() -> Path:
    """Build the library that shifts the clock; once in a process."""
    directory = tempfile.mkdtemp(prefix="beat-clock-")
    atexit.register(shutil.rmtree, directory)
    built = Path(directory) / "shifted_clock.so"
    compiler = next(filter(None, map(shutil.which, _COMPILERS)))
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", built, SOURCE], check=True)
    return built


class ShiftedRedis:
    """A server in a process of its own, and the clock that it sees."""

    def __init__(self, home: Path, *options: str) -> None:
        home.mkdir(exist_ok=True)
        self._shift = home / "shift"
        self.set(0)
        told = {"LD_PRELOAD": str(library()), "SHIFTED_CLOCK": str(self._shift)}
        with mock.patch.dict(os.environ, told):
            self.server: PrivateRedis = embedded.start(home / "redis", options=options)
        self.url = self.server.url

    def set(self, seconds: float) -> None:
        """Shift the clock so far ahead of the true time, from now on; the file is mapped into the server."""
        with self._shift.open("r+b" if self._shift.exists() else "wb") as file:
            file.write(struct.pack("=q", round(seconds * 1000)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()
