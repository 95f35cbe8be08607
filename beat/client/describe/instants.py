"""Read and write times and durations as people do, in the zone of a schedule."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, NamedTuple

from beat.errors import BadDuration, BadInstant
from beat.timing import clock, durations
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beat.timing.zones import Zone

_OF_DAY = re.compile(r"(\d{1,2}:\d\d(?::\d\d)?)(Z?)", re.ASCII)
_AGO = re.compile(r"(\S.*?)\s*ago")
_WEEK = 7
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_AWAY = {"yesterday": -1, "today": 0, "tomorrow": 1}
_SHORTEST = 3
"""How many letters of the name of a weekday are needed to recognise it."""
_INSTANT, _DAY = timedelta(microseconds=1), timedelta(days=1)
_UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s"))


class Meant(NamedTuple):
    """The instant that a text means, and a note about it."""

    instant: datetime
    note: str = ""


def when(written: str, where: Zone, now: datetime) -> Meant:
    """Read `03:00` (the latest that is past), `yesterday 03:00`, `2026-11-16 03:00`, `2026-11-16T02:00Z` or `2h ago`.

    A time without an offset is in the zone `where`.
    """
    text = dated(written, where, now)
    if _is_day(text):
        day = written.strip()
        raise BadInstant(f"{day!r} is a day, and a tick has a time: write '{day} 03:00'")
    try:
        if found := _AGO.fullmatch(text):
            return Meant((now - durations.parse(found[1].replace(" ", ""))).replace(microsecond=0))
        if found := _OF_DAY.fullmatch(text):
            return _latest(_time(found[1]), zone("UTC") if found[2] else where, now)
        value = datetime.fromisoformat(text)
        return Meant(clock.utc(value)) if value.tzinfo else _wall(value, where)
    except (ValueError, OverflowError) as e:
        raise BadInstant(
            f"{written!r:.60} is not a time: write 03:00, '2026-11-16 03:00' (both in {where.name}), "
            "2026-11-16T02:00Z or '2h ago'"
        ) from e


def coming(written: str, where: Zone, now: datetime, name: str = "--until") -> Meant:
    """Read `2h`, `09:00`, `monday`, `tomorrow 09:00`, `2026-11-20` or `2026-11-20T09:00Z` as a time to come.

    A duration counts from now, and a day means its beginning. A time without an offset is in the zone `where`. The next
    such time is meant; a time that is past is refused.
    """
    text = " ".join(written.split()).removeprefix("in ")
    try:
        meant = _ahead(text, where, now)
    except (ValueError, OverflowError) as e:
        raise BadInstant(
            f"{name} {written!r:.60} is not a time to come: write 2h, 09:00, monday, 'monday 09:00', tomorrow, "
            f"2026-11-20 (all but the first in {where.name}) or 2026-11-20T09:00Z"
        ) from e
    if meant.instant <= now:
        asked, present = both(meant.instant, where), both(now.replace(microsecond=0), where, meant.instant)
        raise BadInstant(f"{name} {written!r:.60} is past: that is {asked}, and now it is {present}")
    return meant


def since(written: str, where: Zone, now: datetime, name: str = "--since") -> datetime:
    """Read `24h` as that long before now, a day as its beginning, and any text that `when` reads."""
    text = dated(written, where, now)
    with contextlib.suppress(BadDuration, BadInstant, OverflowError):
        if _is_day(text):
            return _wall(datetime.fromisoformat(text), where).instant
        if text[-1:].isalpha():  # a number alone has no unit
            return now - durations.parse(text)
    with contextlib.suppress(BadInstant):
        return when(text, where, now).instant
    raise BadInstant(
        f"{name} {written!r:.60} is neither a length of time nor a time: write 24h, 7d, 2026-11-16, yesterday, "
        "'yesterday 09:00' or 2026-11-16T02:00Z"
    )


def until(written: str, where: Zone, now: datetime, name: str = "--to") -> datetime:
    """Read a time as `since` does, but a day as its end."""
    text = dated(written, where, now)
    if _is_day(text):
        with contextlib.suppress(OverflowError):
            return _wall(datetime.fromisoformat(text) + _DAY, where).instant - _INSTANT
    return since(written, where, now, name)


def dated(written: str, where: Zone, now: datetime) -> str:
    """Return the text with a date in place of `today`, `yesterday`, `tomorrow` or the latest weekday of that name.

    A time of day may follow the word. Any other text is returned as it is, stripped.
    """
    text = " ".join(written.split())
    word, _, rest = text.partition(" ")
    of_day = _OF_DAY.fullmatch(rest)
    if rest and not of_day:
        return written.strip()
    today = now.astimezone((zone("UTC") if of_day and of_day[2] else where).info).date()
    days = _named(word.lower(), today)
    if not days:
        return written.strip()
    day = days[0] - timedelta(weeks=days[0] > today and word.lower() != "tomorrow")
    with contextlib.suppress(ValueError):
        return f"{day} {_time(of_day[1])}{of_day[2]}" if of_day else str(day)
    return written.strip()


def both(instant: datetime, where: Zone, beside: datetime | None = None) -> str:
    """Return `Mon 2026-11-16 03:00 Berlin = 02:00Z`, without the day if `beside` is on the same day."""
    own, other = there(instant, where), beside and there(beside, where)
    day = "" if other and other.date() == own.date() else f"{own:%a %Y-%m-%d} "
    if where.name == "UTC":
        return f"{day}{time_of_day(own)} UTC"
    return f"{day}{time_of_day(own)} {place(where)} = {utc(instant, where)}"


def place(where: Zone) -> str:
    """Return the city of the zone, such as `New York`."""
    return where.name.rpartition("/")[2].replace("_", " ")


def local(instant: datetime, where: Zone, *, fine: bool = False) -> str:
    """Return `2026-11-16 03:00`; with `fine`, always with seconds."""
    own = there(instant, where)
    return f"{own.date()} {time_of_day(own, fine=fine)}"


def clock_time(instant: datetime, where: Zone) -> str:
    """Return `03:00:07 CET`, by the clocks of the zone."""
    return f"{there(instant, where):%H:%M:%S %Z}"


def named(instant: datetime, where: Zone, *, fine: bool = False) -> str:
    """Return `03:00 CET`, with the date only if it differs from the date in UTC; empty for UTC."""
    own = there(instant, where)
    day = "" if own.date() == instant.astimezone(UTC).date() else f"{own:%Y-%m-%d} "
    return "" if where.name == "UTC" else f"{day}{time_of_day(own, fine=fine)} {own:%Z}"


def utc(instant: datetime, where: Zone, *, fine: bool = False) -> str:
    """Return `02:00Z`, with the date only if it differs from the date in the zone."""
    here = instant.astimezone(UTC)
    day = "" if here.date() == there(instant, where).date() else f"{here:%Y-%m-%d} "
    return f"{day}{time_of_day(here, fine=fine)}Z"


def near(instant: datetime, where: Zone, now: datetime) -> str:
    """Return `09:00` for today, `Mon 09:00` within a week, and any other time with its date."""
    own = there(instant, where)
    days = (own.date() - there(now, where).date()).days
    day = "" if days == 0 else f"{own:%a} " if 0 < days < _WEEK else f"{own.date()} "
    return f"{day}{time_of_day(own)}"


def span(seconds: float) -> str:
    """Return a duration, such as `4 ms`, `3.14 s`, `1m5s`, `2h` or `3d4h`."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    whole = round(seconds)
    for size, name, part, part_name in _UNITS:
        if whole >= size:
            number, rest = divmod(whole, size)
            return f"{number}{name}" + (f"{rest // part}{part_name}" if rest >= part else "")
    return f"{seconds:.3g} s"


