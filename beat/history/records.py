"""Define the records of a history: one for each tick, each range of skipped ticks, each change and each action."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from beat.history.advice import advice

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from beat.history.advice import Advice
    from beat.history.ledger import Error

OPEN, WAITING = "open", "waiting"
"""The state of a run without a known outcome, and the state of a tick that waits for a slot."""


@dataclass(frozen=True, kw_only=True)
class Waits:
    """A tick that waits for a slot, or that waited before it was decided."""

    schedule_id: str
    tick: datetime
    job_id: str
    """The id that its job will have."""
    behind: str
    """The job that it waits for; empty if other ticks are ahead on the waiting list."""
    at: datetime
    """When it began to wait."""
    beat: str
    group: str = ""
    """The group whose capacity is used up; empty if it is the schedule's own capacity."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of a broadcast tick, and its outcome."""

    job_id: str
    shard: int
    state: str = OPEN
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration: float | None = None
    """In seconds."""
    worker: str | None = None
    attempts: int = 0
    error: Error | None = None
    reason: str = ""
    reported: bool = False
    message: str = ""
    closed_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Fired:
    """A fired tick and its outcome; for a broadcast tick, the outcome of all its parts."""

    schedule_id: str
    tick: datetime | None
    """None for a manual run."""
    job_id: str
    at: datetime
    """When the tick was enqueued; if that line was trimmed, the time of the newest line about the run."""
    triggered_by: str = ""
    enqueued_at: datetime | None = None
    """None if the line of the decision was trimmed."""
    late_ms: int | None = None
    number: int | None = None
    waited: Waits | None = None
    queue: str = ""
    """The queue, if the schedule chooses among several."""
    why: str = ""
    """Why this queue was chosen, in words."""
    after: str = ""
    """The job whose success this tick follows."""
    shards: int = 0
    """The number of parts of a broadcast; 0 for any other tick."""
    parts: tuple[Part, ...] = ()
    """The parts of a broadcast, in the order of the queues."""
    beat: str
    """The scheduler or operator that enqueued the job; if that line was trimmed, the one that recorded the outcome."""
    state: str = OPEN
    """`open`, or one of the ledger's OUTCOMES."""
    started_at: datetime | None = None
    """When the last attempt started."""
    ended_at: datetime | None = None
    duration: float | None = None
    """In seconds."""
    worker: str | None = None
    attempts: int = 0
    error: Error | None = None
    reason: str = ""
    reported: bool = False
    message: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    closed_at: datetime | None = None
    """When a scheduler recorded the outcome."""

    @property
    def advice(self) -> Advice | None:
        """Return what to do if the worker could not call the function; None for any other end."""
        return advice(self.error, "" if self.shards else self.queue)

    @property
    def job_ids(self) -> tuple[str, ...]:
        """Return the ids of the RQ jobs: one, or those of the parts."""
        return tuple(part.job_id for part in self.parts) or (self.job_id,)

    @property
    def wait(self) -> float | None:
        """Return the seconds in the queue; None if the run has not started, or was tried more than once.

        RQ keeps only the last start, so the wait before the first attempt is unknown after a retry.
        """
        if self.enqueued_at is None or self.started_at is None or self.attempts > 1:
            return None
        # Two machines have two clocks, so a worker may seem to start before the job was enqueued.
        return max(0.0, (self.started_at - self.enqueued_at).total_seconds())


@dataclass(frozen=True, kw_only=True)
class Passed:
    """A range of ticks that were skipped."""

    schedule_id: str
    first: datetime
    last: datetime
    count: int
    reason: str
    behind: str = ""
    """The job that blocked the ticks, or that replaced them."""
    why: str = ""
    """What was missing, in words."""
    after: str = ""
    """The job whose success the tick would have followed."""
    waited: Waits | None = None
    at: datetime
    beat: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """A definition was registered or replaced."""

    schedule_id: str
    type: str
    """One of the ledger's CHANGES."""
    rev: str
    rule: Mapping[str, Any]
    was: Mapping[str, Any] | None
    before: datetime | None
    next: datetime | None
    at: datetime
    beat: str


@dataclass(frozen=True, kw_only=True)
class Action:
    """An action that leaves the rule of the schedule unchanged."""

    schedule_id: str
    type: str
    """One of the ledger's ACTIONS."""
    reason: str = ""
    until: datetime | None = None
    tick: datetime | None = None
    at: datetime
    beat: str
    """The operator, or the scheduler if no operator was involved."""


Line = Fired | Passed | Waits | Change | Action
