"""Ask Redis for the next ticks of a schedule. `beat next` imports this module only for an id."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from beat.cli import common_options
from beat.client import upcoming as next_ticks
from beat.client.describe import changes, upcoming
from beat.errors import NoRedis, UnknownSchedule
from beat.timing.zones import Zone, zone

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from beat.client.client import Client
    from beat.client.schedule_info import Standing

Found = tuple[dict[str, Any], Zone]
"""The document that describes the schedule and its ticks, and the zone of the schedule."""


def find(
    schedule_id: str, url: str | None, number: int, start: Callable[[Zone], datetime] | None
) -> tuple[Found | None, str]:
    """Return the ticks of a schedule in Redis, or None and the reason why it cannot be found."""
    try:
        client = common_options.client(url)
        known, now = client.get(schedule_id), client.now()
    except UnknownSchedule as e:
        return None, f"Nor is it the id of a schedule in Redis: {e}"
    except NoRedis as e:
        return None, f"Nor can Redis tell whether it is the id of a schedule: {e}"
    where = zone(known.tz)
    coming = next_ticks.ticks(_from(known, start(where)) if start else known, number)
    document = {
        "schedule": known.schedule_id,
        "state": known.state,
        "tz": where.name,
        "description": known.schedule.describe() if known.schedule else "its rule cannot be read",
        "ticks": upcoming.of(known, coming, where, now),
        "note": None if start else _note(client, known, where),
    }
    return (document, where), ""


def _from(known: Standing, start: datetime) -> Standing:
    """Return the schedule as if it were active, with its first tick after `start` as its next one."""
    following = known.schedule.after(start) if known.schedule else None
    return replace(known, state="active", pause=None, deferred_by="", next_run=following)


def _note(client: Client, known: Standing, where: Zone) -> str | None:
    """Return why the schedule has no ticks or why they do not fire, or None if a scheduler fires them."""
    if known.pause:
        return changes.paused(known.pause, where)
    if known.unannounced_at:
        return "no live scheduler declares it: its ticks wait until one does, or until it is retired"
    if known.state != "active":
        return f"the schedule is {known.state or 'broken'}"
    if known.policies and known.policies.follows:
        return f"it follows {known.policies.follows}, and has no times of its own"
    return None if client.beats() else "no scheduler is running: nothing fires until one runs"
