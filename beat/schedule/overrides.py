"""Apply an operator's override of a rule to the definition from the code.

The override is stored apart from the definition, so it survives deploys. The definition in Redis is the effective one:
that of the code with the override applied. Its rev is a digest of the code's rev and the override. A process therefore
needs only these two, and not the code, to compute it.
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
"""The options that an operator can override: the rule and its time zone."""


def written(rule: Mapping[str, Any]) -> str:
    """Return a rule as the JSON that Redis keeps, the same in every process."""
    return digests.written({name: rule[name] for name in NAMES if rule.get(name) not in (None, False)})


def laid_over(schedule: Schedule, override: str) -> Schedule:
    """Return the schedule with the rule of `override`; raise DeclarationError if it is malformed or does not fit."""
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
    """Return the effective schedule and its rev; an unreadable override is ignored."""
    try:
        return (laid_over(schedule, override), rev(schedule.rev, override)) if override else (schedule, schedule.rev)
    except DeclarationError:
        return schedule, schedule.rev


def rev(declared: str, override: str) -> str:
    """Return the rev of the code's definition with an override applied."""
    return digests.digest(f"{declared} {override}")
