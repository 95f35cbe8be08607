"""The days of a ledger, by the clocks of the schedule's zone: what became of the ticks of each."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from typing import TYPE_CHECKING

from beat.history import Fired, Passed, Waits
from beat.web.drawing import shapes
from beat.words import instants

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from beat.history import Line
    from beat.zones import Zone

SHOWN = 90
_DAY = timedelta(days=1)
_MOST = 1000
"""Days of one stretch that are looked at."""

Days = dict[date, Counter[str]]
"""Of each day, how many ticks and runs had which outcome."""


def by_day(lines: Iterable[Line], where: Zone) -> Days:
    """What became of ticks, by their day; of runs that somebody asked for, by that on which they were."""
    found: Days = {}
    for line in lines:
        if isinstance(line, Fired | Passed | Waits):
            first, last = reach(line, where)
            word = "skipped" if isinstance(line, Passed) else shapes.outcome(getattr(line, "state", "waiting"))
            number = line.count if isinstance(line, Passed) and first == last else 1
            for n in range(min((last - first).days, _MOST) + 1):
                found.setdefault(first + n * _DAY, Counter())[word] += number
    return found


def last(found: Days, today: date) -> list[tuple[date, Counter[str]]]:
    """The days that are shown, of those on which there was something, oldest first."""
    return [(day, found[day]) for n in reversed(range(SHOWN)) if (day := today - n * _DAY) in found]


def reach(line: Line, where: Zone) -> tuple[date, date]:
    """The first and the last day of which a line tells."""
    match line:
        case Passed():
            return _day(line.first, where), _day(line.last, where)
        case Fired() | Waits() if line.tick is not None:
            day = _day(line.tick, where)
        case _:
            day = _day(line.at, where)
    return day, day


def is_of(line: Line, day: date, where: Zone) -> bool:
    """Whether it tells of that day."""
    first, last = reach(line, where)
    return first <= day <= last


def told(counts: Mapping[str, int]) -> str:
    """`23 succeeded, 1 failed`: the worst first."""
    return ", ".join(f"{counts[each]:,} {each}" for each in shapes.OUTCOMES if counts.get(each))


def _day(instant: datetime, where: Zone) -> date:
    return instants.there(instant, where).date()
