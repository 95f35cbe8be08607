"""Groups: schedules that share room for their runs.

How much room a group has is kept in Redis as one line, `wait 5 1000`: what becomes of a tick when the group is full,
how many may run, how many may wait. An operator changes it there, and it holds at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from beat import checks, options
from beat.errors import BadOption

WhenFull = Literal["wait", "skip"]
MOST_RUNNING = 1000
MOST_WAITING = 1000
_PARTS = 3


@dataclass(frozen=True)
class Group:
    """How many runs of all its schedules may be there at once, and what becomes of a tick when so many are."""

    name: str
    max_running: int
    when_full: WhenFull = "wait"
    max_waiting: int = MOST_WAITING

    def __post_init__(self) -> None:
        values = {
            "name": options.schedule_id(self.name, "group"),
            "max_running": _number(self.max_running, "max_running", MOST_RUNNING),
            "when_full": checks.one_of(self.when_full, "when_full", get_args(WhenFull)),
            "max_waiting": _number(self.max_waiting, "max_waiting", MOST_WAITING),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def read(cls, name: str, text: str) -> Group:
        """From the line that Redis has; refuses what is none."""
        parts: list[Any] = text.split()
        if len(parts) not in {_PARTS - 1, _PARTS} or not all(part.isascii() and part.isdigit() for part in parts[1:]):
            raise BadOption(f"group {name!r:.120} is {text!r:.60} in Redis, and must be like 'wait 5 1000'")
        return cls(name, int(parts[1]), parts[0], *map(int, parts[2:]))

    def __str__(self) -> str:
        return f"{self.when_full} {self.max_running} {self.max_waiting}"


def declared(name: str, *, max_running: int, when_full: str = "wait", max_waiting: int | None = None) -> Group:
    """A group as somebody writes it; refuses a limit that says nothing."""
    if max_waiting is None:
        return Group(name, max_running, cast("WhenFull", when_full))
    if when_full == "skip":
        raise BadOption(f"max_waiting={max_waiting!r:.60} says nothing here: ticks wait only with when_full='wait'")
    return Group(name, max_running, cast("WhenFull", when_full), max_waiting)


def _number(value: object, name: str, most: int) -> int:
    if value is None:
        raise BadOption(f"{name} must be a whole number from 1 to {most:,}, not None")
    return cast("int", checks.number(value, name, most))
