"""Debian's cron, one minute at a time: what every tick of `beat` is compared with.

It imports nothing but the standard library and computes nothing cleverly. It looks at the wall clock of a zone once
per UTC minute (once per UTC second for six fields) and asks what the main loop of Debian's `cron.c` asks. `cron.c`
remembers in `virtualTime` up to which wall time fixed-time jobs have been served, and compares it with the wall clock
each time it wakes:

- the wall clock is ahead of the virtual clock: the fixed-time jobs of every wall minute in (virtual, wall] are run
  now, and the virtual clock is set to the wall clock. In ordinary time that is one minute; after a jump forward it is
  the skipped ones too;
- the wall clock is not ahead of it (it was put back): fixed-time jobs wait, the virtual clock stays where it is;
- in both cases wildcard jobs, those whose minute or hour field begins with `*`, are run for the minute that the wall
  clock shows.

Two things differ from `cron.c`, on purpose: every jump is treated alike (Debian takes one of more than three hours for
a corrected clock, and makes up for one of less than five minutes with wildcard jobs too), and a job that would be
started several times in one minute is one tick, because ticks are distinct instants.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


# --- expressions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expression:
    """An expression that is known to be valid."""

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    wildcard: bool
    """The minute or the hour field begins with `*` (Debian's MIN_STAR and HR_STAR)."""
    both_days: bool
    """A day field begins with `*` (Debian's DOM_STAR and DOW_STAR): dates must match both; otherwise one is enough."""


def parse(text: str, *, seconds: bool = False) -> Expression:
    """Five fields, or six with `seconds`, or a macro."""
    fields = MACROS.get(text.lower(), text).split()
    if not seconds or text.startswith("@"):
        fields = ["0", *fields]
    second, minute, hour, day, month, weekday = fields
    return Expression(
        seconds=_values(second, 0, 59),
        minutes=_values(minute, 0, 59),
        hours=_values(hour, 0, 23),
        days=_values(day, 1, 31),
        months=_values(month, 1, 12, MONTHS),
        weekdays=frozenset(value % 7 for value in _values(weekday, 0, 7, WEEKDAYS)),
        wildcard=minute.startswith("*") or hour.startswith("*"),
        both_days=day.startswith("*") or weekday.startswith("*"),
    )


def _values(field: str, lowest: int, highest: int, names: tuple[str, ...] = ()) -> frozenset[int]:
    numbers = re.sub(r"[a-z]+", lambda name: str(lowest + names.index(name[0])), field.lower())
    found: set[int] = set()
    for item in numbers.split(","):
        span, _, step = item.partition("/")
        first, dash, last = span.partition("-")
        if first == "*":
            low, high = lowest, highest
        else:
            low = int(first)
            high = int(last) if dash else highest if step else low  # `5/15` is `5-59/15`
        found.update(range(low, high + 1, int(step or 1)))
    return frozenset(found)


@cache
def _times_of_day(expression: Expression, step: timedelta) -> frozenset[int]:
    """The times of day that match, counted in steps from midnight."""
    times = (
        timedelta(hours=hour, minutes=minute, seconds=second)
        for hour in expression.hours
        for minute in expression.minutes
        for second in expression.seconds
    )
    return frozenset(time // step for time in times)


@cache
def _date_matches(expression: Expression, day: int) -> bool:
    """`day` is counted from 1 January 1970."""
    date = EPOCH.date() + timedelta(days=day)
    of_month, of_week = date.day in expression.days, date.isoweekday() % 7 in expression.weekdays
    return date.month in expression.months and (of_month and of_week if expression.both_days else of_month or of_week)


# --- the walk --------------------------------------------------------------------------------------------------------


class Look(NamedTuple):
    """One look at the wall clock. Wall times are counted in steps since 1970-01-01 00:00 on that wall."""

    instant: datetime
    wall: int
    served: range
    """The wall times whose fixed-time jobs are run now."""


class Walk(NamedTuple):
    """All the looks at the wall clock of one zone in a window, one per `step`. Expressions can share it."""

    step: timedelta
    looks: tuple[Look, ...]


def walk(zone: ZoneInfo, start: datetime, end: datetime, step: timedelta = MINUTE) -> Walk:
    """Look at the wall clock of `zone` from `start` (a whole minute) until before `end`.

    The walk begins 48 hours early, with a virtual clock that has caught up. That makes the virtual clock right at
    `start`: offsets from UTC are always less than 24 hours, so no wall time that was shown more than 48 hours before
    `start` was higher than the one shown at `start`.
    """
    looks = []
    virtual = None
    for instant in _every(step, start - timedelta(hours=48), end):
        wall, rest = divmod(instant.astimezone(zone).replace(tzinfo=UTC) - EPOCH, step)
        if rest:
            raise ValueError(f"{zone.key} is off by {rest} from whole steps: take a shorter step")
        if virtual is None:
            virtual = wall - 1
        served = range(virtual + 1, wall + 1)  # empty while the wall clock is not ahead of the virtual clock
        virtual = max(virtual, wall)
        if instant >= start:
            looks.append(Look(instant, wall, served))
    return Walk(step, tuple(looks))


def ticks(expression: Expression, walked: Walk) -> list[datetime]:
    """The instants in the window of the walk at which Debian's cron would run `expression`."""
    times, a_day = _times_of_day(expression, walked.step), timedelta(days=1) // walked.step

    def matches(wall: int) -> bool:
        return wall % a_day in times and _date_matches(expression, wall // a_day)

    if expression.wildcard:
        return [look.instant for look in walked.looks if matches(look.wall)]
    every_run = (look.instant for look in walked.looks for wall in look.served if matches(wall))
    return list(dict.fromkeys(every_run))  # several runs in one minute are one tick


def _every(step: timedelta, start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += step


# --- transitions -----------------------------------------------------------------------------------------------------


class Change(NamedTuple):
    """From `instant` on the wall clock runs `offset` ahead of UTC."""

    instant: datetime
    offset: timedelta


def changes(zone: ZoneInfo, start: datetime, end: datetime) -> list[Change]:
    """Every instant in (start, end) at which the offset of `zone` changes.

    They are looked for hour by hour, then halved down to the second. Two changes within one hour that cancel each
    other would be missed; no zone has that.
    """
    found = []
    here, offset = start, _offset(zone, start)
    while here < end:
        there = min(here + HOUR, end)
        if offset != (offset := _offset(zone, there)):
            found.append(_first_with_another_offset(zone, here, there))
        here = there
    return [change for change in found if change.instant < end]


def transitions(zone: ZoneInfo, year: int) -> list[datetime]:
    """The instants in `year` (of UTC) at which the clocks of `zone` change."""
    last_second_before = datetime(year, 1, 1, tzinfo=UTC) - SECOND
    return [change.instant for change in changes(zone, last_second_before, datetime(year + 1, 1, 1, tzinfo=UTC))]


def _first_with_another_offset(zone: ZoneInfo, low: datetime, high: datetime) -> Change:
    before = _offset(zone, low)
    while high - low > SECOND:
        middle = low + (high - low) // SECOND // 2 * SECOND
        if _offset(zone, middle) == before:
            low = middle
        else:
            high = middle
    return Change(high, _offset(zone, high))


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    offset = instant.astimezone(zone).utcoffset()
    if offset is None:
        raise TypeError(f"{zone.key} has no offset")
    return offset
