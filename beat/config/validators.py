"""What the values of options may be: the words, numbers and lengths of time that several of them have in common."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, cast

from beat.errors import BadOption, DeclarationError, did_you_mean
from beat.timing import durations

MOST_SECONDS = 10**9
"""RQ and Redis count in seconds and milliseconds; this is 31 years."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_MS, _YEAR = timedelta(milliseconds=1), timedelta(days=366)


def text(value: str) -> str:
    """The plain text of what is text."""
    return str.__str__(value)  # a member of an Enum is text, but prints as its name


def is_number(value: object, least: int) -> bool:
    """Whether it is a whole number, and no less."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST_SECONDS


def one_of(value: object, name: str, allowed: tuple[Any, ...]) -> Any:
    """One of these words."""
    if isinstance(value, str) and value in allowed:
        return text(value)
    written = ", ".join(map(repr, allowed))
    raise BadOption(f"{name} {value!r:.60} must be one of {written}.{did_you_mean(str(value), allowed)}")


def identifier(value: object, name: str) -> str:
    """A name that RQ can carry in a job id and a shell needs not quote."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return text(value)
    raise BadOption(f"{name} {value!r:.120} must be 1 to 100 of the characters A-Z a-z 0-9 _ -, as in 'daily-report'")


def flag(value: object, name: str) -> bool:
    """True or False, not something that looks like it."""
    if isinstance(value, bool):
        return value
    raise BadOption(f"{name} must be True or False, not {value!r:.60}")


def number(value: object, name: str, most: int = 1_000_000) -> int | None:
    """A whole number from 1 on, or none."""
    if value is None or (is_number(value, 1) and cast("int", value) <= most):
        return cast("int | None", value)
    raise BadOption(f"{name} must be a whole number from 1 to {most:,}, not {value!r:.60}")


def span(value: object, name: str, least: timedelta = _MS, most: timedelta = _YEAR) -> timedelta | None:
    """A length of time in whole milliseconds, or none."""
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
