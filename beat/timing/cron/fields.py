"""Define the fields of a cron expression: their names, their ranges, and the values that an expression chose."""

from __future__ import annotations

from typing import NamedTuple

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Field(NamedTuple):
    """One field of cron expressions."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    """Names of the values, from `low` up."""

    @property
    def values(self) -> tuple[int, ...]:
        """Return every value of the field; Sunday is only 0."""
        return tuple(range(self.low, self.high + 1))

    @property
    def highest(self) -> int:
        """Return the highest number that the field accepts; Sunday may be written as 7."""
        return 7 if self.names is _WEEKDAYS else self.high


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day-of-month", 1, 31)
COMMON_DAY = DAY._replace(high=28)  # the days that every month has
MONTH = Field("month", 1, 12, _MONTHS)
WEEKDAY = Field("day-of-week", 0, 6, _WEEKDAYS)

FIVE = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)
SIX = (SECOND, *FIVE)


class Chosen(NamedTuple):
    """The values that an expression accepts, sorted; expressions with the same meaning have equal values."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    either: bool
    """Whether a date needs to match only one of `days` and `weekdays`."""
    fixed: bool
    """Whether this is a fixed time, which DST neither drops nor repeats, or one that follows the wall clock."""

    @property
    def daily(self) -> bool:
        """Return whether every date matches."""
        return (self.days, self.months, self.weekdays) == (DAY.values, MONTH.values, WEEKDAY.values)

    @property
    def ever(self) -> bool:
        """Return whether any date matches; within 400 years, every date of the year falls on every weekday."""
        return self.either or any(self.days[0] <= _LONGEST[month - 1] for month in self.months)
