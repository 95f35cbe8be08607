"""Look up time zones by name, and cut each into stretches with one UTC offset.

Stretches follow each other without a gap. Each records the highest wall time that the zone's clock had reached before
it. From that, callers can tell which wall times a jump forward skips and which a jump back repeats.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os.path
import re
import zoneinfo
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from beat.errors import BadInstant, BadZone, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = 86_400
_FIRST_YEAR, _LAST_YEAR = 1800, 9990  # tzdata has no older changes; datetime ends at 9999
_LONGEST_ABBREVIATION = 10
_NOT_ZONES = {"localtime", "Factory", "posixrules"}  # files in the zone directory that are not zones
OLD_NAMES = {
    "EST": ("America/New_York", "America/Panama"),
    "MST": ("America/Denver", "America/Phoenix"),
    "HST": ("Pacific/Honolulu",),
    "EST5EDT": ("America/New_York",),
    "CST6CDT": ("America/Chicago",),
    "MST7MDT": ("America/Denver",),
    "PST8PDT": ("America/Los_Angeles",),
    "WET": ("Europe/Lisbon",),
    "CET": ("Europe/Berlin", "Europe/Paris"),
    "MET": ("Europe/Berlin", "Europe/Paris"),
    "EET": ("Europe/Athens", "Europe/Helsinki"),
}
"""Abbreviations that the tz database has as zones, with the cities that people usually mean by them."""
CITIES = {
    "ACDT": ("Australia/Adelaide",),
    "ACST": ("Australia/Adelaide", "Australia/Darwin"),
    "ADT": ("America/Halifax",),
    "AEDT": ("Australia/Sydney",),
    "AEST": ("Australia/Sydney", "Australia/Brisbane"),
    "AKDT": ("America/Anchorage",),
    "AKST": ("America/Anchorage",),
    "AST": ("America/Halifax", "America/Puerto_Rico"),
    "AWST": ("Australia/Perth",),
    "BST": ("Europe/London",),
    "CAT": ("Africa/Maputo",),
    "CDT": ("America/Chicago",),
    "CEST": ("Europe/Berlin", "Europe/Paris"),
    "CST": ("America/Chicago", "Asia/Shanghai"),
    "EAT": ("Africa/Nairobi",),
    "EDT": ("America/New_York",),
    "EEST": ("Europe/Athens", "Europe/Helsinki"),
    "HKT": ("Asia/Hong_Kong",),
    "IST": ("Asia/Kolkata", "Asia/Jerusalem", "Europe/Dublin"),
    "JST": ("Asia/Tokyo",),
    "KST": ("Asia/Seoul",),
    "MDT": ("America/Denver",),
    "MSK": ("Europe/Moscow",),
    "NZDT": ("Pacific/Auckland",),
    "NZST": ("Pacific/Auckland",),
    "PDT": ("America/Los_Angeles",),
    "PKT": ("Asia/Karachi",),
    "PST": ("America/Los_Angeles", "Asia/Manila"),
    "SAST": ("Africa/Johannesburg",),
    "WAT": ("Africa/Lagos",),
    "WEST": ("Europe/Lisbon",),
    "WIB": ("Asia/Jakarta",),
}
"""Abbreviations that are not zones, with cities whose clocks show them for at least part of the year."""
_OFFSET = r"(?ai)(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?"


class Stretch(NamedTuple):
    """A period with one UTC offset, in seconds; `start` and `end` count from the epoch in UTC, `end` is excluded."""

    start: int
    end: int
    offset: int
    reached: int
    """The highest wall time that the zone's clock had reached before `start`."""

    @property
    def opens(self) -> int:
        """Return the wall time at `start`: above `reached` after a jump forward, below it after a jump back."""
        return self.start + self.offset


def version() -> str:
    """Return the release of the time zone data in use, such as `2026b`, or `unknown`."""
    for place in [*zoneinfo.TZPATH, *_packaged()]:
        for name, pattern in (("tzdata.zi", r"# version (\S+)"), ("+VERSION", r"(\S+)")):
            path = os.path.join(place, name)
            with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as file:
                if found := re.match(pattern, file.readline()):
                    return found[1]
    return "unknown"


def _packaged() -> list[str]:
    spec = importlib.util.find_spec("tzdata")
    return [os.path.join(place, "zoneinfo") for place in spec.submodule_search_locations or ()] if spec else []


