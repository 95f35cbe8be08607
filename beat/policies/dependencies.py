"""Decide whether the requirements of a tick are met: a pure function of the last successes of other schedules."""

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
    """Return the first unmet requirement in words, or "" if all are met."""
    for each in schedule.requires:
        parent, since = facts.parents.get(each.id, _NOWHERE), _since(schedule, tick, each)
        if not _is_met(parent, since):
            return _words(each.id, parent, since)
    return ""


def _is_met(parent: Parent, since: datetime | None) -> bool:
    succeeded = clock.found(parent.last_success)
    return succeeded is not None and not (since and succeeded < since)


def expected(schedule: Schedule, tick: datetime, facts: Facts) -> str:
    """Return the facts behind the unmet requirements in the format of fire.lua, one `id field value` per line.

    The script skips the tick only if they still hold, so a success in the meantime is not overlooked.
    """
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
    """Return whether the script can compare this text from Redis: printable ASCII without spaces."""
    return text.isascii() and text.isprintable() and " " not in text
