"""Convert the lines of a history to plain data: times in UTC, durations in seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.history.history import WAITING, Action, Change, Fired, Passed, Waits
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.history.history import Line, Part
    from beat.history.ledger import Error


def plain(line: Line) -> dict[str, Any]:
    """Return the line as `--json` prints it, with times in UTC and durations in seconds."""
    match line:
        case Fired():
            return {"type": "run", **_plain_run(line)}
        case Passed():
            told: dict[str, Any] = {"type": "skipped", "schedule": line.schedule_id, "first": line.first}
            told |= {"last": line.last, "count": line.count, "reason": line.reason, "behind": line.behind or None}
            told |= {"why": line.why or None, "after": line.after or None}
            told |= {"waited_since": line.waited and line.waited.at}
        case Waits():
            told = {"type": WAITING, "schedule": line.schedule_id, "tick": line.tick, "job": line.job_id}
            told |= {"state": WAITING, "behind": line.behind or None, "group": line.group or None}
        case Change():
            told = {"type": line.type, "schedule": line.schedule_id, "rule": dict(line.rule)}
            told |= {"was": None if line.was is None else dict(line.was), "from": line.before, "next": line.next}
        case Action():
            told = {"type": line.type, "schedule": line.schedule_id, "tick": line.tick, "until": line.until}
            told |= {"reason": line.reason or None}
    return times({**told, "at": line.at, "beat": line.beat})


def times(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy with instants as text."""
    return {name: clock.text(value) if hasattr(value, "astimezone") else value for name, value in found.items()}


def _plain_error(error: Error | None) -> dict[str, str] | None:
    return None if error is None else {"type": error.type, "message": error.message, "traceback": error.traceback}


def _plain_run(run: Fired) -> dict[str, Any]:
    return times({
        "schedule": run.schedule_id,
        "tick": run.tick,
        "job": run.job_id,
        "state": run.state,
        "triggered_by": run.triggered_by or None,
        "number": run.number,
        "beat": run.beat,
        "waited_since": run.waited and run.waited.at,
        "behind": (run.waited and run.waited.behind) or None,
        "enqueued_at": run.enqueued_at,
        "late": None if run.late_ms is None else run.late_ms / 1000,
        "started_at": run.started_at,
        "wait": run.wait,
        "ended_at": run.ended_at,
        "duration": run.duration,
        "worker": run.worker,
        "attempts": run.attempts,
        "error": _plain_error(run.error),
        "advice": str(run.advice) if run.advice else None,
        "reason": run.reason or None,
        "reported": run.reported,
        "message": run.message or None, "details": dict(run.details),
        "closed_at": run.closed_at,
        "queue": run.queue or None, "why": run.why or None, "after": run.after or None, "shards": run.shards or None,
        "parts": [_plain_part(part) for part in run.parts],
    })  # fmt: skip


def _plain_part(part: Part) -> dict[str, Any]:
    return times({
        "job": part.job_id,
        "shard": part.shard,
        "state": part.state,
        "started_at": part.started_at,
        "ended_at": part.ended_at,
        "duration": part.duration,
        "worker": part.worker,
        "attempts": part.attempts,
        "error": _plain_error(part.error),
        "reason": part.reason or None,
    })  # fmt: skip
