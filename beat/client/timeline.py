"""Summarise the load of an installation, slice by slice: past runs, ticks to come, and instants with many ticks.

Everything is bounded, however many schedules there are and however often they tick. The result says what was left out,
and claims nothing about it.

Schedules that tick together are one rhythm, which is computed once. Rhythms are walked from the rarest on, up to a
number of ticks. Rhythms beyond that are only counted in slices, so that a tick every second costs no more. Only a
limited number of ledger lines is read.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from beat.client import schedule_info
from beat.client.history import SKIPPED
from beat.errors import BadOption
from beat.history import broadcast, ledger
from beat.history.history import OPEN
from beat.schedule.routing_options import MOST_QUEUES
from beat.storage.store import pages
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from beat.client.reader import Archive
    from beat.schedule.schedule import Schedule
    from beat.timing.zones import Zone


_MOST_TICKS = 100_000
_FEWEST = 10  # schedules; fewer are no pile-up
_UNUSUAL = 4  # times as many as a minute has on average
_NAMED, _LISTED = 10, 100


class PileUp(NamedTuple):
    """An instant at which unusually many schedules are due."""

    at: datetime
    """The first such instant."""
    times: int
    """How often the same schedules are due together, including the first time."""
    schedules: int
    names: tuple[str, ...]
    """The ids of at most ten of them, in alphabetical order."""


@dataclass(frozen=True)
class Rhythm:
    """Schedules that tick together, because they have the same rule and the same next tick."""

    schedule: Schedule
    first: datetime
    names: Sequence[str]
    """The ids, in alphabetical order."""
    spread: bool = False
    """Whether jitter spreads their ticks. They are then no pile-up, and count at their time before jitter."""

    def count(self, start: datetime, end: datetime) -> int:
        """Return how many ticks each schedule has from `start` to before `end`."""
        return self.schedule.count(max(start, self.first), end)

    def dues(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Iterate over the times when these ticks are due, before jitter."""
        return self.schedule.ticks(max(start, self.first), end)

    def overdue(self, now: datetime) -> int:
        """Return how many ticks of all its schedules are due and undecided."""
        return max(1, self.schedule.count(self.first, now)) * len(self.names) if self.first < now else 0


class Coming(NamedTuple):
    """The ticks to come."""

    counts: list[int]
    """How many there are in each slice."""
    pile_ups: list[PileUp]
    """The largest first, at most 100."""
    more_pile_ups: int
    often: int
    """How many schedules tick too often to be searched for pile-ups."""


def look_ahead(rhythms: Iterable[Rhythm], edges: Sequence[datetime]) -> Coming:
    """Count the ticks in the slices between these edges, and find pile-ups."""
    start, end = edges[0], edges[-1]
    counts = [0] * (len(edges) - 1)
    meeting: dict[datetime, list[Rhythm]] = defaultdict(list)
    left, often = _MOST_TICKS, 0
    for number, _, rhythm in sorted((each.count(start, end), n, each) for n, each in enumerate(rhythms)):
        size, left = len(rhythm.names), left - number
        often += size if left < 0 else 0
        if left < 0 and number > len(counts):
            for place, (a, b) in enumerate(itertools.pairwise(edges)):
                counts[place] += size * rhythm.count(a, b)
            continue
        for due in rhythm.dues(start, end):
            counts[bisect_right(edges, due) - 1] += size
            if left >= 0 and not rhythm.spread:
                meeting[due].append(rhythm)
    found = _pile_ups(meeting, sum(counts) / ((end - start).total_seconds() / 60))
    return Coming(counts, found[:_LISTED], max(0, len(found) - _LISTED), often)


def _pile_ups(meeting: dict[datetime, list[Rhythm]], usual: float) -> list[PileUp]:
    """Return instants with many more schedules than a usual minute has, largest first.

    Instants at which the same schedules are due are one pile-up.
    """
    least = max(_FEWEST, _UNUSUAL * usual)
    first: dict[tuple[int, ...], datetime] = {}
    times: Counter[tuple[int, ...]] = Counter()
    for at in sorted(meeting):
        if sum(len(each.names) for each in meeting[at]) >= least:
            who = tuple(sorted(map(id, meeting[at])))
            first.setdefault(who, at)
            times[who] += 1
    made = [
        PileUp(at, times[who], sum(len(each.names) for each in meeting[at]), _names(meeting[at]))
        for who, at in first.items()
    ]
    return sorted(made, key=lambda pile: (-pile.schedules, pile.at))


def _names(rhythms: Iterable[Rhythm]) -> tuple[str, ...]:
    return tuple(heapq.nsmallest(_NAMED, itertools.chain.from_iterable(each.names[:_NAMED] for each in rhythms)))


