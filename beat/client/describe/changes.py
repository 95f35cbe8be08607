"""Describe changes of a schedule: its rule, changed by the code or an operator, and the actions of operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client.describe import instants
from beat.history.history import Action

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.client.schedule_info import Pause
    from beat.history.history import Change
    from beat.timing.zones import Zone


def changed(line: Change, where: Zone) -> str:
    """Return the old and the new rule, and the next tick if it changed."""
    was = rule(line.was) if line.was else ""
    said = rule(line.rule) if was in ("", rule(line.rule)) else f"{was} → {rule(line.rule)}"
    if line.next is None and "follows" in line.rule:
        return said
    if line.next is None:
        return f"{said}, no tick to come"
    kept = line.was is not None and line.before == line.next
    return said if kept else f"{said}, next {instants.local(line.next, where)}"


def acted(line: Action, where: Zone) -> str:
    """Return until when the action lasts, and its reason."""
    until = instants.local(line.until, where, fine=bool(line.until.second)) if line.until else ""
    match line.type:
        case "paused":
            end = f"until {until}" if until else "until an operator resumes it"
            return f"{end}: {line.reason}" if line.reason else end
        case "resumed":
            return f"the pause ended at {until}" if until else line.reason
        case "deferred":
            tick = instants.local(line.tick, where) if line.tick else "the next one"
            return f"the tick of {tick} fires at {until}"
        case "retired":
            return line.reason or "no running scheduler declares it any more"
    return line.reason


def paused(found: Pause, where: Zone) -> str:
    """Return a sentence that names the operator, the start, the end and the reason of a pause."""
    since = f" since {instants.both(found.at.replace(microsecond=0), where)}" if found.at else ""
    until = f"until {instants.both(found.until, where)}" if found.until else "until an operator resumes it"
    why = f" ({found.reason})" if found.reason else ""
    return f"the schedule is paused by {found.by or 'somebody'}{since}, {until}{why}"


def rule(found: Mapping[str, Any]) -> str:
    """Return a rule in the words of its definition: `0 9 * * * Europe/Berlin`, `every 15m`."""
    named = f"every {found['every']}" if "every" in found else str(found.get("cron", "an unreadable rule"))
    named = f"follows {found['follows']}" if "follows" in found else named
    extra = [f"{name} {found[name]}" for name in ("phase", "anchor", "start", "end", "max_runs") if name in found]
    zone = str(found.get("tz", "UTC"))
    return " ".join([named, *([zone] if zone != "UTC" and "cron" in found else []), *extra])


def by(line: Change | Action) -> str:
    """Return the operator of a change; empty if new code or the end of a pause made it without one."""
    by_itself = line.type == "resumed" and isinstance(line, Action) and line.until
    return "" if line.type in _BY_CODE or by_itself else f"; by {line.beat}"


_BY_CODE = {"registered", "updated", "moved", "retired"}
