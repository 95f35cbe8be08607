"""A lock in Redis: `SET NX PX` with a token that nobody else has; only its holder extends or releases it.

Losing it is an outcome, not an error: what must not happen twice is guarded where it is written.
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
        """Whether it lasted longer than it may when it was asked for: Redis' clock went back since it was taken."""
        self._client, self._key, self._ttl_ms = client, key, ttl_ms

    def acquire(self) -> bool:
        """Return whether it is ours now; False when somebody has it, be it ourselves."""
        code = self._run("acquire", ttl=self._ttl_ms)
        self.was_cut = self.was_cut or code == b"CUT"
        return code == b"OK"

    def extend(self) -> bool:
        """Whether it is still ours, and lasts its full time again."""
        return self._run("extend", ttl=self._ttl_ms) == b"OK"

    def release(self) -> bool:
        """Whether it was still ours, and is free."""
        return self._run("release") == b"OK"

    def _run(self, name: str, **named: int) -> bytes:
        reply: bytes = connection.run(self._client, name, lock=self._key, token=self.token, **named)
        return reply
