"""Build the items of the fire script, which say all that Redis must write about a tick."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from beat.jobs import job_template
from beat.jobs.run import Run
from beat.policies import decide, dependencies, jitter_and_capacity, routing
from beat.policies.decide import Fire, Resume, Skip, Verdict
from beat.policies.dependencies import DEPENDENCY
from beat.policies.facts import NONE
from beat.schedule import digests
from beat.storage.messages import Claim, Item
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from beat.policies.facts import Facts
    from beat.policies.routing import Way
    from beat.schedule.schedule import Schedule
    from beat.storage.keys import Keys


MOVED = "moved"
"""The mark of a claim whose due time was set by an operator."""


class Chain(NamedTuple):
    """The items of one claimed schedule, several if it is catching up."""

    items: tuple[Item, ...]
    due: float
    """When to send the first item, in ms by Redis' clock."""
    func: str = ""
    jobs: int = 1
    """The number of jobs, which counts towards the page size; a broadcast has several for each item."""
    priority: str = ""

    @property
    def id(self) -> str:
        """Return the id of the schedule."""
        return self.items[0].id


def chain(
    claim: Claim, rev: str, schedule: Schedule, verdicts: Sequence[Verdict], keys: Keys, *, facts: Facts = NONE
) -> Chain:
    """Return the items for the decisions on the ticks of a claim; dependencies and routes come from `facts`."""
    items: list[Item] = []
    for verdict in verdicts:
        # The text of Redis, because the script compares text and an instant can be written in several ways.
        tick = clock.text(verdict.tick) if items else claim.tick
        item, facts = _item(rev, schedule, verdict, tick, keys=keys, facts=facts)
        items.append(item)
    if items[0].due > claim.due or claim.mark == MOVED:  # an older jitter, or an operator
        items[0] = items[0]._replace(due=claim.due)
    return Chain(
        tuple(items), claim.due, schedule.func, len(items) * jitter_and_capacity.jobs(schedule), schedule.priority
    )


def awake(claim: Claim, rev: str, schedule: Schedule) -> Chain:
    """Return the item that ends the pause of a schedule that follows another; such a pause holds no tick."""
    reason, by = claim.mark, "" if schedule.enabled else "disabled"
    return Chain((Item("resume", schedule.id, rev, reason=reason, by=by),), claim.due, schedule.func)


def released(schedule_id: str) -> Chain:
    """Return the item that releases a claim undecided, so that another scheduler can claim it."""
    return Chain((Item("release", schedule_id, ""),), 0)


def quarantined(schedule_id: str, rev: str, problem: str) -> Chain:
    """Return the item for a schedule whose definition cannot be read; it stops until the definition is repaired."""
    return Chain((Item("quarantine", schedule_id, rev, error=problem),), 0)


def admitted(
    rev: str, schedule: Schedule, tick: str, by: str, keys: Keys, *, after: str = "", facts: Facts = NONE
) -> tuple[Item, Facts]:
    """Return the item that fires a waiting tick if capacity allows, and the facts for the next tick."""
    fired = Fire(clock.read(tick), None, by)
    way = routing.route(schedule, fired.tick, facts)
    item = _fire(rev, schedule, fired, tick, way, keys=keys, after=after)
    job = keys.asked(schedule.id, f"f{digests.digest(after)}") if after else item.job
    return item._replace(kind="admit", job=job, last=after), routing.taken(facts, way)


def passing(rev: str, schedule: Schedule, tick: str, by: str, keys: Keys, *, after: str, reason: str) -> Item:
    """Return the item that skips a waiting tick."""
    item, _ = admitted(rev, schedule, tick, by, keys, after=after)
    return item._replace(kind="pass", reason=reason)


