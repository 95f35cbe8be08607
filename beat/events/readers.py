"""Where a reader of the outbox stands: alone, in a place of its own, or as one of a group, whose place Redis keeps.

Both are handed pages of what comes next. What is handed out is settled afterwards, piece by piece, in order.
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
"""How many events are taken at once."""


def _nothing() -> None:
    """There is nothing to settle."""


class Took(NamedTuple):
    """What comes next, and what is to be done when it has been dealt with."""

    value: Notice | Missed | None
    """None for what is nobody's business."""
    settle: Callable[[], None] = _nothing
    id: str = ""
    """Of the event that a group was handed: who settles many at once needs it."""


class Alone:
    """A reader that goes on from an id; `resumed` says that it has read up to there."""

    def __init__(self, outbox: Outbox, start: Callable[[Outbox], str], *, resumed: bool) -> None:
        self._outbox, self._start, self._resumed = outbox, start, resumed
        self._at = ""
        self._read: int | None = None  # how many events there had been up to there, as soon as that is known

    @property
    def fresh(self) -> bool:
        """What was taken is ours."""
        return True

    def wait(self, ms: int) -> None:
        """Returns when something has come, or after so long."""
        self._outbox.wait(self._at or START, ms)

    def look(self) -> list[Took]:
        """What comes next; nothing if that has yet to come."""
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
        """It was deleted and has begun anew, or Redis has forgotten its latest: all that is there may be new."""
        trimmed = order(at) < order(stream.first)
        return order(at) > order(stream.newest) or (trimmed and self._read is not None and stream.gone < self._read)

    def _missed(self, at: str, stream: Stream) -> Missed | None:
        """What is gone of that which comes after `at`; a new reader begins with what is there."""
        count = stream.gone - self._read if self._read is not None else None if self._resumed else 0
        self._read = stream.gone
        return None if count == 0 else Missed(count, at, stream.first)


class Member:
    """A consumer of a group; `start` is where the group begins if there is none.

    With a `token`, it is handed something only while the outbox' lock holds that.
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
        """What was taken is ours; after a while, others may take it for left behind."""
        return time.monotonic() - self._taken_at < self._idle.total_seconds() / 2

    def wait(self, ms: int) -> None:
        """Returns when something has come, or after so long."""
        self._outbox.wait(self._known or START, ms)

    def look(self) -> list[Took]:
        """What comes next; nothing if that has yet to come."""
        self._start = self._start or self._begin(self._outbox)
        # Whatever happens to the reply, and whatever was taken and left, is ours to ask for again.
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
        """After the last that it had, or with all there is if the ids have begun anew."""
        self._start = self._known if order(self._known) <= order(newest) else START
        self._known = ""
