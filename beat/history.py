"""The ledger's lines put together: one line for each fired tick with what became of it, one for each skipped stretch.

The newest line about a run counts: in the ledger a run may end, be started again, and end once more. That a tick waited
is told with its verdict; a line of its own has only what waits still.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from beat.ledger import Changed, Enqueued, Entry, Error, Outcome, Reopened, Skipped, Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

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


@dataclass(frozen=True, kw_only=True)
class Fired:
    """One fired tick, and what became of it."""

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
    waited: Waits | None = None
    at: datetime
    beat: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """The definition came, or was replaced."""

    schedule_id: str
    type: str
    """`registered`, `updated` or `moved`."""
    rev: str
    rule: Mapping[str, Any]
    was: Mapping[str, Any] | None
    before: datetime | None
    next: datetime | None
    at: datetime
    beat: str


Line = Fired | Passed | Waits | Change


def assemble(schedule_id: str, entries: Iterable[Entry]) -> list[Line]:
    """The entries of one schedule, newest first, as lines, newest first; a run stands where it was enqueued."""
    known = _Known(entries)
    shown: set[str] = set()
    lines: list[Line] = []
    for entry in known.entries:
        match entry:
            case Skipped():
                lines.append(_passed(schedule_id, entry, known.ticks.get(entry.tick)))
            case Changed():
                lines.append(_change(schedule_id, entry))
            case Waiting():
                if known.ticks.get(entry.tick) is entry and not known.is_decided(entry):
                    lines.append(_waits(schedule_id, entry))
            case Enqueued(job=job) | Outcome(job=job) | Reopened(job=job):
                if job not in shown and (isinstance(entry, Enqueued) or job not in known.enqueued):
                    shown.add(job)
                    lines.append(_fired(schedule_id, entry, known))
    return lines


class _Known:
    """What the lines of a schedule say about each run and each tick."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = list(entries)
        self.newest: dict[str, Outcome | Reopened] = {}
        self.enqueued: set[str] = set()
        self.waits: dict[str, Waiting] = {}
        self.ticks: dict[datetime, Waiting] = {}
        self._skipped: set[datetime] = set()
        for entry in self.entries:
            match entry:
                case Outcome() | Reopened():
                    self.newest.setdefault(entry.job, entry)
                case Enqueued():
                    self.enqueued.add(entry.job)
                case Skipped():
                    self._skipped.add(entry.tick)
                case Waiting():
                    self.waits.setdefault(entry.job, entry)
                    self.ticks.setdefault(entry.tick, entry)

    def is_decided(self, entry: Waiting) -> bool:
        """Whether the tick that waited has its verdict."""
        return entry.job in self.enqueued or entry.tick in self._skipped


def _fired(schedule_id: str, entry: Enqueued | Outcome | Reopened, known: _Known) -> Fired:
    verdict: dict[str, Any] = {}
    newest, waited = known.newest.get(entry.job), known.waits.get(entry.job)
    if isinstance(entry, Enqueued):
        verdict = {"triggered_by": entry.by, "enqueued_at": entry.at, "late_ms": entry.late_ms, "number": entry.number}
    if waited:
        verdict["waited"] = _waits(schedule_id, waited)
    return Fired(
        schedule_id=schedule_id,
        tick=entry.tick,
        job_id=entry.job,
        at=entry.at,
        beat=entry.beat,
        **verdict,
        **_ended(newest) if isinstance(newest, Outcome) else {"attempts": newest.attempts if newest else 0},
    )


def _ended(outcome: Outcome) -> dict[str, Any]:
    return {
        "state": outcome.type,
        "started_at": outcome.started,
        "ended_at": outcome.ended,
        "duration": outcome.duration,
        "worker": outcome.worker,
        "attempts": outcome.attempts,
        "error": outcome.error,
        "reason": outcome.reason,
        "reported": outcome.reported,
        "message": outcome.message,
        "details": outcome.details,
        "closed_at": outcome.at,
    }


def _passed(schedule_id: str, entry: Skipped, waited: Waiting | None) -> Passed:
    return Passed(
        schedule_id=schedule_id,
        first=entry.tick,
        last=entry.last,
        count=entry.count,
        reason=entry.reason,
        behind=entry.behind,
        waited=_waits(schedule_id, waited) if waited else None,
        at=entry.at,
        beat=entry.beat,
    )


def _waits(schedule_id: str, entry: Waiting) -> Waits:
    return Waits(
        schedule_id=schedule_id,
        tick=entry.tick,
        job_id=entry.job,
        behind=entry.behind,
        at=entry.at,
        beat=entry.beat,
    )


def _change(schedule_id: str, entry: Changed) -> Change:
    return Change(
        schedule_id=schedule_id,
        type=entry.type,
        rev=entry.rev,
        rule=entry.rule,
        was=entry.was,
        before=entry.before,
        next=entry.next,
        at=entry.at,
        beat=entry.beat,
    )
