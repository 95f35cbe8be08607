"""Parse the values and steps of a cron field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.timing.cron import errors

if TYPE_CHECKING:
    from beat.timing.cron.errors import Word
    from beat.timing.cron.fields import Field


def value(column: Field, word: Word) -> int:
    """Return the number that a word stands for, given as digits or as a name; raise BadCron if the field lacks it."""
    text = word.text.lower()
    if text in column.names:
        return column.low + column.names.index(text)
    if not text.isdigit():
        raise errors.unreadable(column, word)
    if len(text) > len("00") or not column.low <= int(text) <= column.highest:
        raise word.refuse(
            f"{column.name} {word.text[:20]} is out of range {errors.span_of(column)}",
            errors.out_of_range(column, text),
        )
    return int(text)


def read_step(column: Field, word: Word, example: str = "*/5") -> int:
    """Return the step behind a slash; raise BadCron unless it is a number from 1 to 999."""
    if not word.text.isdigit() or len(word.text) > len("000") or int(word.text) == 0:
        shown = word._replace(text=word.text or "/", start=word.start if word.text else word.start - 1)
        raise shown.refuse(
            f"{column.name} step {word.text[:20]!r} is not a number from 1 to {len(column.values)}",
            f"Write '{example}'.",
        )
    return int(word.text)
