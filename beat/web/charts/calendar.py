"""Draw a calendar of days with a column for each week, in the zone of the schedule.

A day has the colour of the worst outcome of its ticks, and is more opaque the more there were.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from beat.client.describe import instants
from beat.history.history import Fired, Passed, Waits
from beat.web.charts import shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from beat.history.history import Line
    from beat.timing.zones import Zone


SHOWN = 90
_MOST = 1000
"""Maximum number of days that are counted for one stretch of skipped ticks."""

Days = dict[date, Counter[str]]
"""For each day, the number of ticks and runs by outcome."""


def by_day(lines: Iterable[Line], where: Zone) -> Days:
    """Count the outcomes by the day of the tick, or by the day of the ledger line for a run without a tick."""
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
    """Return those of the last `SHOWN` days that have any outcomes, oldest first."""
    return [(day, found[day]) for n in reversed(range(SHOWN)) if (day := today - n * _DAY) in found]


def reach(line: Line, where: Zone) -> tuple[date, date]:
    """Return the first and the last day of a line."""
    match line:
        case Passed():
            return _day(line.first, where), _day(line.last, where)
        case Fired() | Waits() if line.tick is not None:
            day = _day(line.tick, where)
        case _:
            day = _day(line.at, where)
    return day, day


def is_of(line: Line, day: date, where: Zone) -> bool:
    """Return whether a line is about the day."""
    first, last = reach(line, where)
    return first <= day <= last


def told(counts: Mapping[str, int]) -> str:
    """Return the counts in words, the worst first, such as `1 failed, 23 succeeded`."""
    return ", ".join(f"{counts[each]:,} {each}" for each in shapes.OUTCOMES if counts.get(each))


def _day(instant: datetime, where: Zone) -> date:
    return instants.there(instant, where).date()


_CELL, _STEP = 15, 18
_LEFT, _TOP = 30, 18
_WEEK = 7
_LEVELS = (0.4, 0.6, 0.8, 1)
_DAY = timedelta(days=1)


class Reach(NamedTuple):
    """How far back the days are known."""

    day: date | None
    """The first known day; None if no day is known."""
    before: str
    """Why the days before it are not known."""


def drawn(found: Days, today: date, reach: Reach, link: Callable[[date], str]) -> Markup:
    """Return the calendar of the days up to today. Days that are not known are hollow."""
    shown = [today - n * _DAY for n in reversed(range(SHOWN))]
    monday = shown[0] - shown[0].weekday() * _DAY
    most = max((sum(found[each].values()) for each in shown if each in found), default=1)
    cells = []
    for day in shown:
        counts = found.get(day, Counter())
        place = _LEFT + (day - monday).days // _WEEK * _STEP, _TOP + day.weekday() * _STEP
        words = f"{day:%a %Y-%m-%d}: {told(counts) or _nothing(day, reach)}"
        cell = shapes.box(place, (_CELL, _CELL), _look(counts, most, is_known=_is_known(day, reach)), words)
        linked = Markup('<a href="{}" aria-label="{}">{}</a>').format(link(day), words, cell)
        cells.append(linked if counts else cell)
    width, height = _LEFT + ((today - monday).days // _WEEK + 1) * _STEP, _TOP + _WEEK * _STEP
    return Markup(
        '<svg class="calendar" role="group" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">{}{}{}</svg>'
    ).format(
        f"The last {SHOWN} days: {told(_sum(found, shown)) or 'nothing ran'}",
        width,
        height,
        width,
        height,
        _weekdays(),
        _months(shown, monday),
        shapes.joined(cells),
    )


def _look(counts: Mapping[str, int], most: int, *, is_known: bool) -> Markup:
    if not counts:
        return Markup('rx="3" class="day {}"').format("rest" if is_known else "unknown")
    worst = next(each for each in shapes.OUTCOMES if counts.get(each))
    level = _LEVELS[min(len(_LEVELS) - 1, len(_LEVELS) * sum(counts.values()) // (most + 1))]
    return Markup('rx="3" fill-opacity="{}" {}').format(
        level if worst == "succeeded" else max(level, _LEVELS[-2]), shapes.fill(worst)
    )


def _nothing(day: date, reach: Reach) -> str:
    return "nothing" if _is_known(day, reach) else reach.before


def _is_known(day: date, reach: Reach) -> bool:
    return reach.day is not None and day >= reach.day


def _weekdays() -> Markup:
    named = ((0, "Mon"), (2, "Wed"), (4, "Fri"), (6, "Sun"))
    return shapes.joined(
        [Markup('<text x="0" y="{}">{}</text>').format(_TOP + n * _STEP + 11, name) for n, name in named]
    )


def _months(shown: list[date], monday: date) -> Markup:
    """Return the names of the months, each over the week in which it begins."""
    firsts = [day for day in shown if day.day == 1]
    if firsts[0] - shown[0] > 2 * _WEEK * _DAY:
        firsts.insert(0, shown[0])
    return shapes.joined(
        [
            Markup('<text x="{}" y="11">{}</text>').format(_LEFT + (day - monday).days // _WEEK * _STEP, f"{day:%b}")
            for day in firsts
        ]
    )


def _sum(found: Days, shown: list[date]) -> Counter[str]:
    return sum((found[each] for each in shown if each in found), Counter())
