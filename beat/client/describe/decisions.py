"""Describe what became of a tick: in a sentence for people and as plain data for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from beat.client.describe import changes, instants, relations
from beat.client.describe.as_dict import plain, times
from beat.history.history import WAITING, Action, Change, Fired, Passed, Waits
from beat.history.ledger import ASKED
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from beat.history.history import Line
    from beat.timing.zones import Zone

__all__ = ["advised", "details", "error", "note", "outcome", "plain", "skipped", "story", "times"]

_MOST = 120
_REASONS = {
    "misfire": "no scheduler decided it in time",
    "too_old": "too late for any policy",
    "overlap": "an earlier run had not ended",
    "replaced": "a newer tick took its place",
    "excluded": "the schedule rests on that day",
    "finished": "as many as max_runs allows had become jobs",
    "paused": "the schedule was paused",
    "retired": "no running scheduler declared the schedule any more",
    "instead": "an operator asked for a run in its place",
    "group": "its group was full",
    "dependency": "what it requires had not happened",
}
_BY = {"replaced": "by", "instead": "of it"}
_ON_ITS_WAY = {
    "queued": "and waits in its queue",
    "scheduled": "and waits for its next attempt",
    "deferred": "and waits for another job",
    "open": "and how it ended is not known yet",
}


def story(line: Line, where: Zone, now: datetime) -> str:
    """Return what became of the line's tick or run, to follow a time and a colon."""
    match line:
        case Fired():
            return ", ".join(part for part in _told(line, where, now) if part)
        case Passed():
            return skipped(line, where)
        case Waits():
            since = instants.span((now - line.at).total_seconds())
            room = f" for room in the group {line.group}" if line.group else ""
            return f"waits for {since}{room}, until {line.behind or 'an earlier run'} has ended"
        case Change():
            return f"{line.type} by {line.beat}: {changes.changed(line, where)}"
        case Action():
            said = changes.acted(line, where)
            return f"{line.type} by {line.beat}{f': {said}' if said else ''}"


def outcome(line: Line) -> str:
    """Return the outcome in one word."""
    match line:
        case Fired():
            return line.state
        case Passed():
            return "skipped"
        case Waits():
            return WAITING
        case Change() | Action():
            return line.type


def skipped(line: Passed, where: Zone, why: str = "") -> str:
    """Return why ticks were skipped, and how many; `why` replaces the usual words for the reason."""
    known = line.why or _REASONS.get(line.reason)
    why = why or (f"{line.reason} ({known})" if known else line.reason)
    others = f", one of {line.count:,} ticks until {instants.local(line.last, where)}" if line.count > 1 else ""
    return f"skipped by {line.beat}{others}: {why}"


def error(run: Fired) -> str:
    """Return what went wrong, such as `KeyError: 'x'`; empty if nothing did."""
    if run.error is None:
        return run.message if run.reported else run.reason
    return ": ".join(part for part in (run.error.type, run.error.message) if part)


def note(line: Line, where: Zone) -> str:
    """Return the text for the last column of a table."""
    match line:
        case Passed():
            several = f"{line.count:,} ticks until {instants.local(line.last, where)}" if line.count > 1 else ""
            behind = line.behind and f"{_BY.get(line.reason, 'behind')} {line.behind}"
            return ", ".join(part for part in (line.reason, line.why, behind, several) if part)
        case Waits():
            room = f"for the group {line.group}" if line.group else ""
            return ", ".join(part for part in (room, f"behind {line.behind}" if line.behind else "") if part)
        case Change():
            return f"{changes.changed(line, where)}{changes.by(line)}"
        case Action():
            return f"{changes.acted(line, where)}{changes.by(line)}".removeprefix("; ")
    said = error(line) or line.message
    first = said.split("\n")[0]
    parts = [
        first if len(first) <= _MOST and first == said else f"{first[:_MOST]} …",
        f"{line.attempts} attempts" if line.attempts > 1 else "",
        f"{line.triggered_by} by {line.beat}" if line.triggered_by in ASKED else "",
        line.triggered_by if line.triggered_by not in ("", "scheduler", "follows", *ASKED) else "",
        f"after {line.after}" if line.after else "",
        relations.short(line),
        _waited(line),
    ]
    return "; ".join(part for part in parts if part)


