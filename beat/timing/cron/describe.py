"""Describe a cron expression in words.

The words are made from the parsed values, not from the text, so they cannot differ from the ticks.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from beat.timing.cron import dst_notes
from beat.timing.cron.fields import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY
from beat.timing.cron.wall_times import WallTimes
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beat.timing.cron.fields import Chosen, Field

_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_FEW = 6  # up to this many clock times are listed; more are described by their step, if they have one
_YEARS = datetime(2026, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)  # sample of today's DST rules
_CHANGES = {
    "moved": "made up for when the clock skips it",
    "dropped": "not when the clock skips it",
    "single": "once when the clock repeats it",
    "repeated": "twice when the clock repeats it",
}


def describe(chosen: Chosen, tz: str) -> str:
    """Return the ticks in words, such as `at 09:00, Monday to Friday, America/New_York time`."""
    time, date = _time(chosen), _date(chosen)
    if not date and "every" not in time:
        date = "every day"
    where = tz if tz == "UTC" else f"{tz} time"
    return ", ".join(part for part in (time, date, where, _changes(chosen, time, tz)) if part)


def _changes(chosen: Chosen, time: str, tz: str) -> str:
    """Return what clock changes do to the ticks, if that differs from what `time` suggests; else ""."""
    paced = "every" in time  # "every …" suggests following the wall clock; "at 02:30" suggests exactly once a day
    if tz == "UTC" or paced != chosen.fixed:
        return ""
    kinds = {shift.kind for shift in dst_notes.shifts(WallTimes(chosen), zone(tz), *_YEARS, fixed=chosen.fixed)}
    return " and ".join(words for kind, words in _CHANGES.items() if kind in kinds)


def _time(chosen: Chosen) -> str:
    seconds, minutes, hours = chosen.seconds, chosen.minutes, chosen.hours
    if len(seconds) * len(minutes) * len(hours) <= _FEW:
        return "at " + _list(_clock(h, m, s) for h in hours for m in minutes for s in seconds)
    if seconds != (0,):
        return _seconds(seconds, minutes, hours)
    return _hours(hours, minutes[0]) if len(minutes) == 1 else _minutes(minutes, hours)


def _seconds(seconds: Sequence[int], minutes: Sequence[int], hours: Sequence[int]) -> str:
    rate = _rate(SECOND, seconds)
    words = rate or _steps("second", seconds)
    if minutes == MINUTE.values:
        return f"{words}{'' if rate else ' of every minute'}{_during(hours)}"
    if (step := _step(minutes)) > 1:
        which = f"every {_nth(step)} minute from :{minutes[0]:02} to :{minutes[-1]:02}"
    else:
        which = f"the minute{'s' * (len(minutes) > 1)} {_spans(minutes, _marks(':'), 0)}"
    return f"{words} in {which}{_of_hours(hours)}"


def _minutes(minutes: Sequence[int], hours: Sequence[int]) -> str:
    if rate := _rate(MINUTE, minutes):
        return rate + _during(hours)
    if len(hours) == 1:
        return _steps("minute", minutes, f"{hours[0]:02}:")
    return _steps("minute", minutes) + _of_hours(hours)


def _hours(hours: Sequence[int], minute: int) -> str:
    if rate := _rate(HOUR, hours):
        return rate if minute == 0 else f"{rate} at :{minute:02}"
    if step := _step(hours):
        return f"{_every(step, 'hour')} from {_clock(hours[0], minute)} to {_clock(hours[-1], minute)}"
    return "at " + _list(_clock(hour, minute) for hour in hours)


def _rate(field: Field, values: Sequence[int]) -> str:
    """Return `every 15 minutes` if the values are evenly spaced over the whole range of the field, else ""."""
    step = values[1] - values[0] if len(values) > 1 else 0
    even = step and len(field.values) % step == 0 and tuple(values) == field.values[::step]
    return _every(step, field.name) if even else ""


def _steps(unit: str, values: Sequence[int], before: str = ":") -> str:
    """Return `every 7 minutes from :00 to :56`, or `at :05 and :35` if the values have no common step."""
    marks = _marks(before)
    if step := _step(values):
        return f"{_every(step, unit)} from {marks[values[0]]} to {marks[values[-1]]}"
    return f"at {_spans(values, marks, 0)}"


def _of_hours(hours: Sequence[int]) -> str:
    during = _during(hours)
    whole = len(hours) > 1 and during.startswith(" from")
    return f" of every hour{during}" if whole or not during else during


def _during(hours: Sequence[int]) -> str:
    if len(hours) == len(HOUR.values):
        return ""
    span = f"from {hours[0]:02}:00 to {hours[-1]:02}:59"
    if hours[-1] - hours[0] == len(hours) - 1:
        return f" {span}"
    if step := _step(hours):
        return f" in every {_nth(step)} hour {span}"
    return f" in the hours of {_list(_clock(hour, 0) for hour in hours)}"


def _date(chosen: Chosen) -> str:
    days, weekdays, months = _days(chosen.days), _weekdays(chosen.weekdays), _months(chosen.months)
    if chosen.either:
        within = f"in {months}, " if months else ""
        return f"{within}on {days} of the month or on any {_or(weekdays)}"
    parts = []
    if days and len(chosen.months) == 1:
        parts.append(f"on {days.removeprefix('days ').removeprefix('day ')} {months}")  # "on 29 February"
    elif days:
        parts.append(f"on {days} {f'in {months}' if months else 'of the month'}")
    elif months:
        parts.append(f"in {months}")
    if weekdays:
        one = len(chosen.weekdays) == 1
        parts.append(f"if that is {'a ' * one}{_or(weekdays)}" if days else f"{'every ' * one}{weekdays}")
    return ", ".join(parts)


def _days(days: Sequence[int]) -> str:
    if tuple(days) == DAY.values:
        return ""
    if (step := _step(days)) > 1:
        return f"every {_nth(step)} day from {days[0]} to {days[-1]}"
    return f"day{'s' * (len(days) > 1)} {_spans(days, DAY.values, 1)}"


def _months(months: Sequence[int]) -> str:
    return "" if tuple(months) == MONTH.values else _spans(months, _MONTHS, 1)


def _weekdays(weekdays: Sequence[int]) -> str:
    if tuple(weekdays) == WEEKDAY.values:
        return ""
    sunday_last = [*weekdays[1:], 7] if weekdays[0] == 0 and len(weekdays) > 1 else weekdays
    return _spans(sunday_last, [*_WEEKDAYS, _WEEKDAYS[0]], 0)


def _spans(values: Sequence[int], names: Sequence[object], first: int) -> str:
    """Return a list such as `1 to 5 and 9`, in which three or more consecutive values become a span."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    long = 3
    parts = [
        [f"{names[r[0] - first]} to {names[r[-1] - first]}"] if len(r) >= long else [names[v - first] for v in r]
        for r in runs
    ]
    return _list(part for run in parts for part in run)


def _step(values: Sequence[int]) -> int:
    """Return the common difference of four or more values, or 0 if there is none."""
    gaps = {later - earlier for earlier, later in itertools.pairwise(values)}
    least = 4
    return gaps.pop() if len(values) >= least and len(gaps) == 1 else 0


def _every(step: int, unit: str) -> str:
    return f"every {unit}" if step == 1 else f"every {step} {unit}s"


def _nth(step: int) -> str:
    return f"{step}{ {2: 'nd', 3: 'rd'}.get(step, 'th') }"


def _or(names: str) -> str:
    return names.replace(" and ", " or ")


def _list(parts: Iterable[object]) -> str:
    *most, last = map(str, parts)
    return f"{', '.join(most)} and {last}" if most else last


def _marks(before: str) -> list[str]:
    return [f"{before}{value:02}" for value in MINUTE.values]


def _clock(hour: int, minute: int, second: int = 0) -> str:
    return f"{hour:02}:{minute:02}" + (f":{second:02}" if second else "")
