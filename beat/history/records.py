"""The lines of a history: what stands in one for each tick, each stretch, each change and each action."""

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
"""The state of a run whose outcome is not known yet; that of a tick which waits for an earlier run to end."""


@dataclass(frozen=True, kw_only=True)
class Waits:
    """A tick that waits for an earlier run to end, or waited before it had its verdict."""

    schedule_id: str
    tick: datetime
    job_id: str
    """The id that its job will have."""
    behind: str
    """The job for which it waits; nothing where other ticks wait before it."""
    at: datetime
    """Since when."""
    beat: str
    group: str = ""
    """The group for whose room it waits; nothing where that is its own."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """What became of one part of a tick that went to all of its queues."""

    job_id: str
    shard: int
    state: str = OPEN
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration: float | None = None
    """Seconds."""
    worker: str | None = None
    attempts: int = 0
    error: Error | None = None
    reason: str = ""
    reported: bool = False
    message: str = ""
    closed_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Fired:
    """One fired tick, and what became of it; of one that went to all of its queues, what became of all its parts."""

    schedule_id: str
    tick: datetime | None
    """None when somebody asked for the run."""
    job_id: str
    at: datetime
    """When it was enqueued; where that line was trimmed, when the newest line about it was written."""
    triggered_by: str = ""
    enqueued_at: datetime | None = None
    """None where the verdict was trimmed."""
    late_ms: int | None = None
    number: int | None = None
    waited: Waits | None = None
    queue: str = ""
    """Where it went, if that was a choice."""
    why: str = ""
    """How its queue was chosen, in words."""
    after: str = ""
    """The job whose success it follows."""
    shards: int = 0
    """To how many queues it went, if to all of them."""
    parts: tuple[Part, ...] = ()
    """The jobs of those, in the order of the queues."""
    beat: str
    """Who enqueued it; where that line was trimmed, who learnt its outcome."""
    state: str = OPEN
    """`open`, or one of the ledger's OUTCOMES."""
    started_at: datetime | None = None
    """Of the last attempt."""
    ended_at: datetime | None = None
    duration: float | None = None
    """Seconds."""
    worker: str | None = None
    attempts: int = 0
    error: Error | None = None
    reason: str = ""
    reported: bool = False
    message: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    closed_at: datetime | None = None
    """When the outcome was learnt."""

    @property
    def advice(self) -> Advice | None:
        """What to do when the worker could not call the function; None for any other end."""
        return advice(self.error, "" if self.shards else self.queue)

    @property
    def job_ids(self) -> tuple[str, ...]:
        """The RQ jobs: its own, or those of its parts."""
        return tuple(part.job_id for part in self.parts) or (self.job_id,)

    @property
    def wait(self) -> float | None:
        """Seconds in the queue; None when it has not started, or began more than once: RQ keeps the last start only."""
        if self.enqueued_at is None or self.started_at is None or self.attempts > 1:
            return None
        # Two machines, two clocks: a worker may seem to start before the job was there.
        return max(0.0, (self.started_at - self.enqueued_at).total_seconds())


@dataclass(frozen=True, kw_only=True)
class Passed:
    """A stretch of ticks that passed without a job."""

    schedule_id: str
    first: datetime
    last: datetime
    count: int
    reason: str
    behind: str = ""
    """The job that was in its way, or that came in its place."""
    why: str = ""
    """What was missing, in words."""
    after: str = ""
    """The job whose success it was to follow."""
    waited: Waits | None = None
    at: datetime
    beat: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """The definition came, or was replaced."""

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
    """What somebody did to the schedule, its rule aside."""

    schedule_id: str
    type: str
    """One of the ledger's ACTIONS."""
    reason: str = ""
    until: datetime | None = None
    tick: datetime | None = None
    at: datetime
    beat: str
    """The operator, or the beat that did it by itself."""


Line = Fired | Passed | Waits | Change | Action
