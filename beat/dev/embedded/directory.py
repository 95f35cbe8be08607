"""Where a private Redis lives: its directory, its socket, and the lock that lets one server in at a time."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import socket
import stat
import tempfile
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from beat.dev.embedded.binaries import Server
from beat.errors import NoRedis

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_SOCKET = 103  # bytes; 107 on Linux, but a URL should serve everywhere
_PRIVATE = 0o700
_PATIENCE = 1.0


class Answer(Enum):
    """What a server says to PING."""

    NONE = "none"
    LOADING = "loading"
    YES = "yes"


class Place:
    """A directory with the data of one private Redis. Making one touches nothing.

    The server itself holds the lock as long as it lives, so that no second one writes to its data, however it ended,
    or if it hangs. The lock's file says who holds it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.log = self.directory / "redis.log"
        self.socket = self.directory / "redis.sock"
        self._lock = self.directory / "lock"
        self._elsewhere: Path | None = None
        if len(os.fsencode(self.socket)) > _LONGEST_SOCKET:
            # Always the same name for the same directory: URLs stay good, and nothing piles up.
            name = f"beat-{os.getuid()}-{hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:12]}"
            self._elsewhere = _short_temporary() / name
            self.socket = self._elsewhere / "redis.sock"

    @property
    def url(self) -> str:
        """What clients connect to."""
        return f"unix://{quote(os.fsencode(self.socket))}?db=0"

    def prepare(self) -> None:
        """Makes the directories, for nobody but this user."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self.directory.chmod(_PRIVATE)
            self.directory.joinpath(".gitignore").write_text("*\n", encoding="ascii")
        except OSError as e:
            raise NoRedis(f"no private Redis can keep its data in {self.directory}: {e.strerror}") from e
        if self._elsewhere:
            with contextlib.suppress(FileExistsError):
                self._elsewhere.mkdir(_PRIVATE)
            found = self._elsewhere.lstat()
            if (found.st_mode, found.st_uid) != (stat.S_IFDIR | _PRIVATE, os.getuid()):
                raise NoRedis(f"{self._elsewhere} was made by somebody else: remove it, for the socket of a Redis")

    @contextlib.contextmanager
    def locked(self) -> Iterator[int | None]:
        """The lock as a file descriptor, or None if somebody has it. Whoever inherits the descriptor has the lock."""
        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
            else:
                os.truncate(lock, 0)
                yield lock
        finally:
            os.close(lock)

    def note(self, lock: int, server: Server, pid: int) -> None:
        """Says who holds the lock."""
        text = json.dumps({"pid": pid, "path": str(server.path), "name": server.name, "version": server.version})
        os.truncate(lock, 0)
        os.pwrite(lock, text.encode(), 0)

    def noted(self) -> tuple[Server, int] | None:
        """Who holds the lock; None while nobody does, and while that is being written."""
        try:
            note = json.loads(self._lock.read_bytes())
            return Server(Path(note["path"]), note["name"], note["version"]), int(note["pid"])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def ping(self) -> Answer:
        """Asks the server, whoever it is. One that wants a password has answered."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_PATIENCE)
            try:
                connection.connect(os.fsencode(self.socket))
                connection.sendall(b"PING\r\n")
                said = connection.recv(64)
            except OSError:
                return Answer.NONE
        if said.startswith(b"-LOADING"):
            return Answer.LOADING
        return Answer.YES if said.startswith((b"+", b"-")) else Answer.NONE

    def last_words(self, most: int = 5) -> list[str]:
        """The end of what the server wrote."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if line.strip()][-most:] or ["(it wrote nothing)"]

    def clear(self) -> None:
        """Takes away what a server that is gone leaves outside the directory. Only for the holder of the lock."""
        self.socket.unlink(missing_ok=True)
        if self._elsewhere:
            with contextlib.suppress(OSError):
                self._elsewhere.rmdir()


def _short_temporary() -> Path:
    usual = tempfile.gettempdir()
    return Path(usual if len(os.fsencode(usual)) < _LONGEST_SOCKET // 2 else "/tmp")  # noqa: S108 (0700 and checked)
