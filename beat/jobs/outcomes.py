"""Decide how a run ended, from RQ's records and beat's own record of it; a pure function.

A run that waits is never lost because of its age, and a run that may be alive is never lost. A run is lost if RQ has no
record of it, or if it is in no queue, in two observations a minute apart. A started run is lost if its worker has gone
on to another job, or if it sends no heartbeat and RQ would have killed it by now.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from beat.history.ledger import Error
from beat.jobs import report
from beat.jobs.observation import Record, number
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from beat.jobs.observation import Sighting

MISSING_MS = 60_000
"""How long a run must be missing before it counts as lost."""
GRACE_MS = 90_000
"""How long RQ lets a work-horse exceed its time limit: 60 s, plus 30 s between two checks."""
LISTEN_MS = 35_000
"""How long a scheduler listens before a silent run is lost, because a worker sends a heartbeat every 30 s."""
LEFT = "left"
"""The reply of the script `observe` about a started run whose live worker has another job."""
GOING = {"queued", "started", "scheduled", "deferred", "created"}
"""RQ's job statuses before the end."""
ENDED = {"finished", "failed", "stopped", "canceled"}
_LONGEST = 500

GONE = "gone"
_BY_OTHERS = {"AbandonedJobError", "StuckInQueue"}
NO_RECORD = "RQ has no record of it: it lapsed in the queue, was deleted, or ended while no beat was running"
NO_LIFE = "its worker has shown no sign of life, and its time limit is over"
LEFT_ALONE = "its process ended without a result, and its worker went on to something else"
NO_PLACE = "it is in no queue, and no worker has started it"
CANCELED = "its job was cancelled"
STOPPED = "a stop command to its worker ended it"


@dataclass(frozen=True)
class Forget:
    """The record is invalid and is to be deleted."""


@dataclass(frozen=True)
class Mark:
    """Only the record changes."""

    record: Record


@dataclass(frozen=True)
class Reopen:
    """RQ has started a closed run again."""

    record: Record
    before: Record


@dataclass(frozen=True)
class Close:
    """The run has ended."""

    outcome: str
    attempts: int
    before: Record
    started: datetime | None = None
    ended: datetime | None = None
    worker: str = ""
    reason: str = ""
    error: Mapping[str, str] | None = None
    told: report.Told | None = None
    watch: bool = True
    """Whether RQ could start it again."""
    ttl_s: int | None = None
    """The schedule's own TTL, which applies only from now on; None to leave RQ's."""

    @property
    def duration(self) -> float | None:
        """Return the duration in seconds."""
        if self.started is None or self.ended is None:
            return None
        return round((self.ended - self.started).total_seconds(), 3)

    @property
    def waited(self) -> float | None:
        """Return the seconds in the queue; None if unknown, or if the run was tried more than once."""
        since = clock.found(self.before.enqueued)
        if self.started is None or since is None or self.attempts > 1:
            return None
        return round(max((self.started - since).total_seconds(), 0.0), 3)  # two machines have two clocks

    @property
    def reported(self) -> bool:
        """Return whether the run failed by its own report."""
        return self.outcome == "failed" and self.told is not None

    @property
    def words(self) -> str:
        """Return what went wrong, in one line."""
        if self.error:
            found = ": ".join(part for part in (self.error["type"], self.error["message"]) if part)
        else:
            found = f"reported: {self.told.message}" if self.told and self.reported else self.reason
        return " ".join(found.split())[:_LONGEST]


Decision = Forget | Mark | Reopen | Close


def judge(seen: Sighting, now: int, since: int) -> Decision | None:
    """Return what to do about a run, None for nothing; the scheduler has listened to workers since `since`.

    Both times are by Redis' clock, in ms.
    """
    record = Record.read(seen.record)
    if record is None:
        return Forget()
    if seen.sign and seen.sign == record.sign:
        return None
    if record.outcome:
        return _again(seen, record)
    if seen.status in GOING or not seen.status:
        return _missing(seen, record, now, since)
    return _close(seen, record) if seen.status in ENDED else None


def _missing(seen: Sighting, record: Record, now: int, since: int) -> Decision | None:
    there = seen.status and "0" not in (seen.alive, seen.placed) and seen.alive != LEFT
    if there:
        return Mark(replace(record, missing=0, missing_as="")) if record.missing else None
    status = seen.status or GONE  # a job that is deleted while it runs reappears when it ends
    if seen.alive == LEFT:
        return _lost(seen, record, LEFT_ALONE)
    if record.missing_as != status or record.missing > now:  # Redis' clock went back
        return Mark(replace(record, missing=now, missing_as=status))
    if now < (_dead_by(seen, record, since) if status == "started" else record.missing + MISSING_MS):
        return None
    return _lost(seen, record, {"started": NO_LIFE, GONE: NO_RECORD}.get(status, NO_PLACE))


def _dead_by(seen: Sighting, record: Record, since: int) -> float:
    """Return when a silent run cannot be alive any more, in ms.

    That is when RQ would have killed it, and when this scheduler, which has listened since `since`, would have heard
    its next heartbeat. The clock of its worker may be wrong. The run began after beat enqueued it and before beat first
    missed it, both by Redis' clock. A run without a time limit may live for ever, so only RQ itself gives it up.
    """
    limit = number(seen.timeout, 0)
    if not limit:
        return math.inf
    callbacks = number(seen.success_callback_timeout, 0) + number(seen.failure_callback_timeout, 0)
    started = seen.started if seen.started_at else None
    began = record.missing
    if started:
        enqueued = clock.found(record.enqueued) or started
        began = min(clock.to_ms(max(started, enqueued)), record.missing)
    return max(began + (limit + callbacks) * 1000 + GRACE_MS, max(record.missing, since) + LISTEN_MS)


