"""Connect a client to its installation, and turn Redis errors into one-sentence errors of beat."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Self

from beat.client.reader import Archive
from beat.config import redis_url, settings
from beat.errors import ConfigError, NoRedis
from beat.storage import connection, server_check
from beat.storage.keys import Keys
from beat.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from beat.storage.connection import Redis


class Connected:
    """A connection to one installation, configured by settings."""

    def __init__(self, redis: Redis | str | None = None, **options: Any) -> None:
        self.settings = settings.load(options).settings
        source = redis or self.settings.redis_url
        self._where = redis_url.masked(source) if isinstance(source, str) else "the Redis of that client"
        try:
            client = connection.connect(source)
            if isinstance(source, str):
                client.connection_pool.make_connection()  # opens no connection, but rejects invalid options of the URL
        except (ValueError, TypeError) as e:
            raise ConfigError(f"the Redis URL {self._where} cannot be used: {e}") from e
        self._keys = Keys(self.settings.prefix)
        mine = self.settings  # a change trims the ledger, as a scheduler's decision does
        limits = {"history_limit": mine.history_limit, "events_limit": mine.events_limit}
        self._store, self._archive = Store(client, self._keys, **limits), Archive(client, self._keys)

    @classmethod
    def beside(cls, other: Connected) -> Self:
        """Return a client of this class that shares the settings and the connections of another one."""
        made = cls.__new__(cls)
        for name in ("settings", "_where", "_keys", "_store", "_archive"):
            setattr(made, name, getattr(other, name))
        return made

    def now(self) -> datetime:
        """Return the current time by Redis' clock."""
        with self._asking():
            return self._store.time()

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._store.client.close()

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Raise a one-sentence NoRedis for any Redis error in the block."""
        try:
            yield
        except connection.Errors as e:
            if connection.forbids(e) or isinstance(e, connection.Refused):
                raise server_check.refused(self._store.client, self._where, e) from e
            said = str(e).split("\n")[0].rstrip(". ")
            raise NoRedis(f"no Redis answers at {self._where}: {said}; start one, or set BEAT_REDIS_URL") from e
