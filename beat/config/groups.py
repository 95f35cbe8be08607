"""Define groups: schedules that share one capacity.

Redis keeps the limits of a group as one line such as `wait 5 1000`: what happens to a tick when the group is full, how
many runs may be in progress, and how many ticks may wait. An operator can change the line, with immediate effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Required, TypedDict, cast, get_args

from beat.config import validators
from beat.errors import BadOption, did_you_mean

WhenFull = Literal["wait", "skip"]
MOST_RUNNING = 1000
MOST_WAITING = 1000
_LINE = r"(?a)(wait|skip) (\d{1,4})(?: (\d{1,4}))?"
"""The pattern of the line; the Lua scripts parse the same format."""


@dataclass(frozen=True)
class Group:
    """The limits of a group: at most `max_running` runs at once, and what happens to a tick when it is full."""

    name: str
    max_running: int
    when_full: WhenFull = "wait"
    max_waiting: int = MOST_WAITING

    def __post_init__(self) -> None:
        values = {
            "name": validators.identifier(self.name, "group"),
            "max_running": _number(self.max_running, "max_running", MOST_RUNNING),
            "when_full": validators.one_of(self.when_full, "when_full", get_args(WhenFull)),
            "max_waiting": _number(self.max_waiting, "max_waiting", MOST_WAITING),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def read(cls, name: str, line: str) -> Group:
        """Parse the line that Redis keeps; raise BadOption if it is malformed."""
        if not (found := re.fullmatch(_LINE, line)):
            raise BadOption(f"group {name!r:.120}: {line!r:.60} must be like 'wait 5 1000'")
        when_full, running, waiting = found.groups()
        return cls(name, int(running), cast("WhenFull", when_full), int(waiting or MOST_WAITING))

    def __str__(self) -> str:
        return f"{self.when_full} {self.max_running} {self.max_waiting}"


class Limits(TypedDict, total=False):
    """The keyword arguments of `beat.group`."""

    max_running: Required[int]
    when_full: WhenFull
    max_waiting: int | None


def declared(name: str, limits: Limits) -> Group:
    """Return the group that code or a settings table declares; raise BadOption for unknown or useless limits."""
    for each in limits:
        if each not in Limits.__annotations__:
            raise BadOption(f"a group has no {each!r:.60}.{did_you_mean(str(each), Limits.__annotations__)}")
    given: dict[str, Any] = {each: value for each, value in limits.items() if value is not None}
    if given.get("when_full") == "skip" and "max_waiting" in given:
        raise BadOption(f"max_waiting={given['max_waiting']!r:.60} says nothing here: with when_full='skip' none waits")
    return Group(name, **{"max_running": None, **given})


def configured(name: str, value: object) -> Group:
    """Return a group of the settings: a number, `{max_running = 5, when_full = "skip"}`, or a line as in Redis."""
    if isinstance(value, Mapping):
        return declared(name, cast("Limits", value))
    if isinstance(value, str) and not _is_plain(value.strip()):
        return Group.read(name, value)
    return Group(name, int(value) if isinstance(value, str) else cast("int", value))


def _number(value: object, name: str, most: int) -> int:
    if value is None:
        raise BadOption(f"{name} must be a whole number from 1 to {most:,}, not None")
    return cast("int", validators.number(value, name, most))


def _is_plain(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < len(str(validators.MOST_SECONDS))
