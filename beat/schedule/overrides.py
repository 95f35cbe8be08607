"""An operator's rule in the place of the code's. It is kept apart from the definition, so that it outlives deploys.

What stands in Redis as the definition is what is in force: the code's, with this rule laid over it. Whoever knows the
code and whoever does not come to the same rev: that of the code, and what was laid over it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from beat.errors import BadOption, DeclarationError
from beat.schedule import digests
from beat.schedule.rule import clocked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.schedule.schedule import Schedule

NAMES = ("cron", "seconds", "every", "phase", "tz")
"""What an operator can say: when it ticks, and in which zone."""


def written(rule: Mapping[str, Any]) -> str:
    """A rule as Redis keeps it, the same in every process."""
    return digests.written({name: rule[name] for name in NAMES if rule.get(name) not in (None, False)})


def laid_over(schedule: Schedule, override: str) -> Schedule:
    """The schedule with that rule; refuses what is none, or does not fit its bounds."""
    try:
        found = json.loads(override)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or set(found) - set(NAMES):
        raise BadOption(f"{override!r:.100} is no rule")
    if schedule.follows is not None:
        raise BadOption(
            f"{schedule.id!r} follows {schedule.follows!r} and has no times of its own: change those of that one"
        )
    tz = str(found.get("tz", schedule.tz))
    when = clocked(
        found.get("cron"),
        every=found.get("every"),
        tz=tz,
        seconds=found.get("seconds", False),
        phase=found.get("phase", 0),
        start=schedule.start,
    )
    return replace(schedule, timing=when, tz=tz)


def in_force(schedule: Schedule, override: str) -> tuple[Schedule, str]:
    """What is in force, and its rev; what somebody garbled overrides nothing."""
    try:
        return (laid_over(schedule, override), rev(schedule.rev, override)) if override else (schedule, schedule.rev)
    except DeclarationError:
        return schedule, schedule.rev


def rev(declared: str, override: str) -> str:
    """That of the code, with this laid over it."""
    return digests.digest(f"{declared} {override}")
