"""Start a private Redis for `beat dev` and for tests, on a socket that only this user can open.

The server ends with the process that started it. At most one server at a time uses the data of a directory. The data
stays there for the next server, which answers at the same URL.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from beat.config import sources
from beat.dev.embedded import binaries
from beat.dev.embedded.binaries import Server, candidates
from beat.dev.embedded.child_process import Child
from beat.dev.embedded.directory import Answer, Place
from beat.errors import NoRedis

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DIRECTORY", "PrivateRedis", "Server", "candidates", "running", "start"]

DIRECTORY = Path(".beat/redis")
"""The directory in which a project keeps the data of its private Redis."""
_PATIENCE = 10.0
_PAUSE = 0.002
_REMEDY = "pip install 'rq-beat[server]', or install redis-server 7.0 or newer, or give --redis-url"


class PrivateRedis:
    """A private Redis that answers at `url`.

    `owned` is true if this process started the server. Otherwise `stop` does nothing, and the server ends with the
    process that started it.
    """

    def __init__(self, place: Place, server: Server, pid: int, child: Child | None) -> None:
        self.directory = place.directory
        self.url = place.url
        self.socket = place.socket
        self.server = server
        self.pid = pid
        self.owned = child is not None
        self._place = place
        self._child = child

    def stop(self) -> None:
        """Stop an owned server after it has written everything to disk. A second call does nothing."""
        if not self._child:
            return
        self._child.end(_PATIENCE)
        self._child = None
        with self._place.locked() as lock:
            if lock is not None:  # no other process has started the next server yet
                self._place.clear()

    def kill(self) -> None:
        """Kill an owned server with -9, for tests of crashes. `start` on the same directory still works."""
        if self._child:
            self._child.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<PrivateRedis {self.url} pid={self.pid} {self.server.name} {self.server.version}>"


def start(directory: Path, *, options: Sequence[str] = ()) -> PrivateRedis:
    """Return a private Redis with the data in `directory` once it answers: a new one, or the one that runs already.

    `options` are arguments of a new server and override its defaults, as in `["--maxmemory", "1mb"]`. Make `directory`
    readable by this user alone. Raise NoRedis if no server is installed, or if none starts or answers.
    """
    place = Place(directory)
    place.prepare()
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        with place.locked() as lock:
            if lock is not None:
                return _first_that_answers(place, lock, options)
        noted = place.noted()
        if noted and place.ping() is Answer.YES:
            return PrivateRedis(place, *noted, child=None)
        time.sleep(_PAUSE)
    holder = f" (process {noted[1]})" if noted else ""
    raise NoRedis(f"the Redis of {place.directory}{holder} does not answer: end it, or give --redis-url")


def running(directory: Path | None = None) -> str | None:
    """Return the URL of the private Redis that answers for `directory`, if there is one.

    Without a `directory`, look below the current directory, and then beside the nearest pyproject.toml.
    """
    project = sources.project()
    beside = [Path(project, DIRECTORY)] if project else []
    for place in map(Place, [directory] if directory else [DIRECTORY, *beside]):
        if place.ping() is Answer.YES:
            return place.url
    return None


def _first_that_answers(place: Place, lock: int, options: Sequence[str]) -> PrivateRedis:
    able = candidates()
    if not able:
        old = "".join(f"; {server} is too old" for server in binaries.found())
        raise NoRedis(f"there is no Redis to start{old}: {_REMEDY}")
    said: list[str] = []
    for server in able:
        with place.log.open("wb") as log:
            child = Child(_command(server, place, options), os.environ, output=log.fileno(), kept=lock)
        place.note(lock, server, child.pid)
        try:
            if _answers(child, place):
                return PrivateRedis(place, server, child.pid, child)
        except BaseException:  # Ctrl-C while waiting
            child.kill()
            raise
        child.kill()
        said += [f"{server} said last:", *(f"    {line}" for line in place.last_words())]
    raise NoRedis("\n".join([f"no Redis starts in {place.directory}: give --redis-url, or look at", *said]))


def _answers(child: Child, place: Place) -> bool:
    """Wait for the server and return whether it answers PING. Reset the timeout while the server loads its data."""
    until = time.monotonic() + _PATIENCE
    while child.alive and time.monotonic() < until:
        answer = place.ping()
        if answer is Answer.YES:
            return True
        if answer is Answer.LOADING:
            until = time.monotonic() + _PATIENCE
        time.sleep(_PAUSE)
    return False


def _command(server: Server, place: Place, options: Sequence[str]) -> list[str]:
    given = {
        "port": "0",
        "bind": "127.0.0.1",  # in case `options` set a port
        "unixsocket": str(place.socket),
        "unixsocketperm": "700",
        "dir": str(place.directory),
        "logfile": "",
        "save": "",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
    }
    return [str(server.path), *(part for name, value in given.items() for part in (f"--{name}", value)), *options]
