"""Histories, newest first, read no further than anybody asks: of one schedule, or of all of them put together.

A run stands where it was enqueued. What is known of its end lies further up in the ledger, so that it is known by then.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beat import ledger
from beat.errors import BadOption, did_you_mean
from beat.history import OPEN, Change, Fired, Passed, assemble
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from beat.client.archive import Archive
    from beat.history import Line

SKIPPED = "skipped"
WORDS = (*ledger.OUTCOMES, OPEN, SKIPPED)
"""What a history can be asked for."""
_COUNTERS = {
    "succeeded": "success_count",
    "failed": "failure_count",
    "lost": "failure_count",
    "stopped": "stopped_count",
    SKIPPED: "skip_count",
    OPEN: "run_count",
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
    ends: dict[str, ledger.Entry] = {}  # what is known of runs whose verdict has not been read yet
    seen: set[str] = set()
    for page in archive.pages(schedule_id):
        entries = [entry for entry in map(ledger.read, page) if entry]
        for line in assemble(schedule_id, [*ends.values(), *entries]):
            if not isinstance(line, Fired) or (line.enqueued_at and line.job_id not in seen):
                yield line
        for entry in entries:
            if isinstance(entry, ledger.Enqueued):
                seen.add(entry.job)
            elif isinstance(entry, ledger.Outcome | ledger.Reopened):
                ends.setdefault(entry.job, entry)
        ends = {job: entry for job, entry in ends.items() if job not in seen}
        if since and entries and entries[-1].at < since and all(entry.at < since for entry in ends.values()):
            return
    yield from assemble(schedule_id, ends.values())


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
        case Change():
            return ""
