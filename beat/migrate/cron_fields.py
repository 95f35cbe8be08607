"""Write fields of a cron expression from sets of numbers, and combine days of the month with days of the week.

beat combines the two day fields as Debian's cron does: a date must match one of them, or both if either field begins
with `*`.
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
    """Return the shortest text for these values, as in `*`, `0,30`, `9-17` or `5-55/10`."""
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
    return f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run))  # noqa: PLR2004 (a range needs three)


def both(days: Collection[int], weekdays: Collection[int]) -> tuple[str, str]:
    """Return the two day fields for dates that match both; raise NotCarried if no expression can say that."""
    day, weekday = written(days, DAY), written(weekdays, WEEKDAY)
    if "*" in (day, weekday):
        return day, weekday
    if DAY.low in days:  # */31 means day 1, and begins with a star
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
    """Return the two day fields for dates that match at least one of them, so neither field begins with a star."""
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
    """Return the field without ranges that run backwards: `fri-mon` becomes `5,6,0,1`, and `?` becomes `*`."""
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
