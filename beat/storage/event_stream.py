"""Read the event stream in Redis, by a single reader or by a consumer group.

The events and the number of trimmed ones are read in one step, so nothing is trimmed unnoticed between two reads. A
single reader keeps its own position; Redis keeps the position of a group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beat.errors import NoRedis
from beat.storage import connection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from beat.storage.connection import Redis

START = "0-0"
"""The id before the first event."""


class Entry(NamedTuple):
    """One entry of the stream, whether beat or another program added it."""

    id: str
    fields: Mapping[bytes, bytes] | None
    """None if the event was delivered, and was trimmed before its acknowledgement."""


class Stream(NamedTuple):
    """The state of the stream at one moment."""

    added: int
    """How many events were ever added."""
    gone: int
    """How many of them were trimmed."""
    first: str
    """The id of the oldest event; of the newest ever, if the stream is empty."""
    newest: str


class Handed(NamedTuple):
    """The reply to a consumer of a group."""

    code: str
    stands: str
    """The position of the group; if the group is lost, that of the stream."""
    entries: tuple[Entry, ...] = ()
    gone: int = 0
    """How many events were trimmed, of all that were ever added."""
    missed: int | None = None
    """How many trimmed events the group has not had; None if unknown."""
    first: str = ""


class Outbox:
    """The event stream of one installation; `lock` is the key of the lock that the group's reader must hold."""

    def __init__(self, client: Redis, key: str, lock: str | None = None) -> None:
        self._client, self._key, self._lock = client, key, lock or key

    def take(
        self,
        *,
        group: str,
        consumer: str,
        count: int,
        start: str,
        known: str,
        told: str,
        mine: str,
        idle: int,
        token: str,
    ) -> Handed:
        """Return events that the group has not had, or how many of them were trimmed.

        The header of take.lua explains the arguments.
        """
        named = {"group": group, "consumer": consumer, "count": count, "start": start, "known": known, "told": told}
        named |= {"mine": mine, "idle": idle, "token": token}
        code, words, *rest = connection.run(self._client, "take", events=self._key, lock=self._lock, **named)
        if code == b"BADTYPE":
            raise NoRedis(f"{_text(words)}: rename it, or delete it")
        handed = Handed(_text(code), _text(words))
        if code == b"MISSED":
            gone, missed, first = rest
            return handed._replace(gone=gone, missed=None if missed < 0 else missed, first=_text(first))
        return handed._replace(entries=tuple(_entries(rest[0] if rest else ())))

    def left(self, *, group: str, consumer: str, after: str, count: int) -> list[Entry]:
        """Return the consumer's unacknowledged events after `after`; empty without such a group."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.xreadgroup(group, consumer, {self._key: after}, count=count)
            [found] = pipe.execute(raise_on_error=False)
        if isinstance(found, Exception):
            if "NOGROUP" in str(found):
                return []
            raise found
        entries = found[0][1] if found else ()
        return [Entry(_text(each), fields or None) for each, fields in entries]

    def acknowledge(self, group: str, ids: Sequence[str]) -> None:
        """Acknowledge events, so that they are not delivered again; safe to repeat."""
        self._client.xack(self._key, group, *ids)

    def disband(self, group: str) -> None:
        """Delete the group and its pending entries; ignore an error, such as a missing permission."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.xgroup_destroy(self._key, group)
            pipe.execute(raise_on_error=False)

    def look(self, after: str, count: int) -> tuple[Stream, list[Entry]]:
        """Return the state of the stream, and at most `count` events after an id."""
        with self._client.pipeline() as pipe:
            pipe.xinfo_stream(self._key)
            pipe.xread({self._key: after}, count=count)
            about, found = pipe.execute(raise_on_error=False)
        entries = found[0][1] if found and isinstance(found, list) else ()
        return self._stream(about), [Entry(_text(each), fields) for each, fields in entries]

    def wait(self, after: str, ms: int) -> None:
        """Block until there is an event after an id, or for `ms` milliseconds."""
        self._client.xread({self._key: after}, count=1, block=max(ms, 1))

    def time_ms(self) -> int:
        """Return the time in ms by Redis' clock, which also numbers the events."""
        seconds, micros = self._client.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def _stream(self, about: Any) -> Stream:
        if not isinstance(about, Exception):
            if "entries-added" not in about:
                raise NoRedis("this Redis does not count the events of a stream: beat needs Redis 7.0")
            newest, first = _text(about["last-generated-id"]), about["first-entry"]
            added = int(about["entries-added"])
            return Stream(added, added - int(about["length"]), _text(first[0]) if first else newest, newest)
        if "no such key" in str(about):
            return Stream(0, 0, START, START)
        if "WRONGTYPE" in str(about):
            raise NoRedis(f"{self._key} is not a stream: rename it, or delete it")
        raise about


def order(event_id: str) -> tuple[int, int]:
    """Return a sort key for event ids: the time in ms, and the number within it."""
    ms, _, number = event_id.partition("-")
    return int(ms), int(number or 0)


def _entries(found: Iterable[Any]) -> Iterable[Entry]:
    for event_id, flat in found:
        yield Entry(_text(event_id), None if flat is None else dict(zip(flat[::2], flat[1::2], strict=False)))


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
