"""Read and write the values in ledger lines, and reject every value of another type."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.errors import BadInstant
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

_MOST = 10**15  # above what the scripts in Redis count with
_DEEPEST = 32


class Value(NamedTuple):
    """How to read a value from a line, raising an error if it is invalid, and how to write it."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value
    plain: type | None = None
    """The type that needs no reading, which saves a call per value in a page of thousands of lines."""


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -_MOST < value < _MOST:
        raise TypeError
    return value


def _seconds(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not -_MOST < value < _MOST:
        raise TypeError
    return float(value)


def _mapping(value: Any) -> dict[str, Any]:
    """Return the value if it is a dict that is not nested too deeply to be printed."""
    if not isinstance(value, dict):
        raise TypeError
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        inside = (part for each in level for part in (each.values() if isinstance(each, dict) else each))
        level = [part for part in inside if isinstance(part, dict | list)]
        if not level:
            return value
    raise ValueError


def _garbled(value: Any) -> datetime | None:
    """Read an instant, or return None if it is garbled: the scripts copy a schedule's next_run as it stands."""
    try:
        return clock.read(value)
    except BadInstant:
        return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # JSON has no NaN or Infinity


def either(nothing: str | None, value: Value) -> Value:
    """Return a reader and writer for a value or None; None is written as `nothing`."""
    return Value(
        lambda found: None if found is None or found == nothing else value.read(found),
        lambda own: nothing if own is None else value.write(own),
    )


JSON = json.JSONDecoder(parse_constant=_refuse)
WORD = Value(_word, plain=str)
WHOLE, SECONDS, INSTANT = Value(_whole), Value(_seconds), Value(clock.read, clock.text)
FLAG, MAPPING = Value(lambda value: value is True), Value(_mapping, dict)
MAYBE, GARBLED = either(None, INSTANT), Value(_garbled, clock.text)