def advised(lines: Iterable[Line]) -> list[str]:
    """Return advice for runs whose function the worker could not call, once for each schedule and advice."""
    runs = (line for line in lines if isinstance(line, Fired))
    return list(dict.fromkeys(f"{run.schedule_id}: {run.advice}" for run in runs if run.advice))


def details(run: Fired) -> list[list[str]]:
    """Return the facts of a run as pairs of a name and a value."""
    facts = {
        "tick": run.tick and clock.text(run.tick),
        "triggered by": run.triggered_by,
        "waited": run.waited and f"since {clock.text(run.waited.at)} behind {run.waited.behind or 'others'}",
        "enqueued": run.enqueued_at and clock.text(run.enqueued_at),
        "started": run.started_at and clock.text(run.started_at),
        "ended": run.ended_at and clock.text(run.ended_at),
        "worker": run.worker,
        "attempts": str(run.attempts) if run.attempts > 1 else "",
        "message": run.message,
        "details": json.dumps(run.details, ensure_ascii=False) if run.details else "",
        "queue": run.queue,
        "why there": run.why,
        "after": run.after,
        **{f"part {part.shard}": relations.part(part) for part in run.parts},
    }
    return [[name, value] for name, value in facts.items() if value]


def _told(run: Fired, where: Zone, now: datetime) -> tuple[str, ...]:
    """Return the parts of the story of a run, from its tick to its end."""
    return _enqueued(run), relations.went(run), _started(run, where), _ended(run, now)


def _enqueued(run: Fired) -> str:
    if run.enqueued_at is None:
        return "enqueued (by whom and when was trimmed)"
    wish = {"backfill": " in a backfill", "catchup": " to catch up"}.get(run.triggered_by, "")
    wish = f" after {run.after} had succeeded" if run.after and not run.waited else wish
    by = f" by {run.beat}" if run.beat else ""
    if run.triggered_by == "manual":
        return f"enqueued because {run.beat or 'somebody'} asked for it"
    if run.waited:
        return f"enqueued{by}{wish} after it had {_waited(run)}"
    if run.late_ms is None or run.tick is None:
        return f"enqueued{by}{wish}"
    late = f"{instants.span(run.late_ms / 1000)} late" if run.late_ms > 0 else "on time"
    return f"enqueued{by} {late}{wish}"


def _waited(run: Fired) -> str:
    if run.waited is None or run.enqueued_at is None:
        return ""
    behind = f" behind {run.waited.behind}" if run.waited.behind else ""
    return f"waited {instants.span((run.enqueued_at - run.waited.at).total_seconds())}{behind}"


def _started(run: Fired, where: Zone) -> str:
    if run.started_at is None:
        return ""
    by = f" by worker {run.worker}" if run.worker else ""
    if run.attempts > 1:
        return f"started {run.attempts} times, the last at {instants.local(run.started_at, where)}{by}"
    return f"started {instants.span(run.wait)} later{by}" if run.wait is not None else f"started{by}"


def _ended(run: Fired, now: datetime) -> str:
    if run.state in _ON_ITS_WAY:
        return _ON_ITS_WAY[run.state]
    if run.state == "started":
        since = f" for {instants.span((now - run.started_at).total_seconds())}" if run.started_at else ""
        return f"and has been running{since}" if since else "and is running"
    after = f" after {instants.span(run.duration)}" if run.duration is not None else ""
    said = error(run) or run.message
    return f"{run.state}{' by its own report' if run.reported else ''}{after}" + (f": {said}" if said else "")