MOST_LINES = 150_000
"""About how many ledger lines are read for one timeline at most."""
DEEPEST = 4000
"""How many lines of one ledger are read at most."""
_SPARE = 4  # lines that belong to no tick: changes and requested runs
_SECOND = timedelta(seconds=1)

# A line about a run, as the scripts write it: its type, its job, and for a decision its time. Parsing such lines as
# JSON takes five times as long, and there may be many.
_RUN = re.compile(
    r'\{"type":"(enqueued|succeeded|failed|stopped|lost)","tick":(?:null|"[^"\\]*"),"job":"([^"\\]*)",'
    r'(?:"by":"\w*",(?:"after":"[^"\\]*",)?(?:"queue":"[^"\\]*","why":"[^"\\]*",)?"late_ms":-?\d+,"n":\d+,"at":"([^"]*)Z"'
    r'|"started")'
)

Counts = Counter[tuple[int, str]]
"""Numbers by the index of the slice and by outcome."""


class Past(NamedTuple):
    """The decisions in all ledgers."""

    counts: Counts
    partial: int
    """How many ledgers do not reach back to the first slice, or were not read that far."""
    whole_from: datetime | None
    """From when on these ledgers are complete."""


class Tally(NamedTuple):
    """The decisions in one ledger."""

    counts: Counts
    reached: bool
    """Whether the lines reach back to the first slice, or to the registration of the schedule."""
    oldest: str
    """When the oldest decision was made, as text; empty if there is none."""


def look_back(archive: Archive, rules: Mapping[str, Schedule | None], edges: Sequence[datetime]) -> Past:
    """Return what these schedules did in the slices between the edges, the last of which is now."""
    slices, asked = Slices(edges), _shares(_lines(rules, edges[0], edges[-1]))
    found: dict[str, Tally] = {}
    short = {}
    for each, lines in archive.heads(asked):
        found[each] = slices.tally(lines, rules[each])
        if not found[each].reached and len(lines) == asked[each]:
            short[each] = DEEPEST  # it has more lines than were read
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
    """Estimate how many lines of each ledger cover that time: two for each tick, and a few others."""
    shared = {id(rule): rule for rule in rules.values() if rule}
    ticks = {each: rule.count(start, now) for each, rule in shared.items()}
    return {each: min(2 * ticks.get(id(rule), 0) + _SPARE, DEEPEST) for each, rule in rules.items()}


