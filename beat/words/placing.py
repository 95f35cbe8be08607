"""The policies of place in words and as plain data: where ticks go, and on whom they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat import durations, routing
from beat.words import instants
from beat.words.plain import times

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.placing import Parent, Places, Shared
    from beat.client.standing import Standing
    from beat.requires import Requires
    from beat.schedule import Schedule
    from beat.zones import Zone

_MOST = 10


def words(known: Standing, found: Places, where: Zone, now: datetime) -> dict[str, str]:
    """What `beat show` says of it, a sentence each."""
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
    """That of a schedule, or those among which its route chooses."""
    schedule = known.policies
    if schedule and schedule.route == "broadcast":
        return f"all of {', '.join(schedule.queues)} (broadcast)"
    if schedule and schedule.route:
        return f"one of {', '.join(schedule.queues)} ({schedule.route})"
    return str(known.definition.get("queue", ""))


def missing(parent: Parent, where: Zone, now: datetime) -> str:
    """Why a schedule that follows another has no tick."""
    return f"no tick: it follows {_parent(parent, where, now)}"


def plain(found: Places) -> dict[str, Any]:
    """As `--json` has it."""
    return {
        "group": found.group and shared(found.group),
        "requires": [parent(each) for each in found.requires],
        "follows": found.follows and parent(found.follows),
        "followers": list(found.followers),
        "slow_runs": found.slow,
    }


def shared(found: Shared) -> dict[str, Any]:
    """A group; without limits nobody says how many may run."""
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
    """A schedule that is required, or followed; without a state there is none."""
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