def manual(
    rev: str,
    schedule: Schedule,
    job: str,
    *,
    tick: datetime | None = None,
    by: str = "manual",
    kept_s: int = 3600,
    data: bytes = b"",
    force: bool = False,
    instead_of: datetime | None = None,
    way: Way | None = None,
    keys: Keys,
) -> Item:
    """Return the item of a manual run, of a past tick or of none.

    With `instead_of`, the run replaces that next tick. Unless `force`, it needs a free slot.
    """
    at, way = tick or clock.EPOCH, way or routing.route(schedule, tick or clock.EPOCH, NONE)
    fired = _fire(rev, schedule, Fire(at, None, by), clock.text(tick) if tick else "", way, keys=keys)
    next_run, next_due = _following(schedule, decide.after(schedule, instead_of)) if instead_of else ("", 0)
    asked = fired._replace(kind="manual", due=0, job=job, number=kept_s, max_runs="", data=data)
    return asked._replace(
        next=next_run,
        next_due=next_due,
        run=_told(Run(schedule.id, tick, by), schedule, way),
        last=clock.text(instead_of) if instead_of else "",
        slot=f"{fired.slot} cleared" if fired.slot and not force else "",
        group=f"{fired.group} {'forced' if force else 'cleared'}" if fired.group else "",
    )


def _item(rev: str, schedule: Schedule, verdict: Verdict, tick: str, *, keys: Keys, facts: Facts) -> tuple[Item, Facts]:
    """Return the item of a decision, and the facts for the next decision."""
    if isinstance(verdict, Resume):
        return resumed(rev, schedule, verdict, tick), facts
    if isinstance(verdict, Skip):
        return _skip(rev, schedule, verdict, tick), facts
    if schedule.requires and (why := dependencies.unmet(schedule, verdict.tick, facts)):
        passed = Skip(verdict.tick, verdict.tick, 1, verdict.next, DEPENDENCY)
        expects = dependencies.expected(schedule, verdict.tick, facts)
        return _skip(rev, schedule, passed, tick)._replace(why=why, expects=expects), facts
    way = routing.route(schedule, verdict.tick, facts)
    return _fire(rev, schedule, verdict, tick, way, keys=keys), routing.taken(facts, way)


def _skip(rev: str, schedule: Schedule, verdict: Skip, tick: str) -> Item:
    due, (next_run, next_due) = (
        clock.to_ms(jitter_and_capacity.due(schedule, verdict.tick)),
        _following(schedule, verdict.next),
    )
    last, number = clock.text(verdict.last), verdict.count
    return Item(
        "skip", schedule.id, rev, tick, due, next_run, next_due, number=number, last=last, reason=verdict.reason
    )


def resumed(rev: str, schedule: Schedule, verdict: Resume, tick: str) -> Item:
    """Return the item that ends a pause; it needs no lock."""
    next_run, next_due = _following(schedule, verdict.next)
    return Item(
        "resume",
        schedule.id,
        rev,
        tick,
        0,
        tick if verdict.next == verdict.tick else next_run,
        next_due,
        number=verdict.count,
        last=clock.text(verdict.last) if verdict.count else "",
        reason=clock.text(verdict.until) if verdict.until else "",
        by="" if schedule.enabled else "disabled",
    )


def _fire(rev: str, schedule: Schedule, verdict: Fire, tick: str, way: Way, *, keys: Keys, after: str = "") -> Item:
    next_run, next_due = _following(schedule, verdict.next)
    return Item(
        "fire",
        schedule.id,
        rev,
        tick,
        clock.to_ms(jitter_and_capacity.due(schedule, verdict.tick)),
        next_run,
        max(next_due, clock.to_ms(verdict.not_before)) if verdict.not_before and next_run else next_due,
        job=keys.job(schedule.id, clock.to_ms(verdict.tick) // 1000),
        queue="\n".join(map(job_template.queue_key, way.queues)),
        at="front" if schedule.at_front else "back",
        run=_told(Run(schedule.id, verdict.tick, verdict.by, after=after or None), schedule, way),
        by=verdict.by,
        slot=str(jitter_and_capacity.slot(schedule) or ""),
        max_runs=schedule.max_runs or "",
        why=way.why,
        group=schedule.group or "",
        uses=json.dumps(way.uses, separators=(",", ":")) if way.uses else "",
    )


def _told(run: Run, schedule: Schedule, way: Way) -> bytes:
    """Return the end of the job's meta, which says what run it is; for a broadcast, of each of its jobs."""
    if len(way.queues) > 1:
        return job_template.run_blocks(run, schedule.serializer, len(way.queues))
    return job_template.run_block(run, schedule.serializer)


def _following(schedule: Schedule, tick: datetime | None) -> tuple[str, int]:
    return ("", 0) if tick is None else (clock.text(tick), clock.to_ms(jitter_and_capacity.due(schedule, tick)))
