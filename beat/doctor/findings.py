"""Define what the doctor finds: a level, a sentence, and a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat.config import shell_quoting

if TYPE_CHECKING:
    from collections.abc import Sequence

OK, NOTE, WARNING, PROBLEM = LEVELS = ("ok", "note", "warning", "problem")
"""`note`: good to know, or not checked. `warning`: it will go wrong one day. `problem`: it goes wrong now."""
RULE = "beat doctor --acl"
"""The command that prints all rights that a user needs."""
_NAMED = 3


class Finding(NamedTuple):
    """One line of the report."""

    group: str
    """The topic: redis, memory, beats, schedules, queues, state or rights."""
    check: str
    """The stable name of the check that found it."""
    level: str
    what: str
    remedy: str = ""
    """A command or setting to paste, or advice; empty where all is well."""


def unseen(group: str, check: str, right: str, what: str) -> Finding:
    """Return the finding for something that could not be read, with the right that this would need."""
    return Finding(group, check, NOTE, f"could not look at {what}: this user lacks {right}", RULE)


def rename(key: str) -> str:
    """Return the command that puts a key of the wrong type out of the way."""
    return f"beat redis -- RENAME {shell_quoting.word(key)} {shell_quoting.word(f'{key}.old')}"


def some(names: Sequence[str], count: int | None = None) -> str:
    """Return the first names and how many more there are, as in `a, b, c and 4 more`."""
    total = len(names) if count is None else count
    shown = names[:_NAMED]
    more = total - len(shown)
    return f"{', '.join(shown)} and {more:,} more" if more else ", ".join(shown)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, as in `1 schedule` or `1,200 schedules`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def size(number: float) -> str:
    """Return a number of bytes with its unit, as in `12 KB` or `3.1 MB`."""
    units = ["TB", "GB", "MB", "KB", "bytes"]
    while number >= _KILO and len(units) > 1:
        number, _ = number / _KILO, units.pop()
    return f"{number:.0f} {units[-1]}" if number >= _TWO_DIGITS or units[-1] == "bytes" else f"{number:.1f} {units[-1]}"


_KILO, _TWO_DIGITS = 1024, 10


def span(seconds: float) -> str:
    """Return a length of time in its largest unit, as in `12s`, `5m`, `3h` or `4d`."""
    for name, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f}{name}"
    return f"{seconds:.0f}s"
