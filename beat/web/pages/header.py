"""The header of all pages of one schedule: its state, its next tick, and its warnings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.client import upcoming
from beat.client.describe import changes, instants, workers
from beat.client.schedule_info import ticking
from beat.errors import UnknownSchedule
from beat.history.history import Fired
from beat.jobs import report
from beat.timing.zones import zone

if TYPE_CHECKING:
    from datetime import timedelta

    from beat.client.queries import Overview
    from beat.client.schedule_info import Standing
    from beat.client.upcoming import NextTick
    from beat.jobs.report import Advice
    from beat.timing.zones import Zone
    from beat.web.request import Asked

_SHORT = 300
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


class Warned(NamedTuple):
    """A warning at the top of the page."""

    kind: str
    """`bad`, or empty for a state that an operator wanted."""
    words: str


def schedule_id(asked: Asked) -> str:
    """Return the schedule id in the address. Raise UnknownSchedule if it cannot be one."""
    found = str(asked.path["schedule_id"])
    if not _ID.fullmatch(found):
        raise UnknownSchedule(f"there is no schedule {found!r:.110}")
    return found


def of(asked: Asked, found: Overview, *, ticks: int = 1) -> dict[str, Any]:
    """Return the header for the template of a page, with up to `ticks` coming ticks."""
    known, where, has_scheduler = found.standing, zone(found.standing.tz), bool(asked.client.beats())
    following = upcoming.ticks(known, ticks) if known.state in {"active", "paused"} else []
    return {
        "known": known,
        "where": where,
        "has_scheduler": has_scheduler,
        "now": found.now,
        "rule": known.schedule.describe() if known.schedule else "its rule cannot be read",
        "written": changes.rule({**known.rule, "tz": known.tz}),
        "next": following[0] if following else None,
        "no_next": _no_next(known),
        "ticks": following,
        "fine": any(each.tick.second for each in following),
        "warned": _warned(found, where, asked.client.patience if has_scheduler else None),
        "code_says": _code_says(known),
    }


def _no_next(known: Standing) -> str:
    """Say why a schedule has no next tick, as far as beat knows."""
    if known.state == "paused":
        return "none until an operator resumes it"
    if known.policies and known.policies.follows and known.state == "active":
        return f"after the next success of {known.policies.follows}"
    return {
        "finished": "none: it has finished",
        "retired": "none: no running scheduler declares it",
        "disabled": "none",
    }.get(known.state, "not known")


def _warned(found: Overview, where: Zone, patience: timedelta | None) -> list[Warned]:
    """Return the warnings of a schedule. A tick is overdue after `patience`; None leaves that warning out."""
    known, told = found.standing, list[Warned]()
    if known.pause:
        told.append(Warned("", f"{_first_up(changes.paused(known.pause, where).removeprefix('the schedule is '))}."))
    if known.unannounced_at:
        since = instants.both(known.unannounced_at.replace(microsecond=0), where)
        told.append(Warned("bad", f"No running scheduler declares it since {since}: its ticks wait until one does."))
    if known.state == "broken":
        told.append(Warned("bad", f"Broken: {cut(known.last_error) or 'its state in Redis cannot be read'}"))
    elif known.consecutive_failures:
        row = f"The last {known.consecutive_failures:,} runs failed" if known.consecutive_failures > 1 else "It failed"
        told.append(Warned("bad", f"{row}: {cut(known.last_error)}".rstrip(": ")))
    newest = next((line for line in found.lines if isinstance(line, Fired) and line.closed_at), None)
    if newest and (remedy := advice(newest, found)):
        told.append(Warned("bad", str(remedy)))
    told += [Warned("bad", f"{_first_up(workers.nobody(each, where))}.") for each in found.queues if each.workers == 0]
    late = found.now - known.due_at if known.due_at and known.state == "active" and not known.unannounced_at else None
    if patience and late and late > patience:
        words = instants.span(late.total_seconds())
        told.append(Warned("bad", f"The tick is {words} overdue, and no scheduler has decided it yet."))
    return told


def advice(run: Fired, found: Overview) -> Advice | None:
    """Return what to do if the worker could not call the function of this run; None if it could."""
    queue = run.queue or str(found.standing.definition.get("queue") or "")
    return report.advice(run.error, "" if run.shards else queue)


def _code_says(known: Standing) -> str:
    """Return the code's rule in words if an operator's rule overrides it, else nothing."""
    if known.override is None:
        return ""
    code = ticking(known.declared)
    return code.describe() if code else "its rule cannot be read"


def cut(words: str) -> str:
    """Return the first line, shortened to fit the header. The page of the run has the whole error."""
    first = words.split("\n", maxsplit=1)[0]
    return first if len(first) <= _SHORT and first == words else f"{first[:_SHORT]} …"


def _first_up(words: str) -> str:
    return words[:1].upper() + words[1:]


def fires(each: NextTick, note: str) -> str:
    """Return the note on a coming tick: what a change of the clocks does to it, and what may exclude it."""
    told = [note]
    if each.unless:
        told.append(f"unless {', '.join(each.unless)} excludes its day")
    return "; ".join(part for part in told if part)
