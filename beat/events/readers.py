"""Read pages of the event stream, alone with a position of one's own, or in a group whose position Redis stores.

Each item of a page is settled after it has been processed, one by one and in order.
"""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from beat.events.event import Missed, Notice
from beat.events.start import NEWEST
from beat.storage.event_stream import START, order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beat.storage.event_stream import Entry, Handed, Outbox, Stream

PAGE = 100
"""How many events are read at once."""


def _nothing() -> None:
    """Do nothing; the default for an item that needs no settling."""


class Took(NamedTuple):
    """The next item of a reader, and how to settle it once it has been processed."""

    value: Notice | Missed | None
    """None for an entry that is not an event."""
    settle: Callable[[], None] = _nothing
    id: str = ""
    """The id of an event that a group was handed, for readers that acknowledge many at once."""


class Alone:
    """A reader with a position of its own; `resumed` says that it has read all events up to `start`."""

    def __init__(self, outbox: Outbox, start: Callable[[Outbox], str], *, resumed: bool) -> None:
        self._outbox, self._start, self._resumed = outbox, start, resumed
        self._at = ""
        self._read: int | None = None  # how many events the stream had had up to that position; None until known

    @property
    def fresh(self) -> bool:
        """Return True, because no other reader shares the events."""
        return True

    def wait(self, ms: int) -> None:
        """Wait for a new event, at most this many milliseconds."""
        self._outbox.wait(self._at or START, ms)

    def look(self) -> list[Took]:
        """Return the next items; empty if there are none yet."""
        at = self._at = self._at or self._begin()
        stream, entries = self._outbox.look(at, PAGE)
        if self._is_another(at, stream):
            self._at, self._read, self._resumed = START, None, False
            return [Took(Missed(None, at, stream.first))]
        missed = self._missed(at, stream) if order(at) < order(stream.first) else None
        if entries:
            self._at, self._resumed = entries[-1].id, True
        if self._at == stream.newest:
            self._read = stream.added
        elif self._read is not None:
            self._read += len(entries)
        notices = [Took(Notice.read(each.id, each.fields or {})) for each in entries]
        return [Took(missed), *notices] if missed else notices

    def _begin(self) -> str:
        start = self._start(self._outbox)
        if self._resumed:
            return start
        newest = self._outbox.look(NEWEST, 1)[0].newest
        return newest if start == NEWEST else min(start, newest, key=order)

    def _is_another(self, at: str, stream: Stream) -> bool:
        """Return whether the stream started over or lost its newest events. Then all events may be new."""
        trimmed = order(at) < order(stream.first)
        return order(at) > order(stream.newest) or (trimmed and self._read is not None and stream.gone < self._read)

    def _missed(self, at: str, stream: Stream) -> Missed | None:
        """Return the events after `at` that are gone; None if none are, or if the reader is new."""
        count = stream.gone - self._read if self._read is not None else None if self._resumed else 0
        self._read = stream.gone
        return None if count == 0 else Missed(count, at, stream.first)


class Member:
    """A consumer of a group; `start` is where the group begins if it does not exist.

    With a `token`, it gets events only while the lock of the event stream holds that token.
    """

    def __init__(
        self,
        outbox: Outbox,
        start: Callable[[Outbox], str],
        *,
        group: str,
        consumer: str,
        idle: timedelta,
        token: str = "",
    ) -> None:
        self._outbox, self._begin, self._token = outbox, start, token
        self._group, self._consumer, self._idle = group, consumer, idle
        self._start = self._known = self._told = ""
        self._mine = True
        self._taken_at = 0.0

    @property
    def fresh(self) -> bool:
        """Return whether the last page is still ours; after `idle`, another consumer may take it over."""
        return time.monotonic() - self._taken_at < self._idle.total_seconds() / 2

    def wait(self, ms: int) -> None:
        """Wait for a new event, at most this many milliseconds."""
        self._outbox.wait(self._known or START, ms)

    def look(self) -> list[Took]:
        """Return the next items; empty if there are none yet, or if another consumer holds the lock."""
        self._start = self._start or self._begin(self._outbox)
        # If the reply is lost or the page is left half processed, its unacknowledged events are asked for again.
        mine, self._mine, self._taken_at = self._mine or not self.fresh, True, time.monotonic()
        handed = self._outbox.take(
            group=self._group,
            consumer=self._consumer,
            count=PAGE,
            start=self._start,
            known=self._known,
            told=self._told,
            mine="yes" if mine else "no",
            idle=self._idle // timedelta(milliseconds=1),
            token=self._token,
        )
        if handed.code == "FENCED":
            return []
        if handed.code == "LOST":
            return [Took(Missed(None, self._known, ""), partial(self._begin_anew, handed.stands))]
        self._mine, self._known, self._told = mine and handed.code != "NEW", handed.stands, ""
        if handed.code == "MISSED":
            missed = Missed(handed.missed, handed.stands, handed.first)
            return [Took(missed, partial(self._was_told, handed.gone))]
        return list(self._notices(handed))

    def _notices(self, handed: Handed) -> Iterator[Took]:
        for gone, entries in groupby(handed.entries, lambda each: each.fields is None):
            if gone:
                ids = [each.id for each in entries]
                yield Took(Missed(len(ids), ids[-1], ""), partial(self._outbox.acknowledge, self._group, ids))
            else:
                yield from map(self._notice, entries)

    def _notice(self, entry: Entry) -> Took:
        settle = partial(self._outbox.acknowledge, self._group, [entry.id])
        return Took(Notice.read(entry.id, entry.fields or {}), settle, entry.id)

    def _was_told(self, gone: int) -> None:
        self._told = str(gone)

    def _begin_anew(self, newest: str) -> None:
        """Start the group after the last event that it had, or at the beginning if the ids have started over."""
        self._start = self._known if order(self._known) <= order(newest) else START
        self._known = ""
