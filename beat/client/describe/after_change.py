"""Where a schedule stands after somebody has changed it, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client.describe.as_dict import times
from beat.client.upcoming import due, held, next_ticks

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.schedule_info import Standing

_SHOWN = 3


def plain(found: Standing) -> dict[str, Any]:
    """As `--json` has it."""
    return {
        "id": found.schedule_id,
        "state": found.state,
        "version": found.version,
        **times({"next_run": found.next_run, "due_at": found.due_at}),
        "tz": found.tz,
        "rule": dict(found.rule),
        "pause": found.pause and times(found.pause._asdict()),
        "overridden": found.override is not None,
    }


def passing(found: Standing) -> dict[str, Any] | None:
    """What will pass by the end of its pause; None where that has none, or nobody can tell."""
    stretch = held(found, found.pause.until) if found.pause and found.pause.until else None
    if stretch is None:
        return None
    first, last = (stretch.tick, stretch.last) if stretch.count else (None, None)
    return {"count": stretch.count, **times({"first": first, "last": last, "next": stretch.next})}


def passed(before: Standing, found: Standing) -> int:
    """How many ticks the end of a pause made pass."""
    return max(0, (found.skip_count or 0) - (before.skip_count or 0))


def firing(found: Standing, now: datetime) -> list[datetime]:
    """When the next ticks fire: the first of them perhaps at a time of its own."""
    ticks = next_ticks(found, _SHOWN, now)
    moved = due(found)
    return [moved.replace(microsecond=0), *ticks[1:]] if ticks and moved and ticks[0] == found.next_run else ticks
