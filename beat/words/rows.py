"""A schedule of a list, in as few words as there are: its rule, its state, and what somebody should know."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beat.client.standing import Standing

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


def state(known: Standing) -> str:
    """In a word, or two."""
    return f"{known.state}, held" if known.state == "active" and known.unannounced_at else known.state or "unknown"


def note(known: Standing) -> str:
    """What somebody should know."""
    told = []
    if known.pause:
        told.append(": ".join(part for part in (f"paused by {known.pause.by}", known.pause.reason) if part))
    if known.unannounced_at:
        told.append("no live beat declares it")
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
