"""The ticks that a schedule has to come, and those that a pause makes pass, as far as is known today."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat import prepare
from beat.client import ahead

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.standing import Standing
    from beat.prepare import Resume


def next_ticks(found: Standing, number: int, now: datetime) -> list[datetime]:
    """The next ticks that become jobs, at most so many; of what is paused, those from its end on, or from now on."""
    return [each.tick for each in ahead.ticks(found, number, resumed=now)]


def due(found: Standing) -> datetime | None:
    """When the next tick fires: its own time, unless an operator has said otherwise."""
    return found.due_at if found.deferred_by and found.due_at else found.next_run


def held(found: Standing, end: datetime) -> Resume | None:
    """What a pause of the schedule holds until `end`; None where nobody can tell."""
    if found.policies is None or found.next_run is None:
        return None
    return prepare.resume(found.policies, found.next_run, end)
