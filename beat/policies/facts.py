"""Define the facts that a decision may need besides the time: other schedules, past runs, and the load of queues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Staff(NamedTuple):
    """The load of one queue."""

    queued: int
    """How many jobs wait; 0 if the key is not a list, or the Redis user may not read it."""
    workers: int | None
    """How many live workers read the queue, at most 1,000; None if the Redis user may not read this."""
    idle: int | None
    """How many of these workers are idle."""


class Parent(NamedTuple):
    """The state of a schedule that another one requires."""

    state: str = ""
    """The state; "" if there is no such schedule."""
    last_success: str = ""
    """The last success as text from Redis."""


Uses = tuple[tuple[str, int], ...]
"""The queues that a schedule has used, each with a count, ordered by their last use."""


@dataclass(frozen=True)
class Told:
    """The facts about one schedule as Redis has them, not validated."""

    uses: str = ""
    slow: int | None = None
    """How many of its recent runs were slow; None if the schedule has no slow queue."""
    parents: Mapping[str, Parent] = field(default_factory=dict)
    """The schedules that it requires, by id."""


UNTOLD = Told()


@dataclass(frozen=True)
class Facts:
    """The facts about one schedule at one time, parsed."""

    uses: Uses = ()
    slow: int = 0
    """How many of its recent runs were slow."""
    parents: Mapping[str, Parent] = field(default_factory=dict)
    staff: dict[str, Staff] = field(default_factory=dict)
    """The load by queue, shared by all schedules of a cycle; each job that is routed adds to it."""


NONE = Facts()
