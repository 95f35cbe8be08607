"""Find the wall times that match an expression, without regard to time zones.

A wall time is an integer: the seconds that a wall clock is past 1970-01-01 00:00:00. Lookups use tables (the minutes
of a day, the dates of a year), so nothing steps from minute to minute.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beat.timing.cron.fields import Chosen

_DAY = 86_400
_EPOCH = date(1970, 1, 1).toordinal()


class WallTimes:
    """The wall times that match an expression, in order."""

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen
        self._daily = chosen.daily
        self._seconds = chosen.seconds
        self._minutes = _minutes(chosen.hours, chosen.minutes)
        self._earliest = self._minutes[0] * 60 + self._seconds[0]
        self._latest = self._minutes[-1] * 60 + self._seconds[-1]
        self._each_day = len(self._minutes) * len(self._seconds)
        self._dates: dict[int, tuple[int, ...]] = {}

    def first(self, low: int, high: int) -> int | None:
        """Return the first match in `[low, high)`, or None."""
        start, second = divmod(low, _DAY)
        day = self._date_from(start, high)
        if day is None:
            return None
        if day == start:
            if second <= self._latest:
                found = day * _DAY + self._time_from(second)
                return found if found < high else None
            day = self._date_from(start + 1, high)
            if day is None:
                return None
        found = day * _DAY + self._earliest
        return found if found < high else None

    def last(self, low: int, high: int) -> int | None:
        """Return the last match in `[low, high)`, or None."""
        start, second = divmod(high, _DAY)
        day = self._date_before(start + 1, low)
        if day == start:
            if second > self._earliest:
                found = day * _DAY + self._time_before(second)
                return found if found >= low else None
            day = self._date_before(start, low)
        if day is None:
            return None
        found = day * _DAY + self._latest
        return found if found >= low else None

    def count(self, low: int, high: int) -> int:
        """Return the number of matches in `[low, high)`."""
        if low >= high:
            return 0
        from_day, from_second = divmod(low, _DAY)
        to_day, to_second = divmod(high, _DAY)
        total = self._dates_between(from_day, to_day) * self._each_day
        if self._matches(from_day):
            total -= self._times_before(from_second)
        if self._matches(to_day):
            total += self._times_before(to_second)
        return total

    # Times within a matching date, as seconds since its midnight.

    def _time_from(self, second: int) -> int:
        minute, second = divmod(second, 60)
        at = bisect_left(self._minutes, minute)
        if self._minutes[at] == minute:
            if second <= self._seconds[-1]:
                return minute * 60 + self._seconds[bisect_left(self._seconds, second)]
            at += 1
        return self._minutes[at] * 60 + self._seconds[0]

    def _time_before(self, second: int) -> int:
        at = self._times_before(second) - 1
        minute, index = divmod(at, len(self._seconds))
        return self._minutes[minute] * 60 + self._seconds[index]

    def _times_before(self, second: int) -> int:
        minute, second = divmod(second, 60)
        at = bisect_left(self._minutes, minute)
        total = at * len(self._seconds)
        if at < len(self._minutes) and self._minutes[at] == minute:
            total += bisect_left(self._seconds, second)
        return total

    # Matching dates, as days since the epoch.

    def _date_from(self, day: int, high: int) -> int | None:
        if self._daily:
            return day
        year = _year(day)
        while True:
            dates = self._in_year(year)
            if dates and day <= dates[-1]:
                return dates[bisect_left(dates, day)]
            year += 1
            if _new_year(year) * _DAY >= high:
                return None

    def _date_before(self, day: int, low: int) -> int | None:
        if self._daily:
            return day - 1
        year = _year(day - 1)
        while True:
            dates = self._in_year(year)
            if dates and day > dates[0]:
                return dates[bisect_left(dates, day) - 1]
            if _new_year(year) * _DAY <= low:
                return None
            year -= 1

    def _dates_between(self, low: int, high: int) -> int:
        if self._daily:
            return high - low
        total, last = 0, _year(high)
        for year in range(_year(low), last + 1):
            dates = self._in_year(year)
            total += bisect_left(dates, high) - bisect_left(dates, low)
        return total

    def _matches(self, day: int) -> bool:
        return self._dates_between(day, day + 1) == 1

    def _in_year(self, year: int) -> tuple[int, ...]:
        dates = self._dates.get(year)
        if dates is None:
            chosen = self._chosen
            dates = self._dates[year] = _dates(year, chosen.days, chosen.months, chosen.weekdays, chosen.either)
        return dates


@functools.lru_cache(1024)
def _minutes(hours: tuple[int, ...], minutes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(hour * 60 + minute for hour in hours for minute in minutes)


@functools.lru_cache(4096)
def _dates(
    year: int,
    days: tuple[int, ...],
    months: tuple[int, ...],
    weekdays: tuple[int, ...],
    either: bool,  # noqa: FBT001 (positional: a key of the cache)
) -> tuple[int, ...]:
    found: list[int] = []
    for month in months:
        first = date(year, month, 1).toordinal()
        following = date(year + month // 12, month % 12 + 1, 1).toordinal()
        for day in range(1, following - first + 1):
            weekday = (first + day - 1) % 7  # an ordinal divisible by 7 is a Sunday
            matches = (day in days, weekday in weekdays)
            if any(matches) if either else all(matches):
                found.append(first + day - 1 - _EPOCH)
    return tuple(found)


def _year(day: int) -> int:
    return date.fromordinal(day + _EPOCH).year


@functools.cache
def _new_year(year: int) -> int:
    return date(year, 1, 1).toordinal() - _EPOCH