def _shares(asked: dict[str, int]) -> dict[str, int]:
    """Return the numbers, reduced to MOST_LINES in all if necessary: the largest are cut to an equal share."""
    left = MOST_LINES
    for place, number in enumerate(sorted(asked.values())):
        share = max(1, left // (len(asked) - place))
        if number > share:
            return {each: min(wanted, share) for each, wanted in asked.items()}
        left -= number
    return asked


class Slices:
    """Slices of the past. Instants are compared as text without the `Z`, because most of them come as text."""

    def __init__(self, edges: Sequence[datetime]) -> None:
        self._bounds = list(itertools.pairwise(edges))
        self._edges = [_text(edge) for edge in edges[:-1]]

    def tally(self, lines: Iterable[bytes], rule: Schedule | None) -> Tally:
        """Count what a ledger, newest line first, has in these slices."""
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
                state = broadcast.outcome(shares.get(about.job, {}).values(), min(about.shards, MOST_QUEUES))
                counts.update({(self._place(oldest), state): 1} if oldest >= self._edges[0] else {})
            elif isinstance(about, ledger.Skipped):
                oldest = _text(about.at)
                counts.update(self._passed(about, rule))
            elif about:
                return Tally(counts, reached=True, oldest=oldest)  # the registration is the oldest line
            if "" < oldest < self._edges[0]:
                return Tally(counts, reached=True, oldest=oldest)
        return Tally(counts, reached=False, oldest=oldest)

    def _place(self, at: str) -> int:
        return bisect_right(self._edges, at) - 1

    def _passed(self, entry: ledger.Skipped, rule: Schedule | None) -> Counts:
        """Count skipped ticks where they were; if the rule cannot tell, count all where the first one was."""
        first, end = entry.tick, entry.last + _SECOND
        if rule and rule.count(first, end) == entry.count:
            spread = (rule.count(max(a, first), min(b, end)) for a, b in self._bounds)
            return Counter({(place, SKIPPED): number for place, number in enumerate(spread) if number})
        began = _text(first)
        return Counter({(self._place(began), SKIPPED): entry.count} if began >= self._edges[0] else {})


def glance(line: bytes) -> tuple[str, str, str | None] | ledger.Entry | None:
    """Return the load that a ledger line stands for, or None if it stands for none.

    A line of a run gives its job, its state from then on, and for a decision the time. A line of a broadcast, a skip or
    the registration gives its entry.
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


LONGEST = 168
"""How many hours before and after now a timeline covers at most: a week."""
FEWEST, MOST = 20, 1000
_MINUTES = (1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440)


class Slice(NamedTuple):
    """A stretch of time with its runs by outcome, if it is past, or else with its ticks to come."""

    start: datetime
    end: datetime
    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    lost: int = 0
    open: int = 0
    """Runs that are not known to have ended."""
    skipped: int = 0
    """Ticks that were skipped."""
    coming: int = 0

    @property
    def enqueued(self) -> int:
        """Return how many runs were enqueued."""
        return self.succeeded + self.failed + self.stopped + self.lost + self.open


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The load of the last and the next hours."""

    now: datetime
    step: timedelta
    """The length of a slice; the slice that contains now is cut in two."""
    slices: tuple[Slice, ...]
    pile_ups: tuple[PileUp, ...]
    """Pile-ups to come, the largest first."""
    more_pile_ups: int
    """How many more pile-ups there are."""
    schedules: int
    active: int
    overdue: int
    """How many ticks are due and undecided."""
    partial: int
    """How many ledgers do not reach back to the first slice, or have more lines than were read."""
    whole_from: datetime | None
    """From when on nothing is missing, if any ledger is partial."""
    unreadable: int
    """How many schedules have a rule that cannot be read."""
    often: int
    """How many schedules tick too often to be searched for pile-ups."""


class Known(NamedTuple):
    """What the timeline needs to know about a schedule."""

    rule: Schedule | None
    following: datetime | None
    """The next tick, if the schedule is active."""
    active: bool
    spread: bool = False
    """Whether it has jitter."""


def read_timeline(
    archive: Archive, ids: Iterable[str], now: datetime, *, hours: int, slices: int, where: Zone
) -> Timeline:
    """Return the load of these schedules, `hours` before and after `now`, in at most `slices` slices."""
    _refuse_unless(hours, "hours", 1, LONGEST)
    _refuse_unless(slices, "slices", FEWEST, MOST)
    step, edges = cut(now, hours, slices, where)
    middle = edges.index(now)
    found = dict(_known(archive, ids))
    rhythms = list(_rhythms(found))
    was = look_back(archive, {each: known.rule for each, known in found.items()}, edges[: middle + 1])
    will = look_ahead(rhythms, edges[middle:])
    made = [Slice(a, b)._asdict() for a, b in itertools.pairwise(edges)]
    for (place, word), number in was.counts.items():
        made[place][word] = number
    for place, number in enumerate(will.counts, middle):
        made[place]["coming"] = number
    return Timeline(
        now=now,
        step=step,
        slices=tuple(Slice(**each) for each in made),
        pile_ups=tuple(will.pile_ups),
        more_pile_ups=will.more_pile_ups,
        schedules=len(found),
        active=sum(known.active for known in found.values()),
        overdue=sum(each.overdue(now) for each in rhythms),
        partial=was.partial,
        whole_from=was.whole_from,
        unreadable=sum(known.rule is None for known in found.values()),
        often=will.often,
    )


def _refuse_unless(value: object, name: str, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise BadOption(f"{name} {value!r:.60} must be a whole number from {least} to {most:,}, as in {name}={least}")


def cut(now: datetime, hours: int, slices: int, where: Zone) -> tuple[timedelta, list[datetime]]:
    """Return the length and the edges of the slices: the shortest length that needs at most `slices` of them.

    The edges are full hours, or parts of them, by the present offset of the zone, and `now`. The first and the last
    slice may reach beyond `hours`.
    """
    minutes = next(minutes for minutes in _MINUTES if -(-2 * 60 * hours // minutes) + 2 <= slices)
    second, size = clock.floor(now), 60 * minutes
    offset = where.offset(second)
    low = (second - 3600 * hours + offset) // size * size - offset
    high = -(-(second + 1 + 3600 * hours + offset) // size) * size - offset
    return timedelta(minutes=minutes), sorted({now, *map(clock.at, range(low, high + 1, size))})


def _known(archive: Archive, ids: Iterable[str]) -> Iterator[tuple[str, Known]]:
    rule = functools.cache(schedule_info.rule)  # thousands of schedules share a few rules
    for page in pages(ids):
        for each, state, following, jitter, written in archive.timings(page):
            active = state == "active"
            yield each, Known(rule(written), clock.found(following) if active else None, active, bool(jitter))


def _rhythms(found: dict[str, Known]) -> Iterator[Rhythm]:
    together: dict[tuple[int, datetime, bool], list[str]] = defaultdict(list)
    rules = {}
    for each, (rule, following, _, spread) in found.items():
        if rule and following:
            rules[id(rule)] = rule
            together[id(rule), following, spread].append(each)
    return (Rhythm(rules[rule], first, sorted(names), spread) for (rule, first, spread), names in together.items())
