"""Describe all facts about one schedule: in lines for people and as plain data."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from beat.client import upcoming
from beat.client.describe import changes, decisions, export, instants, policies, relations, workers
from beat.client.schedule_info import ticking
from beat.policies.jitter_and_capacity import slot
from beat.schedule import monitor

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.queries import Overview
    from beat.client.schedule_info import Standing
    from beat.history.statistics import Spread, Statistics
    from beat.policies.jitter_and_capacity import Room
    from beat.timing.zones import Zone

_MOST = 5
_THEN = 3


def state(found: Overview, where: Zone) -> dict[str, str]:
    """Return the state of a schedule by the names of the facts; a fact that does not apply is empty."""
    known, now = found.standing, found.now
    return {
        "state": f"{known.state}{_finished(known, where)}",
        **_operated(known, where),
        "when": known.schedule.describe() if known.schedule else "its rule cannot be read",
        **_overridden(known, where),
        **(policies.words(known.policies, known.ticked) if known.policies else {}),
        **relations.words(known, found.places, where, now),
        **_next(known, where, now),
        "last": _when(known.last_run, where, now),
        "function": str(known.definition.get("func", "")),
        "queue": relations.queues(known),
        "workers": workers.workers(found.queues, where),
        "description": str(known.definition.get("description", "")),
        "monitor": str(monitor.hidden(known.definition).get("monitor", "")),
        "declared": str(known.definition.get("declared", "")),
        "source": _source(known),
        "version": str(known.version or ""),
        "runs": _counts(known),
        "open": _open(found),
        "waiting": _waiting(found, where),
        "skipped": f"{known.skip_count:,}" if known.skip_count else "",
        "last success": _when(known.last_success, where, now),
        "last failure": _when(known.last_failure, where, now),
        "last error": known.last_error,
    }


def _source(known: Standing) -> str:
    if known.source == "code":
        return f"the code of the application {known.app}"
    return "data: beat add, or Client.add" if known.source == "api" else known.source


def _finished(known: Standing, where: Zone) -> str:
    if known.finished is None:
        return ""
    of = f" of {known.ticked:,}" if known.finished.max_runs else ""
    return f" ({policies.bound(known.finished, where)}{of})"


def _operated(known: Standing, where: Zone) -> dict[str, str]:
    """Return the pause and the hold that keep the schedule from ticking."""
    told = {}
    if known.pause:
        told["paused"] = changes.paused(known.pause, where).removeprefix("the schedule is paused ")
    if known.unannounced_at:
        since = instants.both(known.unannounced_at.replace(microsecond=0), where)
        told["held"] = (
            f"no running scheduler declares it since {since}: its ticks wait until one does, or it is retired"
        )
    return told


def _overridden(known: Standing, where: Zone) -> dict[str, str]:
    """Return the rule of the code and the operator of the override; empty if there is no override."""
    if known.override is None:
        return {}
    code, since = ticking(known.declared), known.override.at
    at = f" since {instants.both(since.replace(microsecond=0), where)}" if since else ""
    return {
        "code says": code.describe() if code else "its rule cannot be read",
        "overridden": f"by {known.override.by or 'somebody'}{at}; beat reschedule {known.schedule_id} --reset ends it",
    }


def _next(known: Standing, where: Zone, now: datetime) -> dict[str, str]:
    """Return the next tick that becomes a job, and the two after it."""
    if known.state not in {"active", "paused"} or known.policies is None:
        return {"next": f"{_when(known.next_run, where, now)}{_put_off(known, where)}"}
    ticks = upcoming.ticks(known, _THEN)
    if not ticks and known.policies.follows and not known.pause:
        return {"next": f"after the next success of {known.policies.follows}"}
    if not ticks:
        return {"next": "none until an operator resumes it" if known.pause else ""}
    first, *others = ticks
    put_off = _put_off(known, where) if first.tick == known.next_run else ""
    then = [instants.both(each.tick, where, first.tick) for each in others]
    return {"next": f"{_when(first.tick, where, now)}{put_off}", "then": ", ".join(then)}


def _put_off(known: Standing, where: Zone) -> str:
    due = known.put_off
    if due is None or known.next_run is None:
        return ""
    if known.deferred_by:
        return f", moved to {instants.both(due.replace(microsecond=0), where, known.next_run)} by {known.deferred_by}"
    late = instants.span((due - known.next_run).total_seconds())
    return f", due {late} after {instants.local(known.next_run, where, fine=True)[-8:]}"


def _open(found: Overview) -> str:
    room = _room(found)
    return _listed([f"{run.job_id} ({run.state})" for run in found.open_runs], room and room.running)


def _waiting(found: Overview, where: Zone) -> str:
    room = _room(found)
    return _listed([instants.both(tick, where) for tick in found.waiting], room and room.waiting)


def _room(found: Overview) -> Room | None:
    """Return the capacity of its slots; None if runs may overlap."""
    return slot(found.standing.policies) if found.standing.policies else None


def _listed(named: list[str], most: int | None) -> str:
    """Return the first few names, after `1 of 2:` if the number is limited."""
    more = [f"and {len(named) - _MOST:,} more"] if len(named) > _MOST else []
    counted = f"{len(named):,} of {most:,}: " if named and most else ""
    return counted + ", ".join([*named[:_MOST], *more])


def _counts(known: Standing) -> str:
    if known.run_count is None:
        return "run_count cannot be read"
    parts = {
        "succeeded": known.success_count,
        "failed": known.failure_count,
        "stopped": known.stopped_count,
        "open": known.open_count or 0,
    }
    said = ", ".join(f"{number:,} {name}" for name, number in parts.items() if number)
    row = f"; the last {known.consecutive_failures:,} failed" if known.consecutive_failures > 1 else ""
    return f"{known.run_count:,}{f': {said}' if said else ''}{row}"


def _when(instant: datetime | None, where: Zone, now: datetime) -> str:
    if instant is None:
        return ""
    away = (instant - now).total_seconds()
    distance = f"in {instants.span(away)}" if away > 0 else f"{instants.span(-away)} ago"
    return f"{instants.both(instant.replace(microsecond=0), where)} ({distance})"


def since(found: Statistics, where: Zone) -> str:
    """Return from when on the ledger has lines."""
    return f"since {instants.both(found.since.replace(microsecond=0), where)}" if found.since else ""


def statistics(found: Statistics) -> list[list[str]]:
    """Return the statistics as pairs of a name and a value."""
    rate = found.success_rate
    rows = {
        "runs": f"{found.runs:,}" if found.runs else "",
        "success rate": f"{rate:.1%}" if rate is not None else "",
        "duration": _spread(found.duration),
        "lateness": _spread(found.late_ms, 1000),
        "queue wait": _spread(found.wait),
        "skipped": ", ".join(f"{number:,} {reason}" for reason, number in found.skipped.items()),
    }
    return [[name, value] for name, value in rows.items() if value]


def _spread(found: Spread | None, per_second: int = 1) -> str:
    if found is None:
        return ""
    values = ((name, getattr(found, name) / per_second) for name in ("p50", "p95", "max"))
    return ", ".join(f"{name} {instants.span(value)}" for name, value in values)


def plain(known: Standing, *, reveal: bool = False) -> dict[str, Any]:
    """Return the schedule as `--json` prints it; with `reveal`, including the URL of its monitor."""
    hidden = dict if reveal else monitor.hidden
    named = {each.name: getattr(known, each.name) for each in fields(known) if each.name != "schedule_id"}
    return {
        "id": known.schedule_id,
        **decisions.times(named),
        "rule": dict(known.rule),
        "definition": hidden(known.definition),
        "declared": hidden(known.declared),
        "pause": export.pause(known.pause),
        "override": export.override(known.override),
        "finished": known.finished and decisions.times(known.finished._asdict()),
        "next_ticks": [decisions.times(each._asdict()) for each in upcoming.ticks(known, _THEN)],
    }


def measured(found: Statistics) -> dict[str, Any]:
    """Return the statistics as `--json` prints them, with all durations in seconds."""
    named = asdict(found)
    late = named.pop("late_ms")  # in milliseconds
    named["late"] = late and {name: value if name == "count" else value / 1000 for name, value in late.items()}
    return {**decisions.times(named), "success_rate": found.success_rate}
