"""Convert Celery's schedules to beat's rules.

In Celery a date must match day of the month, month and day of the week; a range may run backwards, names may be written
out, and intervals count from the last run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from beat.migrate import cron_fields
from beat.migrate.result import NotCarried
from beat.timing import durations
from beat.timing.cron.fields import DAY, HOUR, MINUTE, MONTH, WEEKDAY
from beat.timing.interval import Every

if TYPE_CHECKING:
    from beat.timing.cron.fields import Field

_STEP = re.compile(r"\*/(\d+)", re.ASCII)
_RANGE = re.compile(r"(?P<low>\w+?)-(?P<high>\w+)(?:/(?P<step>\w*))?")
_STAR = re.compile(r"\*(?:/(?P<step>\w*)|$)")
_NAMES = {name: number for column in (WEEKDAY, MONTH) for number, name in enumerate(column.names, start=column.low)}
_FIVE = 5
_RELATIVE = {
    timedelta(days=1): "0 0 * * *",
    timedelta(hours=1): "0 * * * *",
    timedelta(minutes=1): "* * * * *",
}


class Rule(NamedTuple):
    """A rule of beat's; a cron expression is in the zone of the application."""

    cron: str | None = None
    every: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Crontab:
    """Celery's `crontab`, with its parameters in Celery's order."""

    minute: object = "*"
    hour: object = "*"
    day_of_week: object = "*"
    day_of_month: object = "*"
    month_of_year: object = "*"
    nowfun: object = None
    app: object = None

    @classmethod
    def from_string(cls, text: str) -> Crontab:
        """Return the crontab for five fields in the order of crontab(5)."""
        words = text.split(" ")
        if len(words) != _FIVE:
            raise ValueError(f"{text!r} has not five fields")
        minute, hour, day, month, weekday = words
        return cls(minute, hour, weekday, day, month)

    def rule(self) -> Rule:
        """Return beat's rule; raise NotCarried if there is none."""
        if self.nowfun is not None:
            raise NotCarried("it has a clock of its own, nowfun=")
        days, weekdays = _chosen(self.day_of_month, DAY), _chosen(self.day_of_week, WEEKDAY)
        alone = len(days) == len(DAY.values) or len(weekdays) == len(WEEKDAY.values)
        if alone:
            day, weekday = _text(self.day_of_month, DAY), _text(self.day_of_week, WEEKDAY)
        else:
            day, weekday = cron_fields.both(days, weekdays)
        minute, hour, month = (
            _text(self.minute, MINUTE), _text(self.hour, HOUR), _text(self.month_of_year, MONTH),
        )  # fmt: skip
        note = "Celery wants both days to match: so does beat, where one of the two fields begins with a star"
        return Rule(cron=f"{minute} {hour} {day} {month} {weekday}", note="" if alone else note)


@dataclass(frozen=True)
class Interval:
    """Celery's `schedule`, which also stands for a plain number or timedelta."""

    run_every: object = None
    relative: bool = False
    nowfun: object = None
    app: object = None

    def rule(self) -> Rule:
        """Return beat's rule; raise NotCarried if there is none."""
        if self.nowfun is not None:
            raise NotCarried("it has a clock of its own, nowfun=")
        period = Every(self.run_every).period  # type: ignore[arg-type]  # raises for what is not a duration
        if self.relative and period in _RELATIVE:
            return Rule(cron=_RELATIVE[period])
        note = "relative=True rounds to a full day, hour or minute after the last run; beat counts from the epoch"
        return Rule(every=durations.short(period), note=note if self.relative else "")


@dataclass(frozen=True)
class Solar:
    """Celery's `solar`."""

    event: object = None
    lat: object = None
    lon: object = None
    nowfun: object = None
    app: object = None

    def rule(self) -> Rule:
        """Raise NotCarried, because beat knows no solar times."""
        raise NotCarried(f"it follows the sun ({self.event!s:.40}), which beat does not know: use a fixed time")


Schedule = Crontab | Interval | Solar


def schedule(value: object, *, relative: bool = False) -> Schedule:
    """Return the schedule for a value read from a file: a schedule, a number of seconds or a timedelta."""
    if isinstance(value, Crontab | Interval | Solar):
        return value
    if isinstance(value, int | float | timedelta) and not isinstance(value, bool):
        return Interval(value, relative)
    raise NotCarried(f"its schedule is {value!r:.60}, which is neither seconds, nor a timedelta, nor a crontab")


def from_celery(value: object, *, relative: bool = False) -> Schedule:
    """Return the schedule for an object of Celery, recognized by the names of its classes; Celery is not imported."""
    kinds = {kind.__name__ for kind in type(value).__mro__}
    clock = getattr(value, "nowfun", None)
    if "crontab" in kinds:
        names = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
        said = {name: getattr(value, f"_orig_{name}", getattr(value, name, "*")) for name in names}
        return Crontab(**said, nowfun=clock)
    if "solar" in kinds:
        return Solar(getattr(value, "event", None))
    if "schedule" in kinds:
        return Interval(getattr(value, "run_every", None), bool(getattr(value, "relative", False)), nowfun=clock)
    return schedule(value, relative=relative)


def _text(spec: object, column: Field) -> str:
    """Return the field as written if it is a step that beat reads alike, which keeps the star; else its values."""
    chosen = _chosen(spec, column)
    found = _STEP.fullmatch(spec) if isinstance(spec, str) else None
    if found and 1 < int(found[1]) <= len(column.values):
        return str(spec)
    return cron_fields.written(chosen, column)


def _chosen(spec: object, column: Field) -> frozenset[int]:
    """Return the values that Celery's crontab_parser reads."""
    if isinstance(spec, str):
        values = {value for part in spec.split(",") for value in _part(part, column)}
    elif isinstance(spec, int) and not isinstance(spec, bool):
        values = {spec}
    elif isinstance(spec, Iterable):
        values = set(spec)
    else:
        raise NotCarried(f"its {column.name} {spec!r:.60} is neither a number, nor text, nor a list of numbers")
    if not values or not all(type(value) is int and column.low <= value <= column.high for value in values):
        raise NotCarried(f"its {column.name} {spec!r:.60} is not within {column.low} to {column.high}")
    return frozenset(values)


def _part(part: str, column: Field) -> Iterable[int]:
    """Return the values of one item of a list; Celery ignores what follows a range or a step, as in `1-5.5`."""
    found = _RANGE.match(part) or _STAR.match(part)
    if not found:
        return [_number(part, column)]
    step = "1" if found["step"] is None else found["step"]
    if not step.isdecimal() or int(step) == 0:
        raise NotCarried(f"its {column.name} {part!r:.60} is nothing that Celery reads")
    if found.re is _STAR:
        return column.values[:: int(step)]
    low, high = (_number(found[end], column) for end in ("low", "high"))
    backwards = [*range(low, column.high + 1), *range(column.low, high + 1)]
    return (backwards if high < low else range(low, high + 1))[:: int(step)]


def _number(text: str, column: Field) -> int:
    """Return a number, or that of a month or day by its name, of which Celery reads the first three letters."""
    number: int | None
    try:
        number = int(text)
    except ValueError:
        number = _NAMES.get(text[:3].lower())
    if number is None or text.startswith("-"):
        raise NotCarried(
            f"its {column.name} {text!r:.60} is nothing that Celery reads: "
            "it is no number, and the name of no day or month"
        )
    if not column.low <= number <= column.high:
        raise NotCarried(f"its {column.name} {text!r:.60} is not within {column.low} to {column.high}")
    return number