class Zone:
    """An IANA time zone, cut into stretches year by year; a stretch also ends with its year in UTC."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.info = zoneinfo.ZoneInfo(name)
        self._years: dict[int, tuple[Stretch, ...]] = {}
        self._latest = Stretch(0, 0, 0, 0)  # consecutive calls mostly ask for the same stretch

    def at(self, second: int) -> Stretch:
        """Return the stretch that contains `second`; pass its `end` or `start - 1` to get a neighbour."""
        latest = self._latest
        if latest.start <= second < latest.end:
            return latest
        stretches = self._year(_year_of(second))
        self._latest = latest = next(stretch for stretch in stretches if second < stretch.end)
        return latest

    def offset(self, second: int) -> int:
        """Return the zone's offset from UTC at `second`, in seconds."""
        ahead = datetime.fromtimestamp(second, self.info).utcoffset()
        return ahead.days * DAY + ahead.seconds if ahead else 0

    def _year(self, year: int) -> tuple[Stretch, ...]:
        if year not in self._years:
            self._years[year] = tuple(self._cut(year))
        return self._years[year]

    def _cut(self, year: int) -> Iterator[Stretch]:
        first, end = _new_year(year), _new_year(year + 1)
        # Offsets are shorter than a day, so changes more than two days ago cannot have reached a later wall time.
        reached = max(at + self.offset(at - 1) for at in (first, *self._changes(first - 2 * DAY, first)))
        starts = [first, *(change for change in self._changes(first, end) if change < end)]
        for start, stop in zip(starts, [*starts[1:], end], strict=True):
            offset = self.offset(start)
            yield Stretch(start, stop, offset, reached)
            reached = max(reached, stop + offset)

    def _changes(self, low: int, high: int) -> list[int]:
        """Return the offset changes in `(low, high]`; both bounds are whole days."""
        # One sample per day is enough, because no zone in tzdata ever kept an offset for less than 3.9 days.
        days = range(low, high + 1, DAY)
        offsets = [self.offset(day) for day in days]
        pairs = zip(days, days[1:], offsets, offsets[1:], strict=False)
        return [self._change_between(a, b) for a, b, before, after in pairs if before != after]

    def _change_between(self, low: int, high: int) -> int:
        before = self.offset(low)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.offset(middle) == before else (low, middle)
        return high


def zone(name: str) -> Zone:
    """Return the zone of that name; raise BadZone if there is none."""
    if isinstance(name, str) and (name == "UTC" or name in _listed() or name in names()):
        return _zone(name)
    raise BadZone(f"time zone {name!r:.60} is not known: {_advice(name)}")


_zone = functools.cache(Zone)


@functools.cache
def _listed() -> frozenset[str]:
    """Return the names that the tzdata package lists: nearly all zones, without reading the system's many files."""
    listed: set[str] = set()
    for place in _packaged():
        beside = os.path.join(os.path.dirname(place), "zones")
        with contextlib.suppress(OSError), open(beside, encoding="utf-8") as file:
            listed.update(file.read().split())
    return frozenset(listed - _NOT_ZONES)


@functools.cache
def names() -> frozenset[str]:
    """Return every name that can be used as `tz`."""
    return frozenset(zoneinfo.available_timezones() - _NOT_ZONES)


def _advice(name: object) -> str:
    if not isinstance(name, str):
        return "give the name of an IANA zone, as in tz='Europe/Paris'"
    if found := re.fullmatch(_OFFSET, name.strip()):
        # POSIX signs are reversed: Etc/GMT-2 is two hours ahead of UTC.
        ahead = f"Etc/GMT{'-' if found[1] == '+' else '+'}{int(found[2])}"
        exists = ahead in names() and found[3] in (None, "00")
        always = f"{ahead!r} is always {found[0]}, " if exists else ""
        return f"an offset is not a zone; {always}a city such as 'Europe/Paris' follows its law"
    if name and any(known.startswith(f"{name}/") for known in names()):
        return f"it is a region; name a city in it, such as {min(n for n in names() if n.startswith(f'{name}/'))!r}"
    if name == "localtime":
        return "machines differ in what is local; name the zone, as in tz='Europe/Paris'"
    abbreviation = name.strip().upper() if len(name) < _LONGEST_ABBREVIATION else ""
    if cities := OLD_NAMES.get(abbreviation) or CITIES.get(abbreviation):
        *first, last = map(repr, cities)
        return f"use an IANA name: for {abbreviation}, {' or '.join([*([', '.join(first)] if first else []), last])}"
    cities_and_utc = (known for known in names() if "/" in known or known == "UTC")  # so "CESTT" never suggests EST
    return f"use an IANA name such as 'Europe/Paris'.{did_you_mean(name, cities_and_utc)}"


def note(where: Zone, now: datetime) -> str:
    """Return a warning about a zone named by an abbreviation such as `EST`; return "" for other zones."""
    if where.name not in OLD_NAMES:
        return ""
    offsets = _offsets(where, now)
    cities = OLD_NAMES[where.name]
    if len(offsets) > 1:
        between = " and ".join(_shown(offset) for offset in offsets)
        named = " or ".join(map(repr, cities))
        return f"tz={where.name!r} is an old name, and its clock changes between {between}: write {named}"
    changing = [f"{city!r}, whose clock changes in summer" for city in cities if len(_offsets(zone(city), now)) > 1]
    others = [city for city in cities if len(_offsets(zone(city), now)) == 1]
    steady = [f"{city!r}, whose clock does not{'' if changing else ' change either'}" for city in others]
    return f"tz={where.name!r} is {_shown(offsets[0])} all year: write {', or '.join(changing + steady)}"


def _offsets(where: Zone, now: datetime) -> list[int]:
    """Return the zone's UTC offsets in the coming year, in seconds, lowest first."""
    second = int(now.timestamp())
    end = second + 366 * DAY
    offsets = set()
    while second < end:
        stretch = where.at(second)
        offsets.add(stretch.offset)
        second = stretch.end
    return sorted(offsets)


def _shown(offset: int) -> str:
    sign = "-" if offset < 0 else "+"
    return f"UTC{sign}{abs(offset) // 3600:02}:{abs(offset) // 60 % 60:02}"


def _year_of(second: int) -> int:
    try:
        year = datetime.fromtimestamp(second, UTC).year
    except (OverflowError, ValueError):
        year = 0
    return year


@functools.cache
def _new_year(year: int) -> int:
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        raise BadInstant(f"there are no ticks before the year {_FIRST_YEAR} or after {_LAST_YEAR}")
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
