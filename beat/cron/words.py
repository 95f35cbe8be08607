"""A cron expression in words, made from the values it chose, so that the words cannot say more than the ticks do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.cron.fields import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beat.cron.fields import Chosen, Field

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
_FEW = 6  # so many clock times are listed; more are told by their rule


def describe(chosen: Chosen, tz: str) -> str:
    """`at 09:00, Monday to Friday, America/New_York time`."""
    time, date = _time(chosen), _date(chosen)
    if not date and _few(chosen):
        date = "every day"
    return ", ".join(part for part in (time, date, tz if tz == "UTC" else f"{tz} time") if part)


def _few(chosen: Chosen) -> bool:
    return len(chosen.seconds) * len(chosen.minutes) * len(chosen.hours) <= _FEW


def _time(chosen: Chosen) -> str:
    seconds, minutes, hours = chosen.seconds, chosen.minutes, chosen.hours
    if _few(chosen):
        return "at " + _list(_clock(h, m, s) for h in hours for m in minutes for s in seconds)
    if seconds == (0,):
        return _minutes(minutes, hours)
    rate = _rate(SECOND, seconds) or f"at second {_list(seconds)} of every minute"
    if minutes == MINUTE.values and hours == HOUR.values:
        return rate
    return f"{rate}, {_minutes(minutes, hours).removeprefix('at ')}"


def _minutes(minutes: Sequence[int], hours: Sequence[int]) -> str:
    rate = _rate(MINUTE, minutes)
    if rate:
        return rate + _during(hours, to=59)
    if len(minutes) > 1:
        return f"at {_list(f':{minute:02}' for minute in minutes)}{_during(hours, to=59) or ' of every hour'}"
    hourly = _rate(HOUR, hours)
    if not hourly:
        return f"every hour{_during(hours, start=minutes[0], to=minutes[0])}"
    return hourly if minutes[0] == 0 else f"{hourly} at :{minutes[0]:02}"


def _rate(field: Field, values: Sequence[int]) -> str:
    """`every 15 minutes`, where the steps are even and come out even at the end of the range."""
    step = values[1] - values[0] if len(values) > 1 else 0
    if not step or len(field.values) % step or tuple(values) != field.values[::step]:
        return ""
    return f"every {field.name}" if step == 1 else f"every {step} {field.name}s"


def _during(hours: Sequence[int], to: int, start: int = 0) -> str:
    if len(hours) == len(HOUR.values):
        return ""
    if len(hours) > 1 and hours[-1] - hours[0] == len(hours) - 1:
        return f" from {hours[0]:02}:{start:02} to {hours[-1]:02}:{to:02}"
    return f" in the hour{'s' * (len(hours) > 1)} of {_list(f'{hour:02}:{start:02}' for hour in hours)}"


def _date(chosen: Chosen) -> str:
    day, weekday, month = _days(chosen.days), _weekdays(chosen.weekdays), _months(chosen.months)
    if chosen.either:
        return f"{month}, on {day} or on any {weekday}".removeprefix(", ")
    if day and month and len(chosen.months) == 1:  # "on 29 February"
        day, month = f"{day.removeprefix('day ').removesuffix(' of the month')} {month.removeprefix('in ')}", ""
    elif day and month:
        day = day.removesuffix(" of the month")
    if day and weekday:
        weekday = f"if that is a {weekday.replace(' and ', ' or ')}"
    elif weekday and len(chosen.weekdays) == 1:
        weekday = f"every {weekday}"
    on = f"on {day}" if day else ""
    return ", ".join(part for part in (f"{on} {month}".strip(), weekday) if part)


def _months(months: Sequence[int]) -> str:
    return "" if tuple(months) == MONTH.values else f"in {_spans(months, _MONTHS, 1)}"


def _days(days: Sequence[int]) -> str:
    return "" if tuple(days) == DAY.values else f"day {_spans(days, [str(day) for day in DAY.values], 1)} of the month"


def _weekdays(weekdays: Sequence[int]) -> str:
    if tuple(weekdays) == WEEKDAY.values:
        return ""
    sunday_last = [*weekdays[1:], 7] if weekdays[0] == 0 and len(weekdays) > 1 else weekdays
    return _spans(sunday_last, [*_WEEKDAYS, _WEEKDAYS[0]], 0)


def _spans(values: Sequence[int], names: Sequence[str], first: int) -> str:
    """`1 to 5 and 9`: runs of three or more become spans."""
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


def _list(parts: Iterable[object]) -> str:
    *most, last = map(str, parts)
    if len(most) > _FEW:
        return f"{', '.join(most[:3])} … {last}"
    return f"{', '.join(most)} and {last}" if most else last


def _clock(hour: int, minute: int, second: int) -> str:
    return f"{hour:02}:{minute:02}" + (f":{second:02}" if second else "")
