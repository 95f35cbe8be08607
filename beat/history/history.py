"""Assemble ledger entries into history lines, one for each fired tick and one for each range of skipped ticks.

A fired tick's line includes its outcome. A run may end, be started again, and end again, so its newest entry counts. A
broadcast tick is one line with its parts. A tick that waited is part of the line with its decision; only a tick that
still waits has its own line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.history.broadcast import parts, together
from beat.history.ledger import ASKED, Acted, Changed, Enqueued, Entry, Outcome, Reopened, Skipped, Waiting
from beat.history.records import OPEN, WAITING, Action, Change, Fired, Line, Part, Passed, Waits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

__all__ = [
    "OPEN", "WAITING", "Action", "Change", "Fired", "Line", "Part", "Passed", "Waits", "assemble", "job_of", "parts",
    "together",
]  # fmt: skip


def assemble(schedule_id: str, entries: Iterable[Entry]) -> list[Line]:
    """Return the history lines of a schedule, newest first, from its entries, newest first.

    A run appears at the place of its `enqueued` entry.
    """
    known = _Known(entries)
    shown: set[str] = set()
    lines: list[Line] = []
    for entry in known.entries:
        match entry:
            case Enqueued() | Outcome() | Reopened():
                job = job_of(entry)
                if job not in shown and (isinstance(entry, Enqueued) or job not in known.enqueued):
                    shown.add(job)
                    lines.append(_fired(schedule_id, entry, known))
            case Skipped():
                lines.append(_passed(schedule_id, entry, known.ticks.get(entry.tick)))
            case Changed():
                lines.append(Change(schedule_id=schedule_id, **vars(entry)))
            case Acted():
                lines.append(Action(schedule_id=schedule_id, **vars(entry)))
            case Waiting():
                if known.ticks.get(entry.tick) is entry and not known.is_decided(entry):
                    lines.append(_waits(schedule_id, entry))
    return lines


class _Known:
    """An index of a schedule's entries by job and by tick."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = list(entries)
        self.newest: dict[str, Outcome | Reopened] = {}
        self.shares: dict[str, list[Outcome | Reopened]] = {}
        self.enqueued: set[str] = set()
        self.waits: dict[str, Waiting] = {}
        self.ticks: dict[datetime, Waiting] = {}
        self._skipped: set[datetime] = set()
        for entry in self.entries:
            match entry:
                case Outcome() | Reopened():
                    if self.newest.setdefault(entry.job, entry) is entry and entry.of:
                        self.shares.setdefault(entry.of, []).append(entry)
                case Enqueued():
                    self.enqueued.add(entry.job)
                case Skipped():
                    self._skipped.add(entry.tick)
                case Waiting():
                    self.waits.setdefault(entry.job, entry)
                    self.ticks.setdefault(entry.tick, entry)

    def is_decided(self, entry: Waiting) -> bool:
        """Return whether the waiting tick has been decided."""
        return entry.job in self.enqueued or entry.tick in self._skipped


def job_of(entry: Enqueued | Outcome | Reopened) -> str:
    """Return the job id of the tick; for a part of a broadcast, that is the id of the whole."""
    return entry.job if isinstance(entry, Enqueued) else entry.of or entry.job


def _fired(schedule_id: str, entry: Enqueued | Outcome | Reopened, known: _Known) -> Fired:
    job = job_of(entry)
    told: dict[str, Any] = {
        "schedule_id": schedule_id, "tick": entry.tick, "job_id": job, "at": entry.at, "beat": entry.beat,
    }  # fmt: skip
    if isinstance(entry, Enqueued):
        late_ms = None if entry.by in ASKED else entry.late_ms
        told |= {"triggered_by": entry.by, "enqueued_at": entry.at, "late_ms": late_ms, "number": entry.number}
        told |= {"queue": entry.queue, "why": entry.why, "after": entry.after, "shards": max(0, entry.shards)}
    if waited := known.waits.get(job):
        told["waited"] = _waits(schedule_id, waited)
    shards, newest = told.get("shards", 0), known.newest.get(job)
    is_whole = not shards and job not in known.shares
    if is_whole:
        told |= _ended(newest) if isinstance(newest, Outcome) else {"attempts": _attempts(newest)}
    made = Fired(**told)
    return made if is_whole else together(made, parts(job, shards, known.shares.get(job, ())))


def _attempts(newest: Reopened | None) -> int:
    return newest.attempts if newest else 0


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
        why=entry.why,
        after=entry.after,
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
        group=entry.group,
    )
