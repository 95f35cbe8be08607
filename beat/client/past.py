"""What has been: the verdicts of all ledgers, slice by slice, and what became of the runs.

No more lines are read than a person would wait for. What was left out is known, and nothing is claimed about it.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from beat import clock, ledger, shards
from beat.client.reading import SKIPPED
from beat.history import OPEN
from beat.place_options import MOST_QUEUES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from beat.client.archive import Archive
    from beat.schedule import Schedule

MOST_LINES = 150_000
"""How many lines are read for one picture, and a few more."""
DEEPEST = 4000
"""How many lines are read of one ledger."""
_SPARE = 4  # lines that belong to no tick of the rule: changes, runs that somebody asked for
_SECOND = timedelta(seconds=1)

# A line about a run, as the scripts write it: its type, its job, and of a verdict its instant. To read such lines whole
# takes five times as long, and there may be many.
_RUN = re.compile(
    r'\{"type":"(enqueued|succeeded|failed|stopped|lost)","tick":(?:null|"[^"\\]*"),"job":"([^"\\]*)",'
    r'(?:"by":"\w*",(?:"after":"[^"\\]*",)?(?:"queue":"[^"\\]*","why":"[^"\\]*",)?"late_ms":-?\d+,"n":\d+,"at":"([^"]*)Z"'
    r'|"started")'
)

Counts = Counter[tuple[int, str]]
"""How many there are, by the number of the slice and the word for what became of them."""


class Past(NamedTuple):
    """The verdicts of all ledgers."""

    counts: Counts
    partial: int
    """How many ledgers do not reach back to the first slice, or were not read so far."""
    whole_from: datetime | None
    """Since when those tell all."""


class Tally(NamedTuple):
    """The verdicts of one ledger."""

    counts: Counts
    reached: bool
    """Whether the lines go back to the first slice, or to the day on which the schedule was registered."""
    oldest: str
    """When the oldest verdict was given, as text; empty if there is none."""


def look(archive: Archive, rules: Mapping[str, Schedule | None], edges: Sequence[datetime]) -> Past:
    """What the schedules of these ids did in the slices between the edges, the last of which is now."""
    slices, asked = Slices(edges), _shares(_lines(rules, edges[0], edges[-1]))
    found: dict[str, Tally] = {}
    short = {}
    for each, lines in archive.heads(asked):
        found[each] = slices.tally(lines, rules[each])
        if not found[each].reached and len(lines) == asked[each]:
            short[each] = DEEPEST  # it holds more than was asked for
    again = dict(itertools.islice(short.items(), max(0, MOST_LINES - sum(asked.values())) // DEEPEST))
    found |= {each: slices.tally(lines, rules[each]) for each, lines in archive.heads(again)}
    counts: Counts = Counter()
    for tally in found.values():
        counts.update(tally.counts)
    late = [
        tally.oldest or _text(edges[-1])
        for each, tally in found.items()
        if not tally.reached and (tally.oldest or each in short)
    ]
    return Past(counts, len(late), clock.found(f"{max(late)}Z") if late else None)


def _lines(rules: Mapping[str, Schedule | None], start: datetime, now: datetime) -> dict[str, int]:
    """How many lines of each ledger are likely to tell of that time: of a tick, its verdict and its outcome."""
    shared = {id(rule): rule for rule in rules.values() if rule}
    ticks = {each: rule.count(start, now) for each, rule in shared.items()}
    return {each: min(2 * ticks.get(id(rule), 0) + _SPARE, DEEPEST) for each, rule in rules.items()}


def _shares(asked: dict[str, int]) -> dict[str, int]:
    """The same; if that is too much for all, those who ask for most get less, and as much as each other."""
    left = MOST_LINES
    for place, number in enumerate(sorted(asked.values())):
        share = max(1, left // (len(asked) - place))
        if number > share:
            return {each: min(wanted, share) for each, wanted in asked.items()}
        left -= number
    return asked


class Slices:
    """Slices of the past. Instants are compared as text, without the `Z`, which is how most of them come."""

    def __init__(self, edges: Sequence[datetime]) -> None:
        self._bounds = list(itertools.pairwise(edges))
        self._edges = [_text(edge) for edge in edges[:-1]]

    def tally(self, lines: Iterable[bytes], rule: Schedule | None) -> Tally:
        """What a ledger, newest line first, tells of these slices."""
        counts: Counts = Counter()
        ends: dict[str, str] = {}
        shares: dict[str, dict[str, str]] = {}
        oldest = ""
        for line in lines:
            about = glance(line)
            if isinstance(about, tuple):
                job, state, at = about
                if at is None:
                    ends.setdefault(job, state)
                    continue
                oldest = at
                if at >= self._edges[0]:
                    counts[self._place(at), ends.get(job, OPEN)] += 1
            elif isinstance(about, ledger.Outcome | ledger.Reopened):
                shares.setdefault(about.of, {}).setdefault(about.job, getattr(about, "type", OPEN))
            elif isinstance(about, ledger.Enqueued):
                oldest = _text(about.at)
                state = shards.outcome(shares.get(about.job, {}).values(), min(about.shards, MOST_QUEUES))
                counts.update({(self._place(oldest), state): 1} if oldest >= self._edges[0] else {})
            elif isinstance(about, ledger.Skipped):
                oldest = _text(about.at)
                counts.update(self._passed(about, rule))
            elif about:
                return Tally(counts, reached=True, oldest=oldest)  # before it was registered there was nothing
            if "" < oldest < self._edges[0]:
                return Tally(counts, reached=True, oldest=oldest)
        return Tally(counts, reached=False, oldest=oldest)

    def _place(self, at: str) -> int:
        return bisect_right(self._edges, at) - 1

    def _passed(self, entry: ledger.Skipped, rule: Schedule | None) -> Counts:
        """A stretch of skipped ticks lies where its ticks were; where the rule does not tell, where it began."""
        first, end = entry.tick, entry.last + _SECOND
        if rule and rule.count(first, end) == entry.count:
            spread = (rule.count(max(a, first), min(b, end)) for a, b in self._bounds)
            return Counter({(place, SKIPPED): number for place, number in enumerate(spread) if number})
        began = _text(first)
        return Counter({(self._place(began), SKIPPED): entry.count} if began >= self._edges[0] else {})


def glance(line: bytes) -> tuple[str, str, str | None] | ledger.Entry | None:
    """Of a run, its job, its state from then on, and if this is its verdict, the instant; or the entry that counts.

    Of a tick that went to all of its queues these are entries. What tells nothing about load is None, as are all
    changes but the first.
    """
    if found := _RUN.match(line.decode(errors="replace")):
        kind, job, at = found.groups()
        return job, kind, at
    match ledger.read(line):
        case ledger.Enqueued(shards=number) as entry if number > 0:
            return entry
        case ledger.Enqueued(job=job, at=at):
            return job, OPEN, _text(at)
        case ledger.Outcome(of=of) | ledger.Reopened(of=of) as entry if of:
            return entry
        case ledger.Outcome(job=job, type=outcome):
            return job, outcome, None
        case ledger.Reopened(job=job):
            return job, OPEN, None
        case ledger.Changed(type="registered") | ledger.Skipped() as entry:
            return entry
    return None


def _text(instant: datetime) -> str:
    return clock.text(instant)[:-1]
