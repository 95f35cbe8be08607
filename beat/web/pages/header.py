"""What all pages of one schedule begin with: where it stands, when it ticks next, and what somebody should know."""

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
    """Something that somebody should know before anything else."""

    kind: str
    """`bad`, or nothing for what is as somebody wanted it."""
    words: str


def schedule_id(asked: Asked) -> str:
    """That of the address; what cannot be one is none."""
    found = str(asked.path["schedule_id"])
    if not _ID.fullmatch(found):
        raise UnknownSchedule(f"there is no schedule {found!r:.110}")
    return found


def of(asked: Asked, found: Overview, *, ticks: int = 1) -> dict[str, Any]:
    """The beginning of each page, for its template."""
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
    """Why no tick is to come, as far as is known."""
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
    """Return the warnings of a schedule; a tick is late after `patience`, which no scheduler at all does not need."""
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
    """Return what to do when the worker could not call the function of this run, with the name of its queue."""
    queue = run.queue or str(found.standing.definition.get("queue") or "")
    return report.advice(run.error, "" if run.shards else queue)


def _code_says(known: Standing) -> str:
    """The rule of the code in words, where another is laid over it."""
    if known.override is None:
        return ""
    code = ticking(known.declared)
    return code.describe() if code else "its rule cannot be read"


def cut(words: str) -> str:
    """As much of it as a head has room for: the page of the run has the whole error."""
    first = words.split("\n", maxsplit=1)[0]
    return first if len(first) <= _SHORT and first == words else f"{first[:_SHORT]} …"


def _first_up(words: str) -> str:
    return words[:1].upper() + words[1:]


def fires(each: NextTick, note: str) -> str:
    """What there is to say about a tick to come: how it is moved, and what may keep it from firing."""
    told = [note]
    if each.unless:
        told.append(f"unless {', '.join(each.unless)} excludes its day")
    return "; ".join(part for part in told if part)
