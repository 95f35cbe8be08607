"""What `beat check` finds in schedules that are well formed: some can never run, others may surprise.

Each rule looks at one schedule and says in a sentence what will happen and what to write instead.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from beat import clock, durations
from beat.cron import Cron
from beat.cron.fields import DAY, FIVE, HOUR, MINUTE, SIX
from beat.every import Every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from beat.schedule import Schedule

_AHEAD = timedelta(days=400)  # both changes of the clocks of the coming year
_DAY = timedelta(days=1)
_NOT_IN_EVERY_MONTH = 29


@dataclass(frozen=True)
class Finding:
    """One sentence about one schedule."""

    level: Literal["problem", "warning"]
    schedule: Schedule
    message: str


def lint(schedules: Iterable[Schedule], now: datetime) -> list[Finding]:
    """Everything to say about these schedules, in their order."""
    known = list(schedules)
    twins = dict(_twins(known))
    found = []
    for schedule in known:
        found += [Finding("problem", schedule, message) for message in _over(schedule, now)]
        found += [Finding("warning", schedule, message) for rule in _RULES for message in rule(schedule, now)]
        found += [Finding("warning", schedule, twins[schedule.id])] if schedule.id in twins else []
    return found


def _over(schedule: Schedule, now: datetime) -> Iterator[str]:
    if schedule.end and schedule.end <= now:
        yield f"its end {clock.text(schedule.end)} is past: it will not run again; remove it, or move its end"
    elif schedule.end and schedule.after(now) is None:
        begin = max(now, schedule.start or now)
        yield f"no tick lies between {clock.text(begin)} and its end {clock.text(schedule.end)}"


def _both_days(schedule: Schedule, _now: datetime) -> Iterator[str]:
    if not isinstance(schedule.timing, Cron):
        return
    chosen, day, weekday = schedule.timing.chosen, *schedule.timing.normalised.split()[-3::2]
    if chosen.either:
        yield (
            f"day-of-month {day!r} and day-of-week {weekday!r} are both set: it runs when either matches, as in cron; "
            "set one to '*' if both must match, and let the job look at the other"
        )
    elif "*" not in (day, weekday):
        yield f"day-of-month {day!r} and day-of-week {weekday!r} must both match, because one begins with '*'"


def _uneven_steps(schedule: Schedule, _now: datetime) -> Iterator[str]:
    if not isinstance(schedule.timing, Cron):
        return
    texts = schedule.timing.normalised.split()
    for column, text in zip(SIX if len(texts) == len(SIX) else FIVE, texts, strict=True):
        step = int(text[2:]) if text.startswith("*/") and text[2:].isdigit() else 1
        size = len(column.values)
        if step == size:
            yield f"{column.name} {text!r} is {column.low} alone: write '{column.low}'"
        elif size % step and column is DAY:
            yield f"{column.name} {text!r} begins anew on the 1st of each month, so steps differ at its end"
        elif size % step:
            last = column.values[::step][-1]
            rest = size - last + column.low
            yield f"{column.name} {text!r} is uneven: from {last} on to {column.low} it takes {rest}, not {step}"


def _every_minute_of_an_hour(schedule: Schedule, _now: datetime) -> Iterator[str]:
    if isinstance(schedule.timing, Cron):
        chosen = schedule.timing.chosen
        if chosen.minutes == MINUTE.values and len(chosen.hours) == 1:
            yield f"it runs every minute from {chosen.hours[0]:02}:00 to {chosen.hours[0]:02}:59; once is minute '0'"


def _short_months(schedule: Schedule, _now: datetime) -> Iterator[str]:
    if not isinstance(schedule.timing, Cron):
        return
    chosen = schedule.timing.chosen
    day = chosen.days[0]
    if chosen.either or day < _NOT_IN_EVERY_MONTH:
        return
    if chosen.months == (2,):
        yield "the 29th of February comes only in leap years"
    elif missing := [month for month in chosen.months if month == 2 or (month in (4, 6, 9, 11) and day > 30)]:  # noqa: PLR2004 (the calendar)
        yield f"months without a day {day} are left out ({', '.join(map(str, missing))})"


def _clock_changes(schedule: Schedule, now: datetime) -> Iterator[str]:
    if not isinstance(schedule.timing, Cron) or schedule.timing.chosen.hours == HOUR.values:
        return
    said = {
        "moved": "does not exist in {tz} on {day}, when the clock jumps forward: it runs right after the jump",
        "dropped": "does not exist in {tz} on {day}, when the clock jumps forward: it does not run; name fixed minutes",
        "repeated": "comes twice in {tz} on {day}: it runs both times; name fixed minutes for once",
    }
    for kind, sentence in said.items():
        for shift in schedule.timing.shifts(now, now + _AHEAD):
            if shift.kind == kind:
                yield f"{shift.first:%H:%M} " + sentence.format(tz=schedule.tz, day=f"{shift.first:%Y-%m-%d}")
                break


def _unanchored(schedule: Schedule, now: datetime) -> Iterator[str]:
    timing = schedule.timing
    if isinstance(timing, Every) and timing.period >= _DAY and timing.start is None and not timing.phase:
        yield (
            f"every={durations.short(timing.period)!r} is counted from 1970-01-01T00:00:00Z, so that it next runs at "
            f"{clock.text(timing.after(now))}; say start= to choose the time"
        )


def _twins(schedules: list[Schedule]) -> Iterator[tuple[str, str]]:
    seen: dict[str, Schedule] = {}
    for schedule in schedules:
        definition = schedule.definition()
        call = json.dumps([definition[name] for name in ("func", "args", "kwargs")])
        first = seen.setdefault(call, schedule)
        if first is not schedule:
            yield schedule.id, f"it calls {schedule.func} with the same arguments as {first.id!r} ({first.declared})"


_RULES: tuple[Callable[[Schedule, datetime], Iterator[str]], ...] = (
    _both_days,
    _uneven_steps,
    _every_minute_of_an_hour,
    _short_months,
    _clock_changes,
    _unanchored,
)
