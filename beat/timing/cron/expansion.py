"""Read cron expressions exactly as croniter does, to migrate schedules that were written for it.

croniter differs from beat: it reads `5-5` as every value of the field, and it supports signs that beat does not.
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
    """An expression that croniter rejects, or in which a field is more than a fixed set of values."""


class Expansion(NamedTuple):
    """The values that one field of an expression accepts."""

    values: tuple[int, ...]
    restricts: bool
    """Whether croniter treats the field as a restriction rather than as `*`."""


def expand(expression: str) -> list[Expansion]:
    """Return the values of each field in croniter's order, which has seconds last; raise Unreadable."""
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
    """Return the first `count` ticks after `start` as croniter computes them, or fewer if there are no more."""
    from croniter import CroniterError, croniter  # noqa: PLC0415 (slow to load, and few commands need it)

    walk = croniter(expression, start, ret_type=datetime)
    found: list[datetime] = []
    try:
        found.extend(itertools.islice(walk, count))
    except CroniterError:  # croniter gives up after 50 years without a match
        return found
    return found
