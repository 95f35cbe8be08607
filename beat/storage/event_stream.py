"""The outbox in Redis: the commands with which its events are read, by one reader alone or by a group.

What is there and what is gone comes in one step, so that nothing can be trimmed unseen in between. Where a reader
stands is for the reader to know; where a group stands, Redis knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beat.errors import NoRedis
from beat.storage import connection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from beat.storage.connection import Redis

START = "0-0"
"""Before the first event."""


class Entry(NamedTuple):
    """One entry of the stream, whoever wrote it."""

    id: str
    fields: Mapping[bytes, bytes] | None
    """None if it is gone: it was handed out, and trimmed before anybody acknowledged it."""


class Stream(NamedTuple):
    """How the stream is at one moment."""

    added: int
    """How many events there have been."""
    gone: int
    """How many of them are no longer there."""
    first: str
    """The oldest that is there; the newest there has been, if none is."""
    newest: str


class Handed(NamedTuple):
    """What a consumer of a group was handed."""

    code: str
    stands: str
    """Where the group stands now; of a group that is lost, where the stream does."""
    entries: tuple[Entry, ...] = ()
    gone: int = 0
    """How many events are no longer there, of all that there have been."""
    missed: int | None = None
    """How many of them the group has not had; None if nobody knows."""
    first: str = ""


class Outbox:
    """The stream of one installation, through one client; `lock` is the key of what fences those who take."""

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
        """What the group has not had, or how much of it is gone; the header of take.lua says what is what."""
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
        """What a consumer was handed and has not acknowledged, after an event; nothing where there is no such group."""
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
        """They need not be handed out again; safe to send again."""
        self._client.xack(self._key, group, *ids)

    def disband(self, group: str) -> None:
        """There is no such group any more, nor what it was handed; without a right to that, it stays where it is."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.xgroup_destroy(self._key, group)
            pipe.execute(raise_on_error=False)

    def look(self, after: str, count: int) -> tuple[Stream, list[Entry]]:
        """How the stream is, and what is there after an event."""
        with self._client.pipeline() as pipe:
            pipe.xinfo_stream(self._key)
            pipe.xread({self._key: after}, count=count)
            about, found = pipe.execute(raise_on_error=False)
        entries = found[0][1] if found and isinstance(found, list) else ()
        return self._stream(about), [Entry(_text(each), fields) for each, fields in entries]

    def wait(self, after: str, ms: int) -> None:
        """Returns when there is something after an event, or after so many milliseconds."""
        self._client.xread({self._key: after}, count=1, block=max(ms, 1))

    def time_ms(self) -> int:
        """Redis' clock, after which events are numbered."""
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
    """By which ids are compared: the time in ms, and a number within it."""
    ms, _, number = event_id.partition("-")
    return int(ms), int(number or 0)


def _entries(found: Iterable[Any]) -> Iterable[Entry]:
    for event_id, flat in found:
        yield Entry(_text(event_id), None if flat is None else dict(zip(flat[::2], flat[1::2], strict=False)))


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
