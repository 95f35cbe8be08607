"""Find valid schedules that can never run or that may surprise, for `beat check`.

Each rule looks at one schedule, and says in a sentence what will happen and what to write instead.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from beat.errors import BadFunction, BadInstant
from beat.policies import jitter_and_capacity
from beat.schedule import exclusions
from beat.timing import clock, durations, zones
from beat.timing.cron import Cron
from beat.timing.cron.fields import DAY, FIVE, HOUR, MINUTE, MONTH, SECOND, SIX
from beat.timing.interval import Every

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from beat.schedule.schedule import Schedule

_AHEAD = timedelta(days=400)  # includes both clock changes of the coming year
_DAY = timedelta(days=1)
_FOR_EVER = -1
_LOOKED_AT = 100  # how many ticks to examine for the shortest interval
_NOT_IN_EVERY_MONTH = 29


@dataclass(frozen=True)
class Finding:
    """A message about one schedule."""

    level: Literal["problem", "warning"]
    schedule: Schedule
    message: str


def lint(schedules: Iterable[Schedule], now: datetime) -> list[Finding]:
    """Return all findings about the schedules, in the order of the schedules."""
    found: list[Finding] = []
    calls: dict[str, Schedule] = {}
    for schedule in schedules:
        if problems := [Finding("problem", schedule, message) for message in _over(schedule, now)]:
            found += problems  # a schedule that never runs needs no more findings
            continue
        found += [Finding("problem", schedule, message) for message in _unimportable(schedule)]
        found += [Finding("warning", schedule, message) for message in _surprises(schedule, now)]
        if schedule.enabled and (twin := calls.setdefault(_call(schedule), schedule)) is not schedule:
            message = (
                f"it calls {schedule.func} with the same arguments as {twin.id!r} ({twin.declared}): are both meant?"
            )
            found.append(Finding("warning", schedule, message))
    return found


def _surprises(schedule: Schedule, now: datetime) -> Iterator[str]:
    for policy in (_late, _stuck, _rested, _scattered):
        yield from policy(schedule, now)
    timing, horizon = schedule.timing, now + _AHEAD
    if isinstance(timing, Every):
        yield from _unanchored(timing, now)
    if isinstance(timing, Cron) or schedule.exclude:  # the time zone decides the ticks or the days
        yield from filter(None, [zones.note(zones.zone(schedule.tz or "UTC"), now)])
    if isinstance(timing, Cron):
        for rule in (_both_days, _uneven_steps, _too_often, _short_months):
            yield from rule(timing)
        yield from _clock_changes(timing, max(now, schedule.start or now), min(horizon, schedule.end or horizon))


def _over(schedule: Schedule, now: datetime) -> Iterator[str]:
    begin = max(now, schedule.start or now)
    try:
        tick = schedule.after(now)
    except BadInstant as e:
        yield f"no tick lies after {clock.text(begin)}: {e}"
        return
    if schedule.end and schedule.end <= now:
        yield f"its end {clock.text(schedule.end)} is past: it will not run again; remove it, or move its end"
    elif schedule.end and tick is None:
        yield f"no tick lies between {clock.text(begin)} and its end {clock.text(schedule.end)}"


def _both_days(cron: Cron) -> Iterator[str]:
    day, weekday = cron.normalised.split()[-3::2]
    both = f"day-of-month {day!r} and day-of-week {weekday!r}"
    if cron.chosen.either:
        yield (
            f"{both} are both set: it runs when either matches, as in cron; "
            "set one to '*' if both must match, and let the job look at the other"
        )
    elif not (day.startswith("*") or weekday.startswith("*")):
        yield f"{both} are both set and one of them is every day, so that it runs every day: write '*' for that one"
    elif "*" not in (day, weekday):
        yield f"{both} must both match, because one begins with '*'"


def _uneven_steps(cron: Cron) -> Iterator[str]:
    texts = cron.normalised.split()
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


def _too_often(cron: Cron) -> Iterator[str]:
    seconds, minutes, hours, *_ = cron.chosen
    if minutes == MINUTE.values and len(hours) == 1:
        times = len(seconds) * len(minutes)
        yield f"it runs {times:,} times, from {hours[0]:02}:00 to {hours[0]:02}:59; for once an hour write minute '0'"
    if seconds == SECOND.values and len(minutes) == 1:
        yield f"it runs {len(seconds)} times in the minute :{minutes[0]:02}; for once a minute write second '0'"


def _short_months(cron: Cron) -> Iterator[str]:
    chosen = cron.chosen
    day = chosen.days[0]
    if chosen.either or day < _NOT_IN_EVERY_MONTH:
        return
    if chosen.months == (2,):
        yield "the 29th of February comes only in leap years"
    elif missing := [month for month in chosen.months if month == 2 or (month in (4, 6, 9, 11) and day > 30)]:  # noqa: PLR2004 (the calendar)
        names = ", ".join(MONTH.names[month - 1] for month in missing)
        leap = ", but not in leap years" if day == _NOT_IN_EVERY_MONTH else ""
        yield f"months without a day {day} are left out ({names}{leap})"


def _clock_changes(cron: Cron, begin: datetime, end: datetime) -> Iterator[str]:
    if cron.chosen.hours == HOUR.values:
        return
    said = {
        "moved": "does not exist in {tz} on {day}, when the clock jumps forward: it runs right after the jump",
        "dropped": "does not exist in {tz} on {day}, when the clock jumps forward: it does not run; "
        "with neither minute nor hour beginning with '*' it would, right after the jump",
        "repeated": "comes twice in {tz} on {day}: it runs both times; "
        "with neither minute nor hour beginning with '*' it would run once",
    }
    shifts = list(cron.shifts(begin, end))
    for kind, sentence in said.items():
        for shift in shifts:
            if shift.kind == kind:
                yield f"{shift.first:%H:%M} " + sentence.format(tz=cron.tz, day=f"{shift.first:%Y-%m-%d}")
                break


def _unanchored(every: Every, now: datetime) -> Iterator[str]:
    if every.period >= _DAY and every.start is None and not every.phase:
        yield (
            f"every={durations.short(every.period)!r} is counted from 1970-01-01T00:00:00Z, so that it next runs at "
            f"{clock.text(every.after(now))}; say start= to choose the time"
        )


def _unimportable(schedule: Schedule) -> Iterator[str]:
    for path in exclusions.functions(schedule.exclude):
        try:
            exclusions.function(path)
        except BadFunction as e:
            yield f"{e}: no tick could be decided"
        except Exception as e:  # noqa: BLE001 (the user's module may raise anything)
            yield f"exclude {path!r} cannot be imported: {type(e).__name__}: {e!s:.200}: no tick could be decided"


def _late(schedule: Schedule, _now: datetime) -> Iterator[str]:
    window, late = schedule.catchup_window, schedule.misfire_after
    if window and late and window < late:
        yield (
            f"catchup_window={durations.short(window)!r} is shorter than misfire_after={durations.short(late)!r}: "
            "a tick between the two is not missed yet, and is dropped all the same"
        )


def _stuck(schedule: Schedule, _now: datetime) -> Iterator[str]:
    if schedule.overlap in {"skip", "wait"} and schedule.job_timeout == _FOR_EVER:
        held = "skipped" if schedule.overlap == "skip" else "kept waiting or skipped"
        yield (
            f"with overlap={schedule.overlap!r} and job_timeout=-1 a run that hangs has every later tick {held}: "
            "say how long a run may take"
        )


def _rested(schedule: Schedule, now: datetime) -> Iterator[str]:
    last = exclusions.last_day(schedule.exclude)
    if last and last < jitter_and_capacity.day_of(schedule, now):
        yield f"the last day of its exclude, {last}, is past: it rests no more"


def _scattered(schedule: Schedule, now: datetime) -> Iterator[str]:
    ticks = itertools.islice(schedule.ticks(now, now + _AHEAD), _LOOKED_AT) if schedule.jitter else ()
    gap = min((later - earlier for earlier, later in itertools.pairwise(ticks)), default=None)
    if gap and schedule.jitter and schedule.jitter > gap:
        yield (
            f"jitter={durations.short(schedule.jitter)!r} is longer than the {durations.short(gap)} between its ticks: "
            "each goes after the one before it, so that several may come at once"
        )


def _call(schedule: Schedule) -> str:
    definition = schedule.definition()
    return json.dumps([definition[name] for name in ("func", "args", "kwargs")])
