"""Replace `H` in a field by a value derived from the schedule's id, so that daily jobs do not all start at midnight.

The value is a pure function of the id and the field's name. It must stay the same in every process and every version.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from beat.errors import BadCron
from beat.timing.cron import values
from beat.timing.cron.fields import COMMON_DAY, DAY, WEEKDAY

if TYPE_CHECKING:
    from beat.timing.cron.errors import Word
    from beat.timing.cron.fields import Field

_ITEM = r"H(?:\((?P<low>[A-Za-z0-9]+)-(?P<high>[A-Za-z0-9]+)\))?(?:/(?P<step>[A-Za-z0-9]*))?"
_SIGN = r"(?<![A-Za-z])H(?![A-Za-z])"  # not the H of THU


class Span(NamedTuple):
    """The values from `low` to `high`, `step` apart."""

    low: int
    high: int
    step: int


def within(expression: str) -> bool:
    """Return whether a well-formed expression contains `H` and therefore needs an id."""
    return "H" in expression and re.search(_SIGN, expression) is not None


def needs_id(expression: str) -> BadCron:
    """Return the error for an expression with `H` whose ticks were requested without an id."""
    found = re.search(_SIGN, expression)
    return BadCron(
        expression,
        "H needs a schedule's id: it has one in @periodic or in a Schedule",
        found and found.span(),
        f"Alone, write Cron({expression!r}, seed='daily-report').",
    )


def told(seed: str | None, normalised: str) -> str:
    """Return an addition to an error that shows what `H` became for this id; "" without an id."""
    return f" (for the id {seed!r} it is {normalised!r})" if seed is not None else ""


def span(column: Field, item: Word, seed: str | None) -> Span | None:
    """Return the values that `H`, `H(0-29)`, `H/15` or `H(0-29)/10` takes for this seed; None for other items.

    Without a seed, return the whole range, which is enough to reject items that are wrong for every id.
    """
    found = re.fullmatch(_ITEM, item.text) if "H" in item.text else None
    if not found:
        return None
    column = COMMON_DAY if column is DAY else column
    low, high = _range(column, item, found)
    step = None if found["step"] is None else _step(column, item, found, Span(low, high, 1))
    if seed is None:
        return Span(low, high, 1)
    first = low + _number(f"{seed}:{column.name}") % (step or high - low + 1)
    return Span(first, high, step) if step and first + step <= high else Span(first, first, 1)


def _number(text: str) -> int:
    # imported here because it loads OpenSSL, and ordinary expressions should not pay for that
    import hashlib  # noqa: PLC0415

    digest = hashlib.blake2b(text.encode(errors="backslashreplace"), digest_size=8)
    return int.from_bytes(digest.digest(), "big")


def _range(column: Field, item: Word, found: re.Match[str]) -> tuple[int, int]:
    if not found["low"]:
        return column.low, column.high
    low, high = (values.value(column, item.part(found, end)) for end in ("low", "high"))
    if low > high:
        first, last = high, low
        if column is WEEKDAY and high == column.low:  # Sunday at the end of a range is 7, at its beginning 0
            first, last = low, column.highest
        elif column is WEEKDAY and low == column.highest:
            first, last = column.low, high
        raise item.refuse(f"{column.name} range {item.text!r} runs backwards", f"Write 'H({first}-{last})'.")
    return low, high


def _step(column: Field, item: Word, found: re.Match[str], among: Span) -> int:
    step = values.read_step(column, item.part(found, "step"), "H/5")
    one = item.text.partition("/")[0]
    if step == 1:  # ambiguous: to Jenkins H/1 is one value, but readers expect every value
        every = f"{among.low}-{among.high}" if found["low"] else "*"
        raise item.refuse(
            f"{column.name} {item.text!r} does not say whether one {column.name} or every one is meant",
            f"Write {one!r} or {every!r}.",
        )
    if step > among.high - among.low + 1:
        problem = f"{column.name} step {step} is larger than its range {among.low}-{among.high}"
        raise item.refuse(problem, f"Write {one!r} for one value.")
    return step
