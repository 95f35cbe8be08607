"""Read histories, newest first and page by page: of one schedule, or of all schedules merged.

A run stands where it was enqueued. Its outcome is newer, so it has been read by then.
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
"""The outcomes by which a history can be filtered."""
_COUNTERS = {
    "succeeded": "success_count",
    "failed": "failure_count",
    "lost": "failure_count",
    "stopped": "stopped_count",
    SKIPPED: "skip_count",
    OPEN: "run_count",
    WAITING: "run_count",  # for the earlier run that it waits for
}


@dataclass(frozen=True)
class Wanted:
    """A filter for history lines."""

    since: datetime | None = None
    """The earliest time for the last change of a line."""
    until: datetime | None = None
    """The time before which a line was written."""
    outcomes: frozenset[str] = frozenset()
    """Some of WORDS; empty for all lines, including changes."""

    def takes(self, line: Line) -> bool:
        """Return whether the line passes the filter."""
        if self.since and _last_word(line) < self.since:
            return False
        if self.until and line.at >= self.until:
            return False
        return not self.outcomes or _word(line) in self.outcomes

    @property
    def counters(self) -> tuple[str, ...]:
        """Return the counters of which at least one is not 0 if a schedule has such lines."""
        return tuple(sorted({_COUNTERS[each] for each in self.outcomes}))


def outcomes(given: str | Collection[str] | None) -> frozenset[str]:
    """Return the given outcomes as a set; raise BadOption for an unknown one."""
    several = isinstance(given, Collection) and not isinstance(given, str)
    asked: list[Any] = [] if given is None else list(given) if several else [given]
    for each in asked:
        if each not in WORDS:
            raise BadOption(f"outcome {each!r:.60} must be one of {', '.join(WORDS)}.{did_you_mean(str(each), WORDS)}")
    return frozenset(asked)


def lines(archive: Archive, schedule_id: str, since: datetime | None = None) -> Iterator[Line]:
    """Yield the lines of one ledger, newest first; runs whose decision was trimmed come last.

    With `since`, reading stops when neither the lines nor the outcomes that remain can be as new as that.
    """
    reader = _Reader(schedule_id)
    for page in archive.pages(schedule_id):
        entries = [entry for entry in map(ledger.read, page) if entry]
        yield from reader.read(entries)
        if since and entries and entries[-1].at < since and reader.newest < since:
            return
    yield from reader.rest()


class _Reader:
    """A reader that assembles one ledger page by page."""

    def __init__(self, schedule_id: str) -> None:
        self._id = schedule_id
        self._ends: dict[str, ledger.Outcome | ledger.Reopened] = {}  # outcomes whose decision has not been read
        self._held: list[ledger.Entry] = []  # entries from the first decision on whose tick may have older ones
        self._decided: set[str | datetime] = set()

    @property
    def newest(self) -> datetime:
        """Return the time of the newest entry that has not become a line yet."""
        return max((entry.at for entry in (*self._ends.values(), *self._held)), default=clock.EPOCH)

    def read(self, page: list[ledger.Entry]) -> Iterator[Line]:
        """Yield the lines of the next page that are complete.

        A decision is held back until the pages reach its tick, because an older entry may say that the tick waited.
        """
        entries = [*self._held, *page]
        waits = (n for n, entry in enumerate(entries) if (tick := _decides(entry)) and tick < entries[-1].at)
        ready = next(waits, len(entries))
        self._held = entries[ready:]
        yield from self._told(entries[:ready])

    def rest(self) -> Iterator[Line]:
        """Yield the lines that are left at the end of the ledger."""
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
    """Return the tick that the entry decides, if it decides one."""
    asked = isinstance(entry, ledger.Enqueued) and entry.by in ledger.ASKED  # such a run never waits
    return entry.tick if isinstance(entry, ledger.Enqueued | ledger.Skipped) and not asked else None


def _verdict(entry: ledger.Entry) -> Iterator[str | datetime]:
    """Yield the job or the tick by which other entries refer to this decision."""
    if isinstance(entry, ledger.Enqueued):
        yield entry.job
    elif isinstance(entry, ledger.Skipped):
        yield entry.tick


def _is_of(entry: ledger.Entry, decided: Collection[str | datetime]) -> bool:
    """Return whether the entry says that one of these ticks waited."""
    return isinstance(entry, ledger.Waiting) and (entry.job in decided or entry.tick in decided)


def merged(archive: Archive, ids: Iterable[str], wanted: Wanted) -> Iterator[Line]:
    """Yield the lines of all these ledgers, newest first; open a ledger only when it can have the next line."""
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
    """Return the position of a ledger in the merge, by its newest line; no other line of it is newer.

    A newest line that cannot be read comes first, because it may hide anything.
    """
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
    """Return the line with the progress that RQ reports, if its run has not ended."""
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
