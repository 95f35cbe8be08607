"""Groups: schedules that share room for their runs.

How much room a group has is kept in Redis as one line, `wait 5 1000`: what becomes of a tick when the group is full,
how many may run, how many may wait. An operator changes it there, and it holds at once.
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
"""As the scripts read it, too."""


@dataclass(frozen=True)
class Group:
    """Schedules that share one capacity: at most so many runs at once, and what becomes of a tick when it is full."""

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
        """From the line that Redis has; refuses what is none."""
        if not (found := re.fullmatch(_LINE, line)):
            raise BadOption(f"group {name!r:.120}: {line!r:.60} must be like 'wait 5 1000'")
        when_full, running, waiting = found.groups()
        return cls(name, int(running), cast("WhenFull", when_full), int(waiting or MOST_WAITING))

    def __str__(self) -> str:
        return f"{self.when_full} {self.max_running} {self.max_waiting}"


class Limits(TypedDict, total=False):
    """What `beat.group` takes beside the name."""

    max_running: Required[int]
    when_full: WhenFull
    max_waiting: int | None


def declared(name: str, limits: Limits) -> Group:
    """A group as somebody writes it; refuses a limit that says nothing."""
    for each in limits:
        if each not in Limits.__annotations__:
            raise BadOption(f"a group has no {each!r:.60}.{did_you_mean(str(each), Limits.__annotations__)}")
    given: dict[str, Any] = {each: value for each, value in limits.items() if value is not None}
    if given.get("when_full") == "skip" and "max_waiting" in given:
        raise BadOption(f"max_waiting={given['max_waiting']!r:.60} says nothing here: with when_full='skip' none waits")
    return Group(name, **{"max_running": None, **given})


def configured(name: str, value: object) -> Group:
    """A group of the settings: a number, `{max_running = 5, when_full = "skip"}`, or the line that Redis has."""
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
