"""Validate the kinds of values that several options share: words, names, flags, numbers and durations.

Each validator returns the value in the form that a schedule keeps, or raises BadOption with the option's name.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, cast

from beat.errors import BadOption, DeclarationError, did_you_mean
from beat.timing import durations

MOST_SECONDS = 10**9
"""The largest number of seconds that beat passes to RQ and Redis: about 31 years."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_MS, _YEAR = timedelta(milliseconds=1), timedelta(days=366)


def text(value: str) -> str:
    """Return a plain str for any instance of str."""
    return str.__str__(value)  # str() of a str Enum member would be its name


def is_number(value: object, least: int) -> bool:
    """Return whether `value` is an int from `least` to MOST_SECONDS; a bool is not."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST_SECONDS


def one_of(value: object, name: str, allowed: tuple[Any, ...]) -> Any:
    """Return `value` if it is one of the `allowed` words."""
    if isinstance(value, str) and value in allowed:
        return text(value)
    written = ", ".join(map(repr, allowed))
    raise BadOption(f"{name} {value!r:.60} must be one of {written}.{did_you_mean(str(value), allowed)}")


def identifier(value: object, name: str) -> str:
    """Return `value` if it is a name that fits into an RQ job id and needs no quotes in a shell."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return text(value)
    raise BadOption(f"{name} {value!r:.120} must be 1 to 100 of the characters A-Z a-z 0-9 _ -, as in 'daily-report'")


def flag(value: object, name: str) -> bool:
    """Return `value` if it is True or False; truthy values such as 1 do not count."""
    if isinstance(value, bool):
        return value
    raise BadOption(f"{name} must be True or False, not {value!r:.60}")


def number(value: object, name: str, most: int = 1_000_000) -> int | None:
    """Return `value` if it is None or an int from 1 to `most`."""
    if value is None or (is_number(value, 1) and cast("int", value) <= most):
        return cast("int | None", value)
    raise BadOption(f"{name} must be a whole number from 1 to {most:,}, not {value!r:.60}")


def span(value: object, name: str, least: timedelta = _MS, most: timedelta = _YEAR) -> timedelta | None:
    """Return `value` as a timedelta in whole milliseconds between `least` and `most`, or None."""
    if value is None:
        return None
    try:
        duration = durations.parse(value, name)
    except DeclarationError:
        duration = timedelta(0)
    if least <= duration <= most and not duration % _MS:
        return duration
    allowed = f"{durations.short(least)} to {durations.short(most)}"
    raise BadOption(f"{name} {value!r:.60} must be a length of time from {allowed}, as in '30s', '15m', '1h30m'")
