"""Describe how a schedule relates to others and where its runs go, in words and as plain data."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from beat.client.describe import instants
from beat.client.describe.as_dict import times
from beat.policies import routing
from beat.timing import durations

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.relations import Parent, Places, Shared
    from beat.client.schedule_info import Standing
    from beat.history.history import Fired, Part
    from beat.schedule.requires import Requires
    from beat.schedule.schedule import Schedule
    from beat.timing.zones import Zone


_MOST = 10


def words(known: Standing, found: Places, where: Zone, now: datetime) -> dict[str, str]:
    """Return the relations of a schedule for `beat show`, a sentence each."""
    schedule = known.policies
    told = {
        "group": _group(found.group) if found.group else "",
        "slow lane": _lane(schedule, found.slow) if schedule else "",
        "requires": "; ".join(
            _required(each, parent, where, now)
            for each, parent in zip(schedule.requires if schedule else (), found.requires, strict=False)
        ),
        "follows": _parent(found.follows, where, now) if found.follows else "",
        "followers": _listed(found.followers),
    }
    return {name: sentence for name, sentence in told.items() if sentence}


def queues(known: Standing) -> str:
    """Return the queue of a schedule, or the queues among which its route chooses."""
    schedule = known.policies
    if schedule and schedule.route == "broadcast":
        return f"all of {', '.join(schedule.queues)} (broadcast)"
    if schedule and schedule.route:
        return f"one of {', '.join(schedule.queues)} ({schedule.route})"
    return str(known.definition.get("queue", ""))


def missing(parent: Parent, where: Zone, now: datetime) -> str:
    """Return why a schedule that follows another one has no tick."""
    return f"no tick: it follows {_parent(parent, where, now)}"


def plain(found: Places) -> dict[str, Any]:
    """Return the relations as `--json` prints them."""
    return {
        "group": found.group and shared(found.group),
        "requires": [parent(each) for each in found.requires],
        "follows": found.follows and parent(found.follows),
        "followers": list(found.followers),
        "slow_runs": found.slow,
    }


def shared(found: Shared) -> dict[str, Any]:
    """Return a group as plain data; its limits are None if Redis has none."""
    limits = found.limits
    return {
        "name": found.name,
        "max_running": limits and limits.max_running,
        "when_full": limits and limits.when_full,
        "max_waiting": limits and limits.max_waiting,
        "running": found.running,
        "waiting": found.waiting,
    }


def parent(found: Parent) -> dict[str, Any]:
    """Return a schedule that is required or followed as plain data; its state is None if it does not exist."""
    named = times(found._asdict())
    return named | {"state": named["state"] or None}


def _group(found: Shared) -> str:
    if found.limits is None:
        return f"{found.name}: nobody says how many of its runs may be there: its ticks are held"
    full = "ticks wait" if found.limits.when_full == "wait" else "ticks are skipped"
    waiting = f", {found.waiting:,} of {found.limits.max_waiting:,} wait" if found.limits.when_full == "wait" else ""
    return f"{found.name}: {found.running:,} of {found.limits.max_running:,} run{waiting}; when it is full, {full}"


def _lane(schedule: Schedule, slow: int) -> str:
    lane = routing.lane(schedule)
    if lane is None:
        return ""
    rule = f"after {lane.times:,} runs over {durations.short(lane.after)} within {durations.short(lane.window)}"
    now = "in use now" if slow >= lane.times else f"{slow:,} of them were" if slow else "none of them was"
    return f"{schedule.slow_queue}, {rule}: {now}"


def _required(each: Requires, found: Parent, where: Zone, now: datetime) -> str:
    since = f"within {durations.short(each.within)}" if each.within else "since its own tick before"
    return f"a success of {each.id} {since}: {_state(found, where, now)}"


def _parent(found: Parent, where: Zone, now: datetime) -> str:
    return f"{found.id}: {_state(found, where, now)}"


def _state(found: Parent, where: Zone, now: datetime) -> str:
    if not found.state:
        return "there is no such schedule any more"
    idle = "" if found.state == "active" else f"it is {found.state}, and "
    if found.last_success is None:
        return f"{idle}it has never succeeded"
    ago = instants.span(max(0.0, (now - found.last_success).total_seconds()))
    return f"{idle}it last succeeded at {instants.both(found.last_success.replace(microsecond=0), where)}, {ago} ago"


def _listed(names: tuple[str, ...]) -> str:
    more = [f"and {len(names) - _MOST:,} more"] if len(names) > _MOST else []
    return ", ".join([*names[:_MOST], *more])


_SLOW = "slow: "


def went(run: Fired) -> str:
    """Return where a run went and why, if there was a choice: `went to fast: shortest, 3 in line`."""
    if run.shards:
        return f"went to all of its {run.shards} queues"
    if not run.queue:
        return ""
    if run.why.startswith(_SLOW):
        return f"went to {run.queue}, its slow lane: {run.why.removeprefix(_SLOW)}"
    return f"went to {run.queue}: {run.why.replace(': ', ', ', 1)}" if run.why else f"went to {run.queue}"


def followed(run: Fired, parent: str | None, where: Zone) -> str:
    """Return after which success the run fired."""
    at = f" at {instants.both(run.tick.replace(microsecond=0), where)}" if run.tick else ""
    return f"follows {parent or 'another'}: fired because {run.after} succeeded{at}"


def part(found: Part) -> str:
    """Return what became of one part of a broadcast, in one line."""
    by = f" by worker {found.worker}" if found.worker else ""
    took = f" after {instants.span(found.duration)}" if found.duration is not None else ""
    said = found.error and ": ".join(part for part in (found.error.type, found.error.message) if part)
    why = said or (found.message if found.reported else found.reason)
    return f"{found.job_id}: {found.state}{took}{by}" + (f": {why}" if why else "")


def short(run: Fired) -> str:
    """Return where the run went, in few words."""
    if run.parts:
        counts = Counter(part.state for part in run.parts)
        return f"{len(run.parts)} queues: " + ", ".join(f"{number} {state}" for state, number in counts.items())
    return f"{run.queue} ({run.why})" if run.queue and run.why else run.queue