def _lost(seen: Sighting, record: Record, reason: str) -> Close:
    worker = seen.worker if seen.status == "started" else ""
    closing = replace(_ended(seen, record, "lost"), reason=reason, ended=None, worker=worker)
    return replace(closing, watch=bool(seen.status))


def _again(seen: Sighting, record: Record) -> Decision | None:
    """Return what to do about a closed run whose fingerprint has changed."""
    if seen.status in GOING:
        began = replace(_requeued(seen, record), replaced_by="", outcome="", sign="", started="", ended="", attempts=0)
        return Reopen(began, record)
    if seen.status not in ENDED:
        return None
    closing = _close(seen, record)
    anew = _text(closing.started) != record.started
    if not anew and seen.status == "canceled":
        return Mark(replace(record, sign=seen.sign))  # canceling a job does not change an outcome already recorded
    if record.outcome == "lost" and not anew and (closing.error or {}).get("type") in _BY_OTHERS | {""}:
        return Mark(replace(record, sign=seen.sign))  # RQ has noticed it, too
    if not anew:
        return closing
    before = _requeued(seen, record)
    return replace(closing, before=before, attempts=_attempts(seen, before))


def _requeued(seen: Sighting, record: Record) -> Record:
    """Return the record of a closed run that was started again.

    A person restarted it, unless RQ counts the new attempt as its own retry, or the run was lost before it began.
    """
    never_begun = record.outcome == "lost" and not record.started
    if never_begun or _attempts(seen, record) > record.attempts:
        return record
    return replace(record, requeued=record.requeued + 1)


def _close(seen: Sighting, record: Record) -> Close:
    if seen.status == "finished":
        told = report.told(seen.value, "json" if seen.value[:1] == b"e" else "pickle")  # `{` in base 64
        outcome = "failed" if told and not told.success else "succeeded"
        return replace(_ended(seen, record, outcome), told=told, watch=False, ttl_s=record.result_ttl)
    if seen.status in {"stopped", "canceled"}:
        reason = CANCELED if seen.status == "canceled" else STOPPED
        if record.replaced_by:
            reason = f"replaced by the tick of {record.replaced_by}"
        return replace(_ended(seen, record, "stopped"), reason=reason)
    closing = _ended(seen, record, "failed")
    error = report.error(seen.error) if seen.error else Error("", "RQ kept no word about it", "")
    if seen.result_type == "5":  # MAX_RETRIES_EXCEEDED: the job itself returned Retry too often
        error = Error("MaxRetriesExceeded", f"after {closing.attempts} attempts", "")
    if error.type in _BY_OTHERS:  # RQ's end time is when it noticed
        closing = replace(closing, ended=None)
    plain = {"type": error.type, "message": error.message, "traceback": error.traceback}
    return replace(closing, error=plain, watch=record.failure_ttl != 0, ttl_s=record.failure_ttl)


def _ended(seen: Sighting, record: Record, outcome: str) -> Close:
    started, ended = seen.started, seen.ended
    if not ended or (started and ended < started):  # the end time is of an earlier attempt
        ended = seen.written
    if ended and started and ended < started:
        ended = None
    return Close(outcome, _attempts(seen, record), record, started, ended, seen.worker)


def _attempts(seen: Sighting, record: Record) -> int:
    """Return the number of attempts: the first one, RQ's own retries, and requested restarts."""
    spent = max(0, record.retries - number(seen.retries_left, record.retries))
    return 1 + spent + number(seen.number_of_retries, 0) + record.requeued


def _text(instant: datetime | None) -> str:
    return clock.text(instant) if instant else ""


def entry(closing: Close, job: str) -> dict[str, Any]:
    """Return the ledger line of a closed run, without the fields that the script adds."""
    line: dict[str, Any] = {
        "type": closing.outcome,
        "tick": closing.before.tick or None,
        "job": job,
        **closing.before.share(),
        "started": _text(closing.started) or None,
        "ended": _text(closing.ended) or None,
        "duration": closing.duration,
        "worker": closing.worker or None,
        "attempts": closing.attempts,
    }
    if closing.waited is not None:
        line["waited"] = closing.waited
    rest = {
        "reason": closing.reason,
        "error": closing.error,
        "reported": closing.reported,
        "message": closing.told.message if closing.told else "",
        "details": closing.told.details if closing.told else {},
    }
    return line | {name: value for name, value in rest.items() if value}


def kept(closing: Close, seen: Sighting, now: int) -> str:
    """Return the record to keep of a run that RQ could start again; empty for any other."""
    if not closing.watch:
        return ""
    after = replace(
        closing.before,
        replaced_by="",
        outcome=closing.outcome,
        sign=seen.sign,
        started=_text(closing.started),
        ended=_text(closing.ended or clock.from_ms(now)),
        attempts=closing.attempts,
        missing=0,
        missing_as="",
    )
    return after.text()
