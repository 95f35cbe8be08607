"""Whether what a tick requires has happened: a pure function of when other schedules last succeeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.policies.facts import Facts, Parent
from beat.timing import clock

if TYPE_CHECKING:
    from datetime import datetime

    from beat.schedule.requires import Requires
    from beat.schedule.schedule import Schedule

DEPENDENCY = "dependency"
_NOWHERE = Parent()


def unmet(schedule: Schedule, tick: datetime, facts: Facts) -> str:
    """What is missing, in words; nothing when all is there."""
    for each in schedule.requires:
        parent, since = facts.parents.get(each.id, _NOWHERE), _since(schedule, tick, each)
        if not _is_met(parent, since):
            return _words(each.id, parent, since)
    return ""


def _is_met(parent: Parent, since: datetime | None) -> bool:
    succeeded = clock.found(parent.last_success)
    return succeeded is not None and not (since and succeeded < since)


def expected(schedule: Schedule, tick: datetime, facts: Facts) -> str:
    """What must still be so when the tick is skipped for want of it, as `fire` reads it."""
    found = ((each, facts.parents.get(each.id, _NOWHERE)) for each in schedule.requires)
    unmet = [(each.id, parent) for each, parent in found if not _is_met(parent, _since(schedule, tick, each))]
    plain = ((each, parent.last_success) for each, parent in unmet if _is_plain(parent.last_success or "-"))
    return "".join(f"{each} last_success {succeeded}\n" for each, succeeded in plain)


def _since(schedule: Schedule, tick: datetime, required: Requires) -> datetime | None:
    return tick - required.within if required.within else schedule.before(tick)


def _words(parent_id: str, parent: Parent, since: datetime | None) -> str:
    if not parent.state:
        return f"there is no {parent_id} any more"
    lacking = f"has not succeeded since {clock.text(since)}" if parent.last_success and since else "has never succeeded"
    return f"{parent_id} {lacking}" if parent.state == "active" else f"{parent_id} is {parent.state}, and {lacking}"


def _is_plain(text: str) -> bool:
    """Whether it can be expected: a word that was not changed when it was read. Anybody can write anything there."""
    return text.isascii() and text.isprintable() and " " not in text
