"""The load of an installation: what its schedules did and will do, slice by slice, and where they pile up.

Everything is bounded, however many schedules there are and however often they tick; what was left out is said.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from beat import clock
from beat.client import coming, past, standing
from beat.client.coming import Rhythm
from beat.errors import BadOption
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from beat.client.archive import Archive
    from beat.client.coming import PileUp
    from beat.schedule import Schedule
    from beat.zones import Zone

LONGEST = 168
"""Hours to both sides of now: a week."""
FEWEST, MOST = 20, 1000
_MINUTES = (1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440)


class Slice(NamedTuple):
    """A stretch of time: before now, the runs that were enqueued in it, by what became of them; after now, ticks."""

    start: datetime
    end: datetime
    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    lost: int = 0
    open: int = 0
    """Not known to have ended."""
    skipped: int = 0
    """Ticks that passed without a job."""
    coming: int = 0

    @property
    def enqueued(self) -> int:
        """How many became a job."""
        return self.succeeded + self.failed + self.stopped + self.lost + self.open


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The last hours and the next ones."""

    now: datetime
    step: timedelta
    """The length of a slice; now cuts one in two."""
    slices: tuple[Slice, ...]
    pile_ups: tuple[PileUp, ...]
    """To come, the largest first."""
    more_pile_ups: int
    """How many are not listed."""
    schedules: int
    active: int
    overdue: int
    """Ticks that are due, and about which nothing is decided yet."""
    partial: int
    """How many ledgers do not reach back to the first slice, or hold more than was read of them."""
    whole_from: datetime | None
    """Since when nothing is missing, if any do not."""
    unreadable: int
    """Schedules whose rule cannot be read."""
    often: int
    """Schedules that tick too often to be looked at for pile-ups."""


class Known(NamedTuple):
    """What there is to know of a schedule."""

    rule: Schedule | None
    following: datetime | None
    """The tick to come, if it is active."""
    active: bool
    spread: bool = False
    """Whether it has jitter."""


def look(archive: Archive, ids: Iterable[str], now: datetime, *, hours: int, slices: int, where: Zone) -> Timeline:
    """The load of these schedules, `hours` to both sides of `now`, in at most so many slices."""
    _refuse_unless(hours, "hours", 1, LONGEST)
    _refuse_unless(slices, "slices", FEWEST, MOST)
    step, edges = cut(now, hours, slices, where)
    middle = edges.index(now)
    found = dict(_known(archive, ids))
    rhythms = list(_rhythms(found))
    was = past.look(archive, {each: known.rule for each, known in found.items()}, edges[: middle + 1])
    will = coming.look(rhythms, edges[middle:])
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
    """The shortest length of at most so many slices; and where they begin and end, now too.

    That is at full hours, or parts of them, as the zone's clock shows them now. At both ends a slice may stand out.
    """
    minutes = next(minutes for minutes in _MINUTES if -(-2 * 60 * hours // minutes) + 2 <= slices)
    second, size = clock.floor(now), 60 * minutes
    offset = where.offset(second)
    low = (second - 3600 * hours + offset) // size * size - offset
    high = -(-(second + 1 + 3600 * hours + offset) // size) * size - offset
    return timedelta(minutes=minutes), sorted({now, *map(clock.at, range(low, high + 1, size))})


def _known(archive: Archive, ids: Iterable[str]) -> Iterator[tuple[str, Known]]:
    rule = functools.cache(standing.rule)  # thousands of schedules share a few rules
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
