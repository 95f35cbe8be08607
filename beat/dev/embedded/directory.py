"""Manage the directory of a private Redis: its socket, its log, and the lock that admits one server at a time."""

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

_LONGEST_SOCKET = 103  # bytes; Linux allows 107, but a URL should work on every platform
_PRIVATE = 0o700
_PATIENCE = 1.0


class Answer(Enum):
    """The answer of a server to PING."""

    NONE = "none"
    LOADING = "loading"
    YES = "yes"


class Place:
    """The directory with the data of one private Redis. Creating a `Place` touches no file.

    The server process itself holds the lock while it lives, even if it hangs or its parent is killed, so no second
    server writes to its data. The lock file names the server that holds the lock.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.log = self.directory / "redis.log"
        self.socket = self.directory / "redis.sock"
        self._lock = self.directory / "lock"
        self._elsewhere: Path | None = None
        if len(os.fsencode(self.socket)) > _LONGEST_SOCKET:
            # The name depends only on the directory, so URLs stay valid and old directories do not pile up.
            name = f"beat-{os.getuid()}-{hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:12]}"
            self._elsewhere = _short_temporary() / name
            self.socket = self._elsewhere / "redis.sock"

    @property
    def url(self) -> str:
        """Return the URL for clients."""
        return f"unix://{quote(os.fsencode(self.socket))}?db=0"

    def prepare(self) -> None:
        """Create the directories for this user alone. Raise NoRedis if that is not possible."""
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
        """Take the lock and yield its file descriptor, or None if another process holds the lock.

        A process that inherits the descriptor holds the lock until it ends.
        """
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
        """Write the server that holds the lock, and its process id, into the lock file."""
        text = json.dumps({"pid": pid, "path": str(server.path), "name": server.name, "version": server.version})
        os.truncate(lock, 0)
        os.pwrite(lock, text.encode(), 0)

    def noted(self) -> tuple[Server, int] | None:
        """Return the server that holds the lock and its process id, or None if the lock file does not name them."""
        try:
            note = json.loads(self._lock.read_bytes())
            return Server(Path(note["path"]), note["name"], note["version"]), int(note["pid"])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def ping(self) -> Answer:
        """Send PING to the socket. An error reply, such as a demand for a password, counts as an answer."""
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
        """Return the last lines of the server's log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if line.strip()][-most:] or ["(it wrote nothing)"]

    def clear(self) -> None:
        """Remove the socket of a server that has ended. Only the holder of the lock may call this."""
        self.socket.unlink(missing_ok=True)
        if self._elsewhere:
            with contextlib.suppress(OSError):
                self._elsewhere.rmdir()


def _short_temporary() -> Path:
    usual = tempfile.gettempdir()
    return Path(usual if len(os.fsencode(usual)) < _LONGEST_SOCKET // 2 else "/tmp")  # noqa: S108 (0700 and checked)
