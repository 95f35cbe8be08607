"""Parse and format durations as people write them: `90`, `"90s"`, `"1h30m"`, `timedelta(minutes=90)`."""

from __future__ import annotations

import functools
import math
import re
from datetime import timedelta

from beat.errors import BadDuration

Duration = timedelta | float | str
"""A duration: seconds, a timedelta, or text such as `15m`."""

_UNITS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_WORDS = {"w": "week", "d": "day", "h": "hour", "m": "minute", "s": "second", "ms": "millisecond"}
_PART = r"(?:(\d{1,12})%s)?"
_SHAPE = "(?a)" + "".join(_PART % unit for unit in _UNITS)
_PLAIN = r"(?a)\d{1,12}(?:\.\d{1,6})?"
_EXAMPLES = "write seconds, a timedelta, or text such as '10s', '15m', '1h30m', '1d', '2w'"


def parse(value: object, name: str = "duration") -> timedelta:
    """Return `value` as a timedelta; raise BadDuration if it is not a duration."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadDuration(f"{name} must be a length of time, not {value!r:.60}: {_EXAMPLES}")
    if isinstance(value, str):
        return _read(value, name)
    if isinstance(value, float) and not math.isfinite(value):
        raise BadDuration(f"{name} must be finite, not {value}: {_EXAMPLES}")
    try:
        return timedelta(seconds=value)
    except OverflowError as e:  # not shown: Python may refuse to print an int this large
        raise BadDuration(f"{name} is beyond every calendar: {_EXAMPLES}") from e


@functools.lru_cache(maxsize=1024)
def _read(value: str, name: str) -> timedelta:
    written = value.strip()
    try:
        if re.fullmatch(_PLAIN, written):
            return timedelta(seconds=float(written))
        if written and (found := re.fullmatch(_SHAPE, written)):
            parts = zip(found.groups(default="0"), _UNITS.values(), strict=True)
            return timedelta(milliseconds=sum(int(number) * unit for number, unit in parts))
    except OverflowError as e:
        raise BadDuration(f"{name} {value[:60]!r} is beyond every calendar: {_EXAMPLES}") from e
    raise BadDuration(f"{name} {value[:60]!r} is not a length of time: {_EXAMPLES} (largest unit first)")


@functools.lru_cache(maxsize=1024)
def short(duration: timedelta) -> str:
    """Return the shortest text that `parse` reads as the same duration, such as `1h30m`."""
    return "".join(f"{number}{unit}" for number, unit in _parts(duration)) or "0s"


def words(duration: timedelta) -> str:
    """Return the duration in words, such as `1 hour 30 minutes`."""
    return " ".join(f"{n} {_WORDS[unit]}{'s' * (n != 1)}" for n, unit in _parts(duration)) or "0 seconds"


def _parts(duration: timedelta) -> list[tuple[int, str]]:
    rest, parts = duration // timedelta(milliseconds=1), []
    for unit, size in _UNITS.items():
        number, rest = divmod(rest, size)
        if number:
            parts.append((number, unit))
    return parts
