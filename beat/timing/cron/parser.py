"""Parse cron expressions, and reject bad ones with the field, carets and a suggestion.

croniter expands lists and steps. It would also accept wrapped ranges, `R`, non-ASCII digits and steps beyond the range.
beat therefore rejects those before croniter sees the expression.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from beat.errors import BadCron, BadOption, did_you_mean
from beat.timing.cron import errors, hashed, values
from beat.timing.cron.errors import Word
from beat.timing.cron.fields import DAY, FIVE, SIX, WEEKDAY, Chosen, Field

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 256
MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_ITEM = re.compile(r"(?P<low>\*|[a-z0-9]+)(?:-(?P<high>[a-z0-9]+))?(?:/(?P<step>[a-z0-9]*))?", re.ASCII | re.IGNORECASE)
_SPAN = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


class Parsed(NamedTuple):
    """A valid expression."""

    chosen: Chosen
    normalised: str
    """The expression with numbers instead of names, macros and `H`, and with sorted lists."""


def parse(expression: str, *, seconds: bool = False, seed: str | None = None) -> Parsed:
    """Parse `expression`; raise BadCron if it is invalid or can never fire.

    `seed` is the id that decides each `H`; without one, `H` stands for its whole range.
    """
    if not isinstance(expression, str):
        raise BadCron(
            repr(expression)[:60],
            f"an expression is text, not {type(expression).__name__}",
            hint=errors.example(FIVE),
        )
    if not isinstance(seed, str | None):
        raise BadOption(f"seed must be text, the id of a schedule, not {seed!r:.60}")
    return _parse(expression, seconds, seed if hashed.within(expression) else None)


@functools.lru_cache(4096)
def _parse(expression: str, seconds: bool, seed: str | None) -> Parsed:  # noqa: FBT001 (positional: a key of the cache)
    _refuse_foreign_text(expression)
    columns = SIX if seconds else FIVE
    words = _split(expression, columns)
    texts = [word.text for word in words]
    if len(words) == 1:  # a macro, which ticks at second 0
        texts = ["0"] * seconds + MACROS[texts[0].lower()].split()
    else:
        texts = [_normalise(column, word, seed) for column, word in zip(columns, words, strict=True)]
    normalised = " ".join(texts)
    chosen = _choose(normalised, columns)
    if not chosen.ever:
        day, month = words[-3], words[-2]
        span = (day.start, month.start + len(month.text))
        raise BadCron(
            expression,
            f"never fires: no month {month.text} has a day {day.text}" + hashed.told(seed, normalised),
            span,
            "The 29th of February is '29 2'.",
        )
    return Parsed(chosen, normalised)


def _refuse_foreign_text(expression: str) -> None:
    if len(expression) > LONGEST:
        raise BadCron(
            expression,
            f"{len(expression):,} characters are too many; {LONGEST} is the most",
            hint=errors.example(FIVE),
        )
    for position, character in enumerate(expression):
        if character != "\t" and not (character.isascii() and character.isprintable()):
            import unicodedata  # noqa: PLC0415 (only errors need it)

            name = unicodedata.name(character, f"U+{ord(character):04X}")
            problem = f"character {position + 1} is {name}; write plain ASCII, with spaces or tabs between the fields"
            raise BadCron(expression, problem, (position, position + 1), errors.example(FIVE))


def _split(expression: str, columns: tuple[Field, ...]) -> list[Word]:
    words = [Word(expression, found[0], found.start()) for found in re.finditer(r"\S+", expression)]
    if words and words[0].text.startswith("@"):
        _check_macro(words[0], expression.strip())
        return words
    if len(words) != len(columns):
        raise BadCron(expression, errors.wrong_number(len(words), columns), hint=errors.example(columns))
    return words


def _check_macro(word: Word, written: str) -> None:
    name = word.text.lower()
    if name == "@every":
        duration = written[len("@every") :].strip() or "5m"
        raise word.refuse("intervals are not cron", f"Write every={duration!r} instead.")
    if name == "@reboot":
        raise word.refuse("a schedule is about time, not about starts", "Call the function when your process starts.")
    if name == "@h":
        raise word.refuse("H is for fields, not a name of its own", "Write 'H * * * *' for once an hour.")
    if name in MACROS and written != word.text:
        raise BadCron(word.expression, f"{word.text} stands alone", (len(word.text), len(written)), f"Write '{name}'.")
    if name not in MACROS:
        raise word.refuse(f"{word.text!r} is not one of {', '.join(MACROS)}", did_you_mean(word.text, MACROS).strip())


def _normalise(column: Field, word: Word, seed: str | None) -> str:
    items = []
    for item in _items(word):
        if picked := hashed.span(column, item, seed):
            items.append(_written(column, *picked))
        elif found := _ITEM.fullmatch(item.text):
            items.append(_normalise_item(column, item, found))
        else:
            raise errors.unreadable(column, item)
    stars = [item for item in items if item.startswith("*")]
    others = sorted(
        {item for item in items if item not in stars}, key=lambda item: (int(re.split("[-/,]", item)[0]), item)
    )
    starred = word.text.startswith("*")  # a leading * decides about DST and days, so it must survive
    if "*" in stars:
        return "*" if starred else f"{column.low}-{column.high}"
    return ",".join(dict.fromkeys([*stars, *others] if starred else [*others, *stars]))


def _items(word: Word) -> Iterator[Word]:
    start = word.start
    for text in word.text.split(","):
        if not text:
            raise BadCron(word.expression, "a comma needs a value on both sides", (start, start + 1), "Write '1,2'.")
        yield Word(word.expression, text, start)
        start += len(text) + 1


def _normalise_item(column: Field, item: Word, found: re.Match[str]) -> str:
    step = values.read_step(column, item.part(found, "step")) if found["step"] is not None else 1
    if found["low"] == "*":
        if found["high"]:
            raise item.refuse(
                f"{column.name} {item.text!r}: '*' is the whole range already", "Write '*' or a range of numbers."
            )
        low, high = column.low, column.high
    else:
        low = values.value(column, item.part(found, "low"))
        high = values.value(column, item.part(found, "high")) if found["high"] else low
        if found["step"] and not found["high"]:  # `5/15` means 5 to the end in steps of 15
            if column is WEEKDAY:
                spans = [f"'{low}-{end}/{step}'" for end in (6, 7) if step <= end - low + 1] or [f"'{low}'"]
                hint = f"Write {' or '.join(spans)}."
                raise item.refuse(f"{column.name} {item.text!r} does not say whether Sunday is meant", hint)
            high = column.high
    if low > high:
        raise item.refuse(f"{column.name} range {item.text!r} runs backwards", errors.turned(column, low, high))
    if step > high - low + 1:
        raise item.refuse(
            f"{column.name} step {step} is larger than its range {low}-{high}", f"Write '{low}' for one value."
        )
    if found["low"] == "*":
        return "*" if step == 1 else f"*/{step}"
    return _written(column, low, high, step)


def _written(column: Field, low: int, high: int, step: int) -> str:
    if column is WEEKDAY and high > column.high:  # write Sunday as 0 instead of 7
        days = sorted({value % 7 for value in range(low, high + 1, step)})
        return "0-6" if len(days) == len(column.values) else ",".join(map(str, days))
    if low == high:
        return str(low)
    return f"{low}-{high}" + (f"/{step}" if step > 1 else "")


@functools.lru_cache(4096)  # separate from _parse: many ids with H make few distinct expressions
def _choose(normalised: str, columns: tuple[Field, ...]) -> Chosen:
    texts = normalised.split()
    found = [_plain(column, text) for column, text in zip(columns, texts, strict=True)]
    if not all(found):
        found = _expand(normalised, columns)
    *seconds, minutes, hours, days, months, weekdays = found
    minute_text, hour_text, day_text, _, weekday_text = texts[-5:]
    either = not (day_text.startswith("*") or weekday_text.startswith("*"))
    if either and (days == DAY.values or weekdays == WEEKDAY.values):
        days, weekdays, either = DAY.values, WEEKDAY.values, False
    return Chosen(
        seconds=seconds[0] if seconds else (0,),
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays,
        either=either,
        fixed=not (minute_text.startswith("*") or hour_text.startswith("*")),
    )


def _plain(column: Field, text: str) -> tuple[int, ...]:
    """Return the values of `*`, a number or a range; () for anything else."""
    if text == "*":
        return column.values
    found = _SPAN.fullmatch(text)
    return tuple(range(int(found[1]), int(found[2] or found[1]) + 1)) if found else ()


def _expand(normalised: str, columns: tuple[Field, ...]) -> list[tuple[int, ...]]:
    # imported here because loading it takes a fifth of the start of `beat next`
    from croniter import CroniterError, croniter  # noqa: PLC0415

    try:
        expanded, _ = croniter.expand(normalised, second_at_beginning=columns is SIX)
    except (CroniterError, ValueError, KeyError) as e:
        raise BadCron(normalised, f"croniter cannot read it: {e}", hint=errors.example(columns)) from e
    if columns is SIX:
        expanded = [expanded[-1], *expanded[:-1]]  # croniter returns seconds last
    return [
        column.values if "*" in chosen else tuple(sorted({int(value) for value in chosen}))
        for column, chosen in zip(columns, expanded, strict=True)
    ]
