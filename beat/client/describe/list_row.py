"""A schedule of a list, in as few words as there are: its rule, its state, and what somebody should know."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.history.history import Fired

ENDED = ("succeeded", "failed", "stopped", "lost")

_LONGEST_NOTE = 120


def rule(known: Standing, *, whole: bool) -> str:
    """`0 9 * * * Europe/Berlin`, `every 15m`; one that is not the code's is marked."""
    found = known.definition or known.rule
    named = f"every {found['every']}" if "every" in found else str(found.get("cron", "cannot be read"))
    named = f"follows {found['follows']}" if "follows" in found else named
    where = known.tz if whole else known.tz.rpartition("/")[2]
    place = f" {where}" if "cron" in found and known.tz != "UTC" else ""
    mark = "" if known.override is None else " (override)" if whole else " !"
    return f"{named}{place}{mark}"


class Coming(NamedTuple):
    """What comes next of a schedule."""

    word: str
    """`in`: it is due then; `due`: since then; `paused` until then, or for good; `after`: a success of another;
    `held`; or nothing, where no tick comes."""
    at: datetime | None = None


def coming(known: Standing, now: datetime) -> Coming:
    """When its next tick is due, or why there is none."""
    due = known.due_at or known.next_run
    if known.pause:
        return Coming("paused", known.pause.until)
    if known.state != "active" or (due is None and "follows" not in known.definition):
        return Coming("")
    if known.unannounced_at:
        return Coming("held")
    return Coming("after") if due is None else Coming("due" if due <= now else "in", due)


def going(run: Fired) -> tuple[str, datetime | None]:
    """What a run that has not ended does, and since when."""
    is_started = run.state == "started"
    return ("running" if is_started else run.state), (run.started_at if is_started else run.enqueued_at)


def state(known: Standing) -> str:
    """In a word, or two."""
    return f"{known.state}, held" if known.state == "active" and known.unannounced_at else known.state or "unknown"


def note(known: Standing) -> str:
    """What somebody should know."""
    told = []
    if known.pause:
        told.append(": ".join(part for part in (f"paused by {known.pause.by}", known.pause.reason) if part))
    if known.unannounced_at:
        told.append("no running scheduler declares it")
    if known.deferred_by:
        told.append(f"moved by {known.deferred_by}")
    if known.override:
        told.append(f"rule by {known.override.by}")
    if known.state == "broken" and known.last_error:
        told.append(known.last_error)
    elif known.consecutive_failures:
        row = f"{known.consecutive_failures:,} failed in a row: " if known.consecutive_failures > 1 else ""
        told.append(f"{row}{known.last_error}")
    text = "; ".join(told).split("\n")[0]
    return text if len(text) <= _LONGEST_NOTE else f"{text[:_LONGEST_NOTE]} …"
