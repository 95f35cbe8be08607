"""A tick that went to all of its queues: the jobs of its parts, and what became of it as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.place_options import MOST_QUEUES

if TYPE_CHECKING:
    from collections.abc import Collection

OPEN = "open"
_WORST = ("failed", "lost", "stopped")


def jobs(job: str, number: int) -> list[str]:
    """The ids of so many parts of the tick that has this one; none where it went to one queue."""
    return [f"{job}_s{n}" for n in range(min(number, MOST_QUEUES))]


def outcome(states: Collection[str], number: int = 0) -> str:
    """Of a tick with so many parts, and these states of theirs: open while one goes on, then as bad as the worst."""
    if len(states) < number or any(each != "succeeded" and each not in _WORST for each in states):
        return OPEN
    return next((each for each in _WORST if each in states), "succeeded")