def there(instant: datetime, where: Zone) -> datetime:
    """Return the instant by the clocks of the zone."""
    try:
        return instant.astimezone(where.info)
    except OverflowError:  # the local time may lie beyond the calendar
        return instant


def time_of_day(own: datetime, *, fine: bool = False) -> str:
    """Return `03:00`, with seconds if they are not 0 or `fine` is set."""
    return own.time().isoformat("seconds" if fine or own.second else "minutes")


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _latest(of_day: time, where: Zone, now: datetime) -> Meant:
    """Return the last time at which the zone's clock showed this time of day, or jumped over it."""
    today = now.astimezone(where.info).date()
    meant = _wall(datetime.combine(today, of_day), where)
    return meant if meant.instant <= now else _wall(datetime.combine(today - _DAY, of_day), where)


def _time(written: str) -> time:
    return time.fromisoformat(written if written[2] == ":" else f"0{written}")


def _ahead(text: str, where: Zone, now: datetime) -> Meant:
    """Read what `coming` reads; the result may be past."""
    word, _, rest = text.partition(" ")
    of_day = _OF_DAY.fullmatch(rest or word)
    own = zone("UTC") if of_day and of_day[2] else where
    today = now.astimezone(own.info).date()
    days = [today, today + _DAY] if of_day and not rest else _named(word.lower(), today)
    if days and (of_day or not rest):
        return _first(days, _time(of_day[1]) if of_day else time(), own, now)
    if _is_day(text):
        return _wall(datetime.fromisoformat(text), where)
    if text[:1].isdigit() and text[-1:].isalpha() and text[-1:] != "Z":
        return Meant(now + durations.parse(text.replace(" ", "")))
    value = datetime.fromisoformat(text)
    return Meant(clock.utc(value)) if value.tzinfo else _wall(value, where)


def _named(word: str, today: date) -> list[date]:
    """Return the days that a word may mean, nearest first; none if it names no day."""
    if word in _AWAY:
        return [today + _AWAY[word] * _DAY]
    named = [n for n, name in enumerate(_DAYS) if len(word) >= _SHORTEST and name.startswith(word)]
    away = [(n - today.weekday()) % len(_DAYS) for n in named]
    return [today + (days + weeks) * _DAY for days in away for weeks in (0, len(_DAYS))]


def _first(days: Iterable[date], of_day: time, where: Zone, now: datetime) -> Meant:
    """Return the first future time at which the zone's clock shows this on these days; the last one if all are past."""
    for day in days:
        value = datetime.combine(day, of_day)
        meant = _wall(value, where)
        second = value.replace(tzinfo=where.info, fold=1).astimezone(UTC)
        if meant.instant <= now < second:
            shown = f"{time_of_day(value)} comes twice on {value:%Y-%m-%d} in {where.name}"
            return Meant(second, f"{shown}: this is the second")
        if meant.instant > now:
            break
    return meant


def _wall(value: datetime, where: Zone) -> Meant:
    """Return the instant at which the zone's clock shows this time; a note tells if it is skipped or shown twice."""
    first, second = (value.replace(tzinfo=where.info, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first == second:
        return Meant(first)
    day = f"on {value:%Y-%m-%d} in {where.name}"
    if first < second:
        note = f"{time_of_day(value)} comes twice {day}: this is the first; for the second write {clock.text(second)}"
        return Meant(first, note)
    jump = clock.at(where.at(clock.floor(first)).start)  # a tick that a jump skips runs right after it
    return Meant(jump, f"{time_of_day(value)} does not exist {day}: the clock jumps over it, and this is right after")
