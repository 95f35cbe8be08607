"""Describe, as plain data, the state of a schedule after an operator has changed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client.describe.as_dict import times
from beat.client.upcoming import due, held, next_ticks

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.schedule_info import Standing

_SHOWN = 3


def plain(found: Standing) -> dict[str, Any]:
    """Return the schedule as `--json` prints it."""
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
    """Return the ticks that its pause will skip; None if the pause has no end, or they are unknown."""
    stretch = held(found, found.pause.until) if found.pause and found.pause.until else None
    if stretch is None:
        return None
    first, last = (stretch.tick, stretch.last) if stretch.count else (None, None)
    return {"count": stretch.count, **times({"first": first, "last": last, "next": stretch.next})}


def passed(before: Standing, found: Standing) -> int:
    """Return how many ticks were skipped when a pause ended."""
    return max(0, (found.skip_count or 0) - (before.skip_count or 0))


def firing(found: Standing, now: datetime) -> list[datetime]:
    """Return when the next ticks fire; the first may have been moved by an operator."""
    ticks = next_ticks(found, _SHOWN, now)
    moved = due(found)
    return [moved.replace(microsecond=0), *ticks[1:]] if ticks and moved and ticks[0] == found.next_run else ticks
