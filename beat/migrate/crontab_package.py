"""Read cron fields as the package `crontab` does, with which rq-scheduler computes its next runs.

The package differs from beat: `sun-sun` means every day of the week, and a step may exceed its range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.migrate.result import NotCarried
from beat.timing.cron.fields import DAY, WEEKDAY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beat.timing.cron.fields import Field

_ANY = {"*", "?"}
_MOVING = ("l", "z")
"""Prefixes for the last day of a month, the last Friday of a month, or a day some days before its end."""


def values(text: str, column: Field) -> frozenset[int]:
    """Return the values of a field; raise NotCarried for what the package rejects, or what varies by month."""
    items = text.lower().split(",")
    if any(item.startswith(_MOVING) for item in items):
        raise NotCarried(f"its {column.name} {text!r:.60} is another day in each month")
    chosen = {value for item in items for value in _item(item, column)}
    return frozenset(column.values if _ANY.intersection(items) else chosen)


def _item(item: str, column: Field) -> Iterable[int]:
    if item == "*" or (item == "?" and column in (DAY, WEEKDAY)):
        return column.values
    span, slash, steps = item.partition("/")
    step = _number(steps, item, column) if slash else None
    low, dash, high = span.partition("-")
    if dash:
        first, last = _value(low, item, column), _value(high, item, column)
        last = column.highest if column is WEEKDAY and last == 0 else last
    elif low == "*":
        first, last = column.low, column.high
    else:
        first = _value(low, item, column)
        last = first if step is None else column.high
    if first > last or (step is not None and not 0 < step <= column.highest - first):
        raise _refused(item, column)
    found = range(first, last + 1, step or 1)
    return [value % len(column.values) for value in found] if column is WEEKDAY else found


def _value(text: str, item: str, column: Field) -> int:
    if text in column.names:
        return column.low + column.names.index(text)
    if not text.isdigit() or not column.low <= (value := _number(text, item, column)) <= column.highest:
        raise _refused(item, column)
    return value


def _number(text: str, item: str, column: Field) -> int:
    try:
        return int(text)
    except ValueError:
        raise _refused(item, column) from None


def _refused(item: str, column: Field) -> NotCarried:
    return NotCarried(f"its {column.name} {item!r:.60} is nothing that rq-scheduler reads")
