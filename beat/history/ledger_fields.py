"""What stands in the lines of a ledger: words, numbers, instants, each of which may be anything at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.errors import BadInstant
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

_MOST = 10**15  # more digits than Redis' scripts count with
_DEEPEST = 32


class Value(NamedTuple):
    """How a value comes out of a line, or is refused with an error; and how it is written."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value
    plain: type | None = None
    """What needs no reading: there are thousands of lines to a page."""


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
    """As it is, unless it is so deep that whoever prints it could not."""
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
    """What next_run was is copied as it was, whatever somebody had written there."""
    try:
        return clock.read(value)
    except BadInstant:
        return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are no JSON


def either(nothing: str | None, value: Value) -> Value:
    """The value, or None, which is written as `nothing`."""
    return Value(
        lambda found: None if found is None or found == nothing else value.read(found),
        lambda own: nothing if own is None else value.write(own),
    )


JSON = json.JSONDecoder(parse_constant=_refuse)
WORD = Value(_word, plain=str)
WHOLE, SECONDS, INSTANT = Value(_whole), Value(_seconds), Value(clock.read, clock.text)
FLAG, MAPPING = Value(lambda value: value is True), Value(_mapping, dict)
MAYBE, GARBLED = either(None, INSTANT), Value(_garbled, clock.text)
