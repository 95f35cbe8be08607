"""Word the errors about cron expressions: each names the field, points at it with carets and suggests a fix."""

from __future__ import annotations

import re
from typing import NamedTuple

from beat.errors import BadCron, did_you_mean
from beat.timing.cron.fields import COMMON_DAY, FIVE, SIX, WEEKDAY, Field

_FOREIGN = {  # characters of other crons that beat does not support → what to write instead
    "?": "write '*' for any value",
    "L": "the last day of a month has no sign here; run on '28-31' and let the job look at the date",
    "W": "the nearest weekday has no sign here; run on 'mon-fri' and let the job look at the date",
    "#": "the n-th weekday has no sign here; write '1-7' for the first week and let the job look at the weekday",
    "R": "a random time would differ from process to process; 'H' is one that the schedule's id decides",
}
_HASH = r"(?ai)[\d/()-]*H(?:[\d/()-].*)?"
_SIGN = r"(?a)[\d/()-]*([?LWR#])[\d/()-]*"


class Word(NamedTuple):
    """A piece of an expression and its position in it."""

    expression: str
    text: str
    start: int

    def part(self, found: re.Match[str], group: str) -> Word:
        """Return the piece of this word that `group` matched."""
        return Word(self.expression, found[group], self.start + found.start(group))

    def refuse(self, problem: str, hint: str = "") -> BadCron:
        """Return an error with carets under this word."""
        return BadCron(self.expression, problem, (self.start, self.start + len(self.text)), hint)


def wrong_number(found: int, columns: tuple[Field, ...]) -> str:
    """Return how many fields the expression has and how many it needs, with their names."""
    names = " ".join(column.name for column in columns)
    if columns is FIVE:
        hint = "; with seconds first, say seconds=True" if found == len(SIX) else ""
        return f"has {found} field{'s' * (found != 1)}, needs five (six with seconds=True): {names}{hint}"
    return f"has {found} field{'s' * (found != 1)}, needs six with seconds=True: {names}"


def unreadable(column: Field, word: Word) -> BadCron:
    """Return the error for a word that its field cannot take, with advice about signs of other crons and `H`."""
    if found := re.fullmatch(_SIGN, word.text.upper()):
        problem = f"{column.name} {word.text!r} uses {found[1]!r}, which beat does not know"
        return word.refuse(problem, f"Note: {_FOREIGN[found[1]]}.")
    if re.fullmatch(_HASH, word.text):
        rule = "is a capital letter" if "h" in word.text else "stands alone or with a range in brackets, a step or both"
        problem = f"{column.name} {word.text!r}: H {rule}"
        some = f"H({column.low}-{column.low + 5})"
        return word.refuse(problem, f"Write 'H', '{some}', 'H/2' or '{some}/2'.")
    names = f" or a name such as {column.names[1]!r}" if column.names else ""
    problem = f"{column.name} {word.text!r} is not a number in {span_of(column)}{names}, a range, a list or a step"
    examples = f"The names are {' '.join(column.names)}." if column.names else "Examples: '5', '1-5', '1,3', '*/5'."
    return word.refuse(problem, _near_name(column, word.text) or examples)


def _near_name(column: Field, text: str) -> str:
    if not column.names or not text.isalpha():
        return ""
    if text[:3].lower() in column.names:
        return f"Did you mean {text[:3].lower()!r}?"
    return did_you_mean(text, column.names).strip()


def turned(column: Field, low: int, high: int) -> str:
    """Return how to write a range whose ends are in the wrong order."""
    if column is WEEKDAY and low == column.highest:
        return f"Sunday at the beginning of a range is 0: write '0-{high}'." if high else "Write '0' for Sunday."
    if column is WEEKDAY and high == 0:
        return f"Sunday at the end of a range is 7: write '{low}-7'."
    return f"Write '{high}-{low}', or '{low}-{column.high},{column.low}-{high}' to wrap around."


def span_of(column: Field) -> str:
    """Return the range of numbers that a field accepts, such as `0-7 (0 and 7 are Sunday)`."""
    notes = {WEEKDAY: " (0 and 7 are Sunday)", COMMON_DAY: " (the days that every month has)"}
    return f"{column.low}-{column.highest}{notes.get(column, '')}"


def out_of_range(column: Field, text: str) -> str:
    """Return what to write instead of a number outside the range of its field."""
    if text in {"24", "60"} and column.low == 0 and int(text) == column.high + 1:
        return f"The {column.name} after {column.high} is 0."
    return f"Write a number from {column.low} to {column.highest}."


def example(columns: tuple[Field, ...]) -> str:
    """Return a sentence with a valid expression of five or six fields."""
    return (
        "Example: '0 9 * * mon-fri' is 09:00, Monday to Friday."
        if columns is FIVE
        else "Example: '30 0 9 * * mon-fri' is 09:00:30."
    )
