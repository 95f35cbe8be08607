"""Exclude days from a schedule by dates, date ranges, and functions that know the holidays.

Exclusions are kept as text, the same in every process: `2026-12-25`, `2026-12-24..2027-01-01`,
`app.calendar.is_holiday`. Days are counted in the schedule's time zone. A function takes a date and returns whether it
is excluded. Declaring a schedule does not import the function; the first check of a day does.
"""

from __future__ import annotations

import functools
import importlib
import itertools
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, cast

from beat.errors import BadFunction, BadOption
from beat.schedule.functions import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

MOST = 1000
_TO = ".."
_ALLOWED = (
    "a date (date(2026, 12, 25) or '2026-12-25'), a stretch (a pair of dates or '2026-12-24..2027-01-01'), "
    "or a function of a date ('app.calendar.is_holiday')"
)
_PAIR = 2


def read(value: object, name: str = "exclude") -> tuple[str, ...]:
    """Return the exclusions as sorted text without duplicates; raise BadOption for anything else."""
    if value is None or value == ():
        return ()
    alone = isinstance(value, str | date) or callable(value)
    if not alone and not isinstance(value, list | tuple | set | frozenset):
        raise BadOption(f"{name} must be a list, not {type(value).__name__}: each {_ALLOWED}")
    given: Any = value
    each = [given] if alone else list(given)
    if len(each) > MOST:
        raise BadOption(f"{name} has {len(each):,} entries, and may have {MOST:,}: write a function of a date instead")
    return tuple(sorted({_entry(one, name) for one in each}))


def rests(exclude: Iterable[str], day: date) -> bool:
    """Return whether `day` is excluded; raise BadFunction if an exclude function fails."""
    written = day.isoformat()
    return any(
        _asked(one, day) if _is_path(one) else _first(one) <= written <= one.rpartition(_TO)[2] for one in exclude
    )


def words(exclude: Iterable[str]) -> str:
    """Return the exclusions in words: `2026-12-25, 2026-12-31 to 2027-01-01, the days of app.calendar.is_holiday`."""
    shown = [f"the days of {one}" if _is_path(one) else one.replace(_TO, " to ") for one in exclude]
    return ", ".join(shown)


def last_day(exclude: Collection[str]) -> date | None:
    """Return the last excluded date; None if there are no dates, or if a function may add more."""
    days = [one.rpartition(_TO)[2] for one in exclude]
    return date.fromisoformat(max(days)) if days and not functions(exclude) else None


def functions(exclude: Iterable[str]) -> list[str]:
    """Return the dotted paths of the functions among the exclusions."""
    return [one for one in exclude if _is_path(one)]


def _entry(value: object, name: str) -> str:
    if isinstance(value, list | tuple) and len(value) == _PAIR:
        first, last = (_day(one, name) for one in value)
        return _stretch(first, last, name)
    if isinstance(value, str) and _TO in value:
        begin, _, end = value.partition(_TO)
        return _stretch(_day(begin.strip(), name), _day(end.strip(), name), name)
    if isinstance(value, str) and not value[:1].isdigit():
        return _path(value, name)
    return _path(value, name) if callable(value) else _day(value, name).isoformat()


def _path(value: Any, name: str) -> str:
    try:
        return path_of(value, name)
    except BadFunction as e:
        raise BadOption(f"{name}: {e}; it takes {_ALLOWED}") from None


def _stretch(first: date, last: date, name: str) -> str:
    if last < first:
        raise BadOption(f"{name}: the stretch from {first} to {last} ends before it begins")
    return first.isoformat() if first == last else f"{first.isoformat()}{_TO}{last.isoformat()}"


def _day(value: object, name: str) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        if isinstance(value, str) and value.isascii():
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise BadOption(f"{name} {value!r:.60} must be {_ALLOWED}")


def _first(one: str) -> str:
    return one.partition(_TO)[0]


def _is_path(one: str) -> bool:
    return not one[:1].isdigit()


def _asked(path: str, day: date) -> bool:
    try:
        said = function(path)(day)
    except BadFunction:
        raise
    except (Exception, SystemExit) as e:
        raise BadFunction(f"exclude {path!r} failed: {type(e).__name__}: {e!s:.200}") from e
    if not isinstance(said, bool):
        raise BadFunction(f"exclude {path!r} must return True or False, not {said!r:.60}")
    return said


@functools.cache
def function(path: str) -> Callable[[date], Any]:
    """Import the function at a dotted path by trying each possible module part; raise BadFunction if none fits."""
    parts = path.split(".")
    error: Exception | None = None
    for size in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError as e:
            error = error or e
            continue
        for name in itertools.islice(parts, size, None):
            found = getattr(found, name, None)
        if callable(found):
            return cast("Callable[[date], Any]", found)
        break
    raise BadFunction(f"exclude {path!r} cannot be called: {error or 'there is no such function'}")
