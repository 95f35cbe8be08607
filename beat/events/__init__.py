"""Read and follow the event stream, which holds every decision, outcome and change for other programs.

No reader loses an event silently. A group gets an event again until it is acknowledged, and events that were trimmed
before they could be read become a `Missed`.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from beat.config import redis_url, settings
from beat.errors import BadOption, ConfigError, NoRedis
from beat.events.event import Missed, Notice
from beat.events.readers import Alone, Member
from beat.events.start import duration, place
from beat.storage import connection, server_check
from beat.storage.backoff import Patience, cause
from beat.storage.event_stream import START, Outbox
from beat.storage.keys import Keys

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from beat.events.start import Since
    from beat.storage.connection import Redis

__all__ = ["Missed", "Notice", "read"]

T = TypeVar("T")

_log = logging.getLogger("beat.events")
_WAIT_S = 1.0  # then it looks for events that other consumers left, and for a new stream
_SHORTEST_CLAIM = timedelta(milliseconds=100)


def read(
    *,
    redis: Redis | str | None = None,
    group: str | None = None,
    consumer: str | None = None,
    since: Since = None,
    after: str | None = None,
    follow: bool = True,
    block: timedelta | str | float | None = None,
    claim_after: timedelta | str | float = "1m",
    stopping: threading.Event | None = None,
    **options: Any,
) -> Generator[Notice | Missed, None, None]:
    """Yield the events from `since` on, or after the event with the id `after`, and then new ones as they come.

    `since` is "all" (the default), "now", an age such as "24h", or an instant. Pass either `since` or `after`. Without
    `follow`, reading ends with the newest event. With `block`, it ends when no event has come for that long. It also
    ends soon after `stopping` is set.

    With a `group`, Redis stores the position, and `since` is where a new group begins. The consumers of a group share
    its events. `consumer` is the name of this one, and defaults to the host name. An event is acknowledged when the
    next one is requested. Otherwise it goes to its consumer again when that returns, or to another one after
    `claim_after`.

    `redis` is a URL or a client, and defaults to the URL of the settings; options are settings by name. While Redis is
    unavailable, a reader that follows waits; without `follow`, it raises NoRedis.
    """
    found = settings.load(options).settings
    if isinstance(redis, str) and (wrong := redis_url.problem(redis)):
        raise ConfigError(f"redis {redis_url.masked(redis)} {wrong}")
    start = place(since, after)
    idle = duration(claim_after, "claim_after", _SHORTEST_CLAIM)
    name = _consumer(group, consumer)

    def reader(outbox: Outbox) -> Alone | Member:
        if group is None:
            return Alone(outbox, start, resumed=after not in {None, START})
        return Member(outbox, start, group=group, consumer=name, idle=idle)

    quiet_s = None if block is None else duration(block, "block").total_seconds()
    reading = _Reading(follow=follow, quiet_s=quiet_s, stopping=stopping or threading.Event())
    return reading.run(redis or found.redis_url, Keys(found.prefix).events, reader)


@dataclass(frozen=True)
class _Reading:
    """The loop of a reader: look for events, yield them, acknowledge them, wait."""

    follow: bool
    quiet_s: float | None
    stopping: threading.Event

    def run(
        self, redis: Redis | str, key: str, made: Callable[[Outbox], Alone | Member]
    ) -> Generator[Notice | Missed, None, None]:
        """Yield what the reader that `made` builds takes, and close the connections at the end."""
        client = connection.connect(redis)
        try:
            yield from self._read(client, made(Outbox(client, key)))
        finally:
            client.connection_pool.disconnect()

    def _read(self, client: Redis, reader: Alone | Member) -> Generator[Notice | Missed, None, None]:
        last, wait_s = time.monotonic(), _wait_s(client)
        while not self.stopping.is_set():
            taken = self._until_it_works(client, reader.look)
            for each in taken or ():
                if self.stopping.is_set() or not reader.fresh:
                    break
                if each.value is not None:
                    yield each.value
                self._until_it_works(client, each.settle)
            if taken:
                last = time.monotonic()
                continue
            left = wait_s if self.quiet_s is None else last + self.quiet_s - time.monotonic()
            if not self.follow or left <= 0:
                return
            self._until_it_works(client, partial(reader.wait, int(min(left, wait_s) * 1000)))

    def _until_it_works(self, client: Redis, step: Callable[[], T]) -> T | None:
        """Retry the step while Redis is away, and return its result; None if `stopping` is set first.

        Raises NoRedis if the Redis user lacks a right, or if Redis is away and the reader does not follow.
        """
        patience, away = Patience(), False
        while not (away and self.stopping.is_set()):
            try:
                result = step()
            except connection.Errors as e:
                if connection.forbids(e):
                    raise server_check.may_not(client, "read the outbox", e) from None
                if not self.follow:
                    raise NoRedis(f"the outbox cannot be read: {cause(e)}") from None
                if not away:
                    _log.warning("Redis does not work for us, trying again until it does: %s", cause(e))
                away = True
                patience.wait(self.stopping)
            else:
                if away:
                    _log.warning("Redis works again")
                return result
        return None


def _consumer(group: str | None, consumer: str | None) -> str:
    for name, value in (("group", group), ("consumer", consumer)):
        if value is not None and not (isinstance(value, str) and value):
            raise BadOption(f"{name} must be a name, not {value!r:.60}")
    if consumer is not None and group is None:
        raise BadOption(f"consumer {consumer!r:.60} is of no group: give the group, too")
    return consumer or socket.gethostname()


def _wait_s(client: Redis) -> float:
    """Return how many seconds one wait may last, which is less than the socket timeout."""
    patience = client.connection_pool.connection_kwargs.get("socket_timeout")
    return min(_WAIT_S, float(patience) / 2) if patience else _WAIT_S
