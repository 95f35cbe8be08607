"""Override the rule of a schedule, move its next tick, or return to the rule of the code."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.client.change import Changing, definition_of, timed
from beat.errors import BadInstant, BadOption, DeclarationError, Refused
from beat.policies.reconcile import KEEP, place
from beat.schedule import overrides, serialize
from beat.storage import registration
from beat.storage.messages import Reply
from beat.timing import clock, durations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.schedule.schedule import Schedule
    from beat.schedule.state import State
    from beat.storage.messages import Registration
    from beat.timing.durations import Duration


class Rescheduling(Changing):
    """A client that changes when a schedule ticks."""

    def reschedule(
        self,
        schedule_id: str,
        expression: str | None = None,
        *,
        every: Duration | None = None,
        tz: str | None = None,
        at: datetime | None = None,
        seconds: bool = False,
        reset: bool = False,
        dry_run: bool = False,
        expected_version: int | None = None,
    ) -> Standing:
        """Override the rule of the code, or move the next tick once; with `reset`, return to the rule of the code.

        Deploys keep an override until `reset`. A moved tick keeps its identity: only its due time changes, and the
        ticks after it stay. With `dry_run`, nothing is changed, and the schedule is returned as it would be.
        """
        wish = _Wish(expression, every, tz, at, seconds=seconds)
        if wish.is_rule + (at is not None) + reset != 1:
            raise BadOption("reschedule takes one of: a rule (an expression, every= or tz=), at=, or reset=True")
        rehearsed: list[Standing] = []

        def step(found: Standing, now: datetime) -> Reply:
            would_be, write = self._prepared(found, now, wish)
            rehearsed.append(would_be)
            return Reply("SAME") if dry_run else write()

        standing = self._until_it_stands(schedule_id, expected_version, step)
        return rehearsed[-1] if dry_run else standing

    def _prepared(self, found: Standing, now: datetime, wish: _Wish) -> tuple[Standing, Callable[[], Reply]]:
        """Return the schedule as it would be, and a function that makes the change."""
        timed(found) if found.policies else None
        if wish.at is not None:
            due_at = _moved(found, wish.at, now)
            would_be = replace(found, due_at=clock.read(due_at), deferred_by=self.by)
            return would_be, lambda: self._defer(found, due_at)
        [seen] = self._store.look([found.schedule_id])
        if seen is None:
            raise self._unknown(found.schedule_id)
        override = _wanted(found, wish) if wish.is_rule else ""
        item = _overridden(found, seen, override, by=self.by, now=now)
        return _standing(found, item, now), lambda: self._store.register([item], beat=self.by)[0]

    def _defer(self, found: Standing, due_at: str) -> Reply:
        tick = clock.text(found.next_run) if found.next_run else ""
        own = {"schedule_id": found.schedule_id, "rev": found.rev, "tick": tick, "version": str(found.version)}
        return self._operations.defer(**own, due_at=due_at, by=self.by)


class _Wish(NamedTuple):
    """What an operator asked for; all empty to return to the rule of the code."""

    expression: str | None
    every: Duration | None
    tz: str | None
    at: datetime | None
    seconds: bool

    @property
    def is_rule(self) -> bool:
        return any(part is not None for part in (self.expression, self.every, self.tz))


def _wanted(found: Standing, wish: _Wish) -> str:
    """Return the operator's rule as Redis keeps it; raise if it is invalid."""
    rule: dict[str, Any] = {"tz": wish.tz} if wish.tz else {}
    if wish.expression is not None and wish.every is not None:
        raise BadOption("give one rule: an expression, or every=")
    if wish.expression is not None:
        rule |= {"cron": wish.expression, "seconds": wish.seconds}
    elif wish.every is not None:
        rule["every"] = durations.short(durations.parse(wish.every, "every"))
    else:  # another zone for the present rule
        rule |= {name: found.definition[name] for name in ("cron", "seconds") if name in found.definition}
        if "cron" not in rule:
            raise BadOption(f"{found.schedule_id} ticks at intervals, which know no zone: give an expression")
    return overrides.written(rule)


def _overridden(found: Standing, seen: State, override: str, *, by: str, now: datetime) -> Registration:
    """Return the registration of the code's schedule with the override, or of the code's own rule without one."""
    before = found.override
    if not override and not before:
        raise Refused(f"{found.schedule_id} ticks as its code says: there is nothing to reset")
    declared, declared_rev = (before.declared, before.declared_rev) if before else (found.definition, found.rev)
    code = _read(found, declared)
    ruling = overrides.laid_over(code, override) if override else code
    rev = overrides.rev(declared_rev, override) if override else declared_rev
    placed = place(ruling, seen, now, rev)
    if placed is None:
        raise Refused(f"{found.schedule_id} has that very rule: nothing was changed")
    fields = {"definition": json.dumps(dict(declared), ensure_ascii=False)}
    if override:
        fields = {"declared": fields["definition"], "declared_rev": declared_rev, "definition": _laid(declared, ruling)}
        fields |= {"override": override, "overridden_by": by, "overridden_at": clock.text(now)}
    version = str(found.version)
    return registration.rescheduled(ruling, seen, placed, rev=rev, version=version, fields=fields)


def _standing(found: Standing, item: Registration, now: datetime) -> Standing:
    """Return the schedule as it would be with the new rule; a tick that is due already is never moved."""
    is_due = found.state in {"active", "paused"} and found.next_run is not None and found.next_run <= now
    kept = item.next == KEEP or is_due
    return replace(
        found,
        state=found.state if kept else item.state,
        next_run=found.next_run if kept else clock.found(item.next),
        due_at=found.due_at if kept else clock.from_ms(item.next_due) if item.next else None,
        deferred_by=found.deferred_by if kept else "",
        rule=json.loads(item.rule),
        definition=json.loads(item.fields["definition"]),
        tz=item.fields["tz"],
    )


def _laid(declared: Mapping[str, Any], ruling: Schedule) -> str:
    """Return the code's definition as JSON, with the rule that is in force."""
    others = {name: value for name, value in declared.items() if name not in {*overrides.NAMES, "anchor"}}
    return json.dumps({**others, **serialize.rule(ruling), "tz": str(ruling.tz)}, ensure_ascii=False)


def _read(found: Standing, declared: Mapping[str, Any]) -> Schedule:
    try:
        return serialize.read(json.dumps(dict(declared)))
    except DeclarationError as e:
        raise Refused(f"the definition of {found.schedule_id} cannot be read: {e}") from e


def _moved(found: Standing, at: datetime, now: datetime) -> str:
    """Return when the next tick is to fire, as text; raise if that is past, or not before the tick after it."""
    tick, when = found.next_run, clock.utc(at, "at")
    if found.state != "active" or tick is None:
        raise Refused(f"{found.schedule_id} is {found.state or 'broken'}: it has no next tick to move")
    if when <= now:
        raise BadInstant(f"at {clock.text(when)} is past: to run it now, trigger it")
    following = definition_of(found).after(tick)
    if following and when >= following:
        raise BadInstant(
            f"at {clock.text(when)} does not lie before the tick that follows, {clock.text(following)}: give another "
            "rule, or pause it until then"
        )
    return clock.text(when.replace(microsecond=when.microsecond // 1000 * 1000))
