"""Clients of a real Redis whose scripts go by a clock that is set by hand."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from redis import ConnectionPool

from beat.testing.fake_redis import Clocked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beat.dev.embedded import PrivateRedis
    from beat.testing import ManualClock

    Connect = Callable[[ManualClock], Clocked]


@contextlib.contextmanager
def clients(server: PrivateRedis) -> Iterator[Connect]:
    """Each finds the server empty."""
    with ConnectionPool.from_url(server.url) as pool:

        def connect(clock: ManualClock) -> Clocked:
            client = Clocked(clock, connection_pool=pool)
            client.flushall()
            return client

        yield connect
