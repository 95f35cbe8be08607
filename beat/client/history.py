"""Histories, newest first, read no further than anybody asks: of one schedule, or of all of them put together.

A run stands where it was enqueued. What is known of its end lies further up in the ledger, so that it is known by then.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from beat.errors import BadOption, did_you_mean
from beat.history import ledger
from beat.history.history import OPEN, WAITING, Action, Change, Fired, Part, Passed, Waits, assemble, job_of, together
from beat.storage.store import pages
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from beat.client.reader import Archive, Progress
    from beat.history.history import Line

SKIPPED = "skipped"
_ON_ITS_WAY = ("queued", "started", "scheduled", "deferred")
WORDS = (*ledger.OUTCOMES, OPEN, SKIPPED, WAITING)
"""What a history can be asked for."""
_COUNTERS = {
    "succeeded": "success_count",
    "failed": "failure_count",
    "lost": "failure_count",
    "stopped": "stopped_count",
    SKIPPED: "skip_count",
    OPEN: "run_count",
    WAITING: "run_count",  # for a run that was there before it
}


@dataclass(frozen=True)
class Wanted:
    """Which lines somebody wants to see."""

    since: datetime | None = None
    """The last word on them is no older than this."""
    until: datetime | None = None
    """They were written before this."""
    outcomes: frozenset[str] = frozenset()
    """Some of WORDS; nothing for all lines, changes too."""

    def takes(self, line: Line) -> bool:
        """Whether it is one of them."""
        if self.since and _last_word(line) < self.since:
            return False
        if self.until and line.at >= self.until:
            return False
        return not self.outcomes or _word(line) in self.outcomes

    @property
    def counters(self) -> tuple[str, ...]:
        """The counters of a schedule that has such lines: one of them is not 0."""
        return tuple(sorted({_COUNTERS[each] for each in self.outcomes}))


def outcomes(given: str | Collection[str] | None) -> frozenset[str]:
    """The words that were asked for; refuses what is none."""
    several = isinstance(given, Collection) and not isinstance(given, str)
    asked: list[Any] = [] if given is None else list(given) if several else [given]
    for each in asked:
        if each not in WORDS:
            raise BadOption(f"outcome {each!r:.60} must be one of {', '.join(WORDS)}.{did_you_mean(str(each), WORDS)}")
    return frozenset(asked)


def lines(archive: Archive, schedule_id: str, since: datetime | None = None) -> Iterator[Line]:
    """The lines of one ledger; those whose verdict was trimmed come last. Reads on for what ended after `since`."""
    reader = _Reader(schedule_id)
    for page in archive.pages(schedule_id):
        entries = [entry for entry in map(ledger.read, page) if entry]
        yield from reader.read(entries)
        if since and entries and entries[-1].at < since and reader.newest < since:
            return
    yield from reader.rest()


class _Reader:
    """Puts a ledger together page by page."""

    def __init__(self, schedule_id: str) -> None:
        self._id = schedule_id
        self._ends: dict[
            str, ledger.Outcome | ledger.Reopened
        ] = {}  # what is known of runs whose verdict has not been read yet
        self._held: list[ledger.Entry] = []  # from a verdict on whose tick there may be more to read
        self._decided: set[str | datetime] = set()

    @property
    def newest(self) -> datetime:
        """When the newest entry was written of which no line was made yet."""
        return max((entry.at for entry in (*self._ends.values(), *self._held)), default=clock.EPOCH)

    def read(self, page: list[ledger.Entry]) -> Iterator[Line]:
        """The lines of the next page, as far as it tells all about them: a tick may have waited since its time."""
        entries = [*self._held, *page]
        waits = (n for n, entry in enumerate(entries) if (tick := _decides(entry)) and tick < entries[-1].at)
        ready = next(waits, len(entries))
        self._held = entries[ready:]
        yield from self._told(entries[:ready])

    def rest(self) -> Iterator[Line]:
        """What is left at the end of the ledger."""
        held, self._held = self._held, []
        yield from self._told(held)
        yield from assemble(self._id, self._ends.values())

    def _told(self, entries: list[ledger.Entry]) -> Iterator[Line]:
        entries = [entry for entry in entries if not _is_of(entry, self._decided)]
        decided = {key for entry in entries for key in _verdict(entry)}
        waited = [entry for entry in self._held if _is_of(entry, decided)]
        for line in assemble(self._id, [*self._ends.values(), *entries, *waited]):
            if not isinstance(line, Fired) or (line.enqueued_at and line.job_id not in self._decided):
                yield line
        self._decided |= decided
        for entry in entries:
            if isinstance(entry, ledger.Outcome | ledger.Reopened):
                self._ends.setdefault(entry.job, entry)
        self._ends = {job: entry for job, entry in self._ends.items() if job_of(entry) not in self._decided}


def _decides(entry: ledger.Entry) -> datetime | None:
    """The tick about which it is a verdict."""
    asked = isinstance(entry, ledger.Enqueued) and entry.by in ledger.ASKED  # which nobody waited for
    return entry.tick if isinstance(entry, ledger.Enqueued | ledger.Skipped) and not asked else None


def _verdict(entry: ledger.Entry) -> Iterator[str | datetime]:
    """By what others may know the tick on which it is a verdict."""
    if isinstance(entry, ledger.Enqueued):
        yield entry.job
    elif isinstance(entry, ledger.Skipped):
        yield entry.tick


def _is_of(entry: ledger.Entry, decided: Collection[str | datetime]) -> bool:
    """Whether it tells that one of these ticks waited."""
    return isinstance(entry, ledger.Waiting) and (entry.job in decided or entry.tick in decided)


def merged(archive: Archive, ids: Iterable[str], wanted: Wanted) -> Iterator[Line]:
    """The lines of all these ledgers; only those are opened that can have the next one."""
    waiting: list[tuple[float, str, Line | None, Iterator[Line]]] = []
    oldest = -wanted.since.timestamp() if wanted.since else 0
    for page in pages(dict.fromkeys(ids)):
        likely = archive.counted(page, wanted.counters) if wanted.counters else page
        for each, newest in zip(likely, archive.newest(likely), strict=True):
            order = _order(newest)
            if order <= oldest:
                waiting.append((order, each, None, lines(archive, each, wanted.since)))
    heapq.heapify(waiting)
    while waiting:
        order, each, line, rest = heapq.heappop(waiting)
        if line:
            yield line
        following = next(rest, None)
        if following:
            heapq.heappush(waiting, (max(order, -following.at.timestamp()), each, following, rest))


def _order(newest: bytes | None) -> float:
    """No line of a ledger is newer than its newest; one that cannot be read may hide anything."""
    entry = ledger.read(newest) if newest is not None else None
    return -entry.at.timestamp() if entry else math.inf if newest is None else -math.inf


def _last_word(line: Line) -> datetime:
    return line.closed_at or line.at if isinstance(line, Fired) else line.at


def _word(line: Line) -> str:
    match line:
        case Fired():
            return line.state
        case Passed():
            return SKIPPED
        case Waits():
            return WAITING
        case Change() | Action():
            return ""


def moved_on(line: Line, known: Mapping[str, Progress]) -> Line:
    """The same, where RQ says how far a run is that is on its way."""
    if not isinstance(line, Fired):
        return line
    if line.parts:
        own = tuple(_on_its_way(part, known) if part.state == OPEN else part for part in line.parts)
        return together(line, own) if line.state == OPEN else line
    return _on_its_way(line, known)


R = TypeVar("R", Fired, Part)


def _on_its_way(run: R, known: Mapping[str, Progress]) -> R:
    progress = known.get(run.job_id)
    if progress is None or progress.status not in _ON_ITS_WAY:
        return run
    if progress.status != "started":
        return replace(run, state=progress.status)
    return replace(run, state="started", started_at=clock.found(progress.started_at), worker=progress.worker or None)
