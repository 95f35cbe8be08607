"""What croniter itself reads in an expression: the oracle for schedules that were written for it.

croniter differs from beat: it reads `5-5` as every value of the field, and it has signs that beat lacks.
"""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from beat.timing.cron.fields import DAY, FIVE, SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLUMNS = (*FIVE, SECOND)
_RANDOM = ("h", "r")


class Unreadable(ValueError):
    """An expression that croniter refuses, or in which a field stands for more than a set of values."""


class Expansion(NamedTuple):
    """What one field of an expression admits."""

    values: tuple[int, ...]
    restricts: bool
    """Whether croniter counts the field as one that restricts the dates."""


def expand(expression: str) -> list[Expansion]:
    """Return what each field admits, in croniter's order, which has seconds at the end."""
    from croniter import CroniterError, croniter  # noqa: PLC0415 (slow to load, and few commands need it)

    texts = expression.lower().split()
    for column, text in zip(_COLUMNS, texts, strict=False):
        if text.startswith(_RANDOM):
            raise Unreadable(f"{column.name} {text!r} is not the same in every process")
        if column is DAY and ("w" in text or "l" in text):
            raise Unreadable(f"{column.name} {text!r} is another day in each month")
    try:
        fields, nth = croniter.expand(expression)
    except (CroniterError, ValueError, KeyError) as e:
        raise Unreadable(str(e)) from e
    if nth:
        raise Unreadable("its day-of-week counts the weeks of a month")
    return [_expansion(column.values, field) for column, field in zip(_COLUMNS, fields, strict=False)]


def _expansion(whole: tuple[int, ...], field: Sequence[int | str]) -> Expansion:
    if "*" in field:
        return Expansion(whole, restricts=False)
    return Expansion(tuple(sorted({int(value) for value in field})), restricts=True)


def ticks(expression: str, start: datetime, count: int) -> list[datetime]:
    """Return the first ticks after `start` by croniter's own walk; fewer where it finds no more."""
    from croniter import CroniterError, croniter  # noqa: PLC0415 (slow to load, and few commands need it)

    walk = croniter(expression, start, ret_type=datetime)
    found: list[datetime] = []
    try:
        found.extend(itertools.islice(walk, count))
    except CroniterError:  # it gives up after fifty years without a date
        return found
    return found
