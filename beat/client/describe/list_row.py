"""Describe a schedule in one row of a list: its rule, its state, and what needs attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.history.history import Fired

ENDED = ("succeeded", "failed", "stopped", "lost")

_LONGEST_NOTE = 120


def rule(known: Standing, *, whole: bool) -> str:
    """Return the rule, such as `0 9 * * * Europe/Berlin` or `every 15m`, with a mark if it is an override."""
    found = known.definition or known.rule
    named = f"every {found['every']}" if "every" in found else str(found.get("cron", "cannot be read"))
    named = f"follows {found['follows']}" if "follows" in found else named
    where = known.tz if whole else known.tz.rpartition("/")[2]
    place = f" {where}" if "cron" in found and known.tz != "UTC" else ""
    mark = "" if known.override is None else " (override)" if whole else " !"
    return f"{named}{place}{mark}"


class Coming(NamedTuple):
    """The next event of a schedule."""

    word: str
    """`in` (due at `at`), `due` (since `at`), `paused` (until `at`, or without an end), `after` (another schedule's
    success), `held` (on hold), or empty if no tick comes."""
    at: datetime | None = None


def coming(known: Standing, now: datetime) -> Coming:
    """Return when its next tick is due, or why there is none."""
    due = known.due_at or known.next_run
    if known.pause:
        return Coming("paused", known.pause.until)
    if known.state != "active" or (due is None and "follows" not in known.definition):
        return Coming("")
    if known.unannounced_at:
        return Coming("held")
    return Coming("after") if due is None else Coming("due" if due <= now else "in", due)


def going(run: Fired) -> tuple[str, datetime | None]:
    """Return what a run that has not ended is doing, and since when."""
    is_started = run.state == "started"
    return ("running" if is_started else run.state), (run.started_at if is_started else run.enqueued_at)


def state(known: Standing) -> str:
    """Return the state in one or two words."""
    return f"{known.state}, held" if known.state == "active" and known.unannounced_at else known.state or "unknown"


def note(known: Standing) -> str:
    """Return what needs attention, in one line."""
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
