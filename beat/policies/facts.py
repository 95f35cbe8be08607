"""What a tick may depend on besides its own time: other schedules, its own last runs, and who works at its queues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Staff(NamedTuple):
    """Of one queue."""

    queued: int
    """How many jobs wait; 0 if it is no queue, or nobody lets us look."""
    workers: int | None
    """How many live workers read it, at most 1,000; None if nobody lets us look."""
    idle: int | None
    """How many of those do nothing."""


class Parent(NamedTuple):
    """Of a schedule that another one requires."""

    state: str = ""
    """Nothing where there is no such schedule."""
    last_success: str = ""
    """As Redis has it."""


Uses = tuple[tuple[str, int], ...]
"""The queues that a schedule has used and how many times, the one last that it has used last."""


@dataclass(frozen=True)
class Told:
    """What Redis says of one schedule, as it has it: anybody can write anything there."""

    uses: str = ""
    slow: int | None = None
    """How many of its last runs were slow; None where that does not matter."""
    parents: Mapping[str, Parent] = field(default_factory=dict)
    """Of the schedules that it requires."""


UNTOLD = Told()


@dataclass(frozen=True)
class Facts:
    """Of one schedule, at one time."""

    uses: Uses = ()
    slow: int = 0
    """How many of its last runs were slow."""
    parents: Mapping[str, Parent] = field(default_factory=dict)
    staff: dict[str, Staff] = field(default_factory=dict)
    """Of all queues that matter in a pass: those who are sent somewhere in it are counted."""


NONE = Facts()
