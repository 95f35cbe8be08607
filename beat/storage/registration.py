"""Build the item that the script `register` takes: the fields of a schedule's hash, and the template of its jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from beat.jobs import job_template
from beat.policies import routing
from beat.schedule import overrides, serialize
from beat.storage.messages import Registration
from beat.storage.provenance import Provenance
from beat.timing import durations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.policies.reconcile import Placement
    from beat.schedule.schedule import Schedule
    from beat.schedule.state import State

_MS = timedelta(milliseconds=1)


class Origin(NamedTuple):
    """The source of a definition."""

    name: str
    """`code` or `api`."""
    app: str = ""
    version: str = ""
    """The version that the schedule must have; empty for any."""
    host: str = ""
    """The machine whose code declares it."""


def registration(schedule: Schedule, seen: State | None, placed: Placement, origin: Origin) -> Registration:
    """Return the item for a schedule declared in code or added as data; an operator's override stays in force."""
    override = seen.override if seen else ""
    ruling, rev = overrides.in_force(schedule, override)
    template = job_template.template(schedule)
    fields: dict[str, str] = {
        **_shown(schedule),
        **_rule(ruling),
        **job_template.plain_meta(schedule, template, rev),
        "definition": serialize.write(ruling),
        **{name: value for name, value in Provenance.of(schedule, origin.host)._asdict().items() if value},
        **({"declared": serialize.write(schedule), "declared_rev": schedule.rev} if rev != schedule.rev else {}),
    }
    written = _Written(rev, schedule.rev, fields, template)
    return _registration(ruling, seen, placed, origin, written)


def rescheduled(
    ruling: Schedule, seen: State, placed: Placement, *, rev: str, version: str, fields: Mapping[str, str]
) -> Registration:
    """Return the item for a schedule whose rule an operator changes; everything else stays the same."""
    written = _Written(rev, "", {**_rule(ruling), **fields}, {})
    return _registration(ruling, seen, placed, Origin("operator", version=version), written)


class _Written(NamedTuple):
    rev: str
    declared: str
    fields: Mapping[str, str]
    template: Mapping[str, bytes]


def _rule(schedule: Schedule) -> dict[str, str]:
    """Return the fields of the hash that determine the ticks, for readers with redis-cli."""
    rule = serialize.rule(schedule)
    named = {name: str(value) for name, value in rule.items() if name in {"cron", "every", "follows"}}
    return {**named, "tz": str(schedule.tz), "timing_rev": schedule.timing_rev}


def _registration(
    ruling: Schedule, seen: State | None, placed: Placement, origin: Origin, written: _Written
) -> Registration:
    return Registration(
        id=ruling.id,
        rev=written.rev,
        seen_rev=seen.rev if seen else "",
        seen_next=seen.next_run if seen else "",
        seen_state=seen.state if seen else "",
        state=placed.state,
        next=placed.next,
        next_due=placed.next_due,
        rule=serialize.ticks(ruling),
        origin=origin.name,
        declared=written.declared,
        app=origin.app,
        func=ruling.func,
        version=origin.version,
        follows=ruling.follows or "",
        fields=written.fields,
        template=written.template,
    )


def _shown(schedule: Schedule) -> dict[str, str]:
    """Return the fields that are worth a line to readers with redis-cli; the definition has all options."""
    told = {
        "func": schedule.func,
        "queue": schedule.queue,
        "priority": schedule.priority,
        "description": schedule.description,
    }
    policies = {
        "misfire": schedule.misfire if schedule.misfire != "once" else "",
        "misfire_after": str(schedule.misfire_after // _MS) if schedule.misfire_after else "",
        "overlap": schedule.overlap if schedule.overlap != "allow" else "",
        "max_runs": str(schedule.max_runs or ""),
        "exclude": ", ".join(schedule.exclude),
        "jitter": durations.short(schedule.jitter) if schedule.jitter else "",
        "group": schedule.group or "",
        "route": f"{schedule.route}: {', '.join(schedule.queues)}" if schedule.route else "",
        "slow": str(routing.lane(schedule) or ""),
        "requires": ", ".join(map(str, schedule.requires)),
        "monitor": str(schedule.monitor) if schedule.monitor else "",
    }
    ttls = {name: str(seconds) for name, seconds in job_template.own_ttls(schedule).items()}
    return told | {name: value for name, value in policies.items() if value} | ttls
