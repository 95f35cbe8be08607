"""The fields of a cron expression: what each is called, what it admits, and the values an expression chose."""

from __future__ import annotations

from typing import NamedTuple

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Field(NamedTuple):
    """One column of an expression."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    """Words for the values, from `low` on."""

    @property
    def values(self) -> tuple[int, ...]:
        """Every value there is (Sunday once, as 0)."""
        return tuple(range(self.low, self.high + 1))

    @property
    def highest(self) -> int:
        """The highest number that may be written: Sunday may be 7."""
        return 7 if self.names is _WEEKDAYS else self.high


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day-of-month", 1, 31)
COMMON_DAY = DAY._replace(high=28)  # those that every month has
MONTH = Field("month", 1, 12, _MONTHS)
WEEKDAY = Field("day-of-week", 0, 6, _WEEKDAYS)

FIVE = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)
SIX = (SECOND, *FIVE)


class Chosen(NamedTuple):
    """The values that an expression admits, sorted: two expressions of one meaning choose the same."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    either: bool
    """A date needs to match only one of `days` and `weekdays`."""
    fixed: bool
    """A fixed time, which DST neither drops nor doubles; otherwise the wall clock is followed."""

    @property
    def daily(self) -> bool:
        """Every date matches."""
        return (self.days, self.months, self.weekdays) == (DAY.values, MONTH.values, WEEKDAY.values)

    @property
    def ever(self) -> bool:
        """Some date matches. Any date there is meets every day of the week within 400 years."""
        return self.either or any(self.days[0] <= _LONGEST[month - 1] for month in self.months)
