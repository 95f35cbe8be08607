"""What is to come: the ticks of active schedules, slice by slice, and the instants at which many are due at once.

Schedules that tick together are one rhythm, computed once. Rhythms are walked from the rarest on, for as long as there
is time; those that tick too often for it are counted in slices alone, so that a tick every second costs no more.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from beat.schedule import Schedule

_MOST_TICKS = 100_000
_FEWEST = 10  # schedules: fewer are no pile
_UNUSUAL = 4  # times what a minute would have if all ticks were spread
_NAMED, _LISTED = 10, 100


class PileUp(NamedTuple):
    """An instant at which unusually many schedules are due."""

    at: datetime
    """The first such instant."""
    times: int
    """How often the same schedules meet, with the first."""
    schedules: int
    names: tuple[str, ...]
    """Of at most ten of them, in the order of the alphabet."""


@dataclass(frozen=True)
class Rhythm:
    """Schedules that tick together: the same rule, and the same tick to come."""

    schedule: Schedule
    first: datetime
    names: Sequence[str]
    """In the order of the alphabet."""
    spread: bool = False
    """Whether jitter keeps them apart: they are no pile, and each is counted where its tick is."""

    def count(self, start: datetime, end: datetime) -> int:
        """How many ticks each of them has to come, from `start` on and before `end`."""
        return self.schedule.count(max(start, self.first), end)

    def dues(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """When these ticks are due, but for their jitter."""
        return self.schedule.ticks(max(start, self.first), end)

    def overdue(self, now: datetime) -> int:
        """How many ticks of all of them are due and not decided yet."""
        return max(1, self.schedule.count(self.first, now)) * len(self.names) if self.first < now else 0


class Coming(NamedTuple):
    """The ticks that are to come."""

    counts: list[int]
    """Slice by slice."""
    pile_ups: list[PileUp]
    """The largest first, at most a hundred."""
    more_pile_ups: int
    often: int
    """How many schedules tick too often to be looked at for pile-ups."""


def look(rhythms: Iterable[Rhythm], edges: Sequence[datetime]) -> Coming:
    """The ticks in the slices between these edges."""
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
    """Instants with many more schedules than the usual minute has; those at which the same ones meet are one."""
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
