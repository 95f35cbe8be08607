"""The fields of an expression as sets of numbers: how to write them, and how to join days of month and of week.

beat joins the two days as Debian's cron does: one of them must match, unless one begins with `*`: then both must.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from beat.errors import DeclarationError
from beat.migrate.result import NotCarried
from beat.timing.cron import Cron
from beat.timing.cron.fields import DAY, SIX, WEEKDAY

if TYPE_CHECKING:
    from collections.abc import Collection

    from beat.timing.cron.fields import Field

_FEW = 4
_WRAPPED = re.compile(r"(\w+)-(\w+)(?:/(\d+))?", re.ASCII)


def written(values: Collection[int], column: Field) -> str:
    """The shortest text for these values: `*`, `0,30`, `9-17`, `5-55/10`."""
    chosen = sorted(values)
    if chosen == list(column.values):
        return "*"
    steps = {b - a for a, b in itertools.pairwise(chosen)}
    if len(chosen) > _FEW and len(steps) == 1 and (step := steps.pop()) > 1:
        return f"{chosen[0]}-{chosen[-1]}/{step}"
    runs: list[list[int]] = []
    for value in chosen:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ",".join(_run(run) for run in runs)


def _run(run: list[int]) -> str:
    return f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run))  # noqa: PLR2004 (two are no range)


def both(days: Collection[int], weekdays: Collection[int]) -> tuple[str, str]:
    """The two fields for dates that match both; refuses the few that no expression can say."""
    day, weekday = written(days, DAY), written(weekdays, WEEKDAY)
    if "*" in (day, weekday):
        return day, weekday
    if DAY.low in days:  # */31 is the first, and begins with a star
        return _starred(f"*/{DAY.high}", set(days) - {DAY.low}, DAY), weekday
    if WEEKDAY.low in weekdays:
        return day, _starred(f"*/{WEEKDAY.high + 1}", set(weekdays) - {WEEKDAY.low}, WEEKDAY)
    raise NotCarried(
        f"it wants the day of the month ({day}) and the day of the week ({weekday}) both to match, and in cron one of "
        f"the two is enough: declare it with the days of the month alone, and exclude= a function of a date that is "
        f"true on the other days of the week"
    )


def _starred(first: str, others: set[int], column: Field) -> str:
    return ",".join([first, written(others, column)] if others else [first])


def either(day: str, weekday: str) -> tuple[str, str]:
    """Return the two fields so that a date needs to match one of them: neither begins with a star."""
    return _unstarred(day, DAY), _unstarred(weekday, WEEKDAY)


def _unstarred(text: str, column: Field) -> str:
    return re.sub(r"\*", f"{column.low}-{column.high}", text)


def kept(text: str, column: Field, values: Collection[int]) -> str:
    """Return the text if beat reads the same values in it, else the values written out."""
    texts = [text if each is column else "*" for each in SIX]
    try:
        chosen = Cron(" ".join(texts), seconds=True).chosen[SIX.index(column)]
    except DeclarationError:
        chosen = ()
    return text if chosen == tuple(sorted(values)) else written(values, column)


def unwrapped(text: str, column: Field) -> str:
    """A field in which no range runs backwards: `fri-mon` is `5,6,0,1`, and `?` is `*`."""
    return "*" if text == "?" else ",".join(_forwards(item, column) for item in text.split(","))


def _forwards(item: str, column: Field) -> str:
    found = _WRAPPED.fullmatch(item)
    low, high = (_number(end, column) for end in found.groups()[:2]) if found else (None, None)
    if not found or low is None or high is None or low <= high or low > column.highest:
        return item
    if found[3]:
        raise NotCarried(f"its {column.name} {item!r} runs backwards in steps, and readers differ there: write a list")
    around = {
        column.low + (each - column.low) % len(column.values) for each in range(low, high + 1 + len(column.values))
    }
    return written(around, column)


def _number(text: str, column: Field) -> int | None:
    if text.isdigit():
        return int(text)
    names = [name.lower() for name in column.names]
    return column.low + names.index(text.lower()) if text.lower() in names else None
