"""Hold a lock in Redis: `SET NX PX` with a random token, so that only its owner extends or releases it.

Losing a lock is an outcome, not an error, because whatever must not happen twice is guarded where it is written.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from beat.storage import connection

if TYPE_CHECKING:
    from beat.storage.connection import Redis


class Lock:
    """One lock, as one process sees it."""

    def __init__(self, client: Redis, key: str, ttl_ms: int) -> None:
        self.token = secrets.token_hex(16)
        self.was_cut = False
        """Whether the lock lasted too long when it was requested, because Redis' clock went back after it was taken."""
        self._client, self._key, self._ttl_ms = client, key, ttl_ms

    def acquire(self) -> bool:
        """Return whether this process now owns the lock; False if it is taken, even by this process."""
        code = self._run("acquire", ttl=self._ttl_ms)
        self.was_cut = self.was_cut or code == b"CUT"
        return code == b"OK"

    def extend(self) -> bool:
        """Return whether this process still owns the lock, which then lasts its full time again."""
        return self._run("extend", ttl=self._ttl_ms) == b"OK"

    def release(self) -> bool:
        """Return whether this process still owned the lock, which then is free."""
        return self._run("release") == b"OK"

    def _run(self, name: str, **named: int) -> bytes:
        reply: bytes = connection.run(self._client, name, lock=self._key, token=self.token, **named)
        return reply
