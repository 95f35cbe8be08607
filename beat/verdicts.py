"""Verdicts as the fire script takes them: everything about a tick that Redis is to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat import clock, jobs, policies
from beat.prepare import Fire, Verdict
from beat.protocol import Claim, Item
from beat.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from beat.keys import Keys
    from beat.schedule import Schedule


class Chain(NamedTuple):
    """The items of one schedule that we have claimed: several when it is catching up."""

    items: tuple[Item, ...]
    due: float
    """When the first of them is to be sent, in ms by Redis' clock."""
    func: str = ""

    @property
    def id(self) -> str:
        """The schedule."""
        return self.items[0].id


def chain(claim: Claim, rev: str, schedule: Schedule, verdicts: Sequence[Verdict], keys: Keys) -> Chain:
    """The verdicts on the ticks of a claim."""
    first, *rest = verdicts
    # As Redis has it: it compares text, and somebody may have written the same instant in another way.
    item = _item(rev, schedule, first, claim.tick, keys)
    if item.due > claim.due:  # it was placed before its jitter changed
        item = item._replace(due=claim.due)
    others = (_item(rev, schedule, verdict, clock.text(verdict.tick), keys) for verdict in rest)
    return Chain((item, *others) if rest else (item,), claim.due, schedule.func)


def released(schedule_id: str) -> Chain:
    """Nothing was decided: somebody else may."""
    return Chain((Item("release", schedule_id, ""),), 0)


def quarantined(schedule_id: str, rev: str, problem: str) -> Chain:
    """Its definition cannot be read: it waits for a person."""
    return Chain((Item("quarantine", schedule_id, rev, error=problem),), 0)


def admitted(rev: str, schedule: Schedule, tick: str, by: str, keys: Keys) -> Item:
    """A tick that has waited takes its turn, if there is room."""
    return _fire(rev, schedule, Fire(clock.read(tick), None, by), tick, keys)._replace(kind="admit")


def _item(rev: str, schedule: Schedule, verdict: Verdict, tick: str, keys: Keys) -> Item:
    if isinstance(verdict, Fire):
        return _fire(rev, schedule, verdict, tick, keys)
    due, (next_run, next_due) = clock.to_ms(policies.due(schedule, verdict.tick)), _following(schedule, verdict.next)
    last, number = clock.text(verdict.last), verdict.count
    return Item(
        "skip", schedule.id, rev, tick, due, next_run, next_due, number=number, last=last, reason=verdict.reason
    )


def _fire(rev: str, schedule: Schedule, verdict: Fire, tick: str, keys: Keys) -> Item:
    next_run, next_due = _following(schedule, verdict.next)
    return Item(
        "fire",
        schedule.id,
        rev,
        tick,
        clock.to_ms(policies.due(schedule, verdict.tick)),
        next_run,
        max(next_due, clock.to_ms(verdict.not_before)) if verdict.not_before and next_run else next_due,
        job=keys.job(schedule.id, clock.to_ms(verdict.tick) // 1000),
        queue=jobs.queue_key(schedule.queue),
        at="front" if schedule.at_front else "back",
        run=jobs.run_block(Run(schedule.id, verdict.tick, verdict.by), schedule.serializer),
        by=verdict.by,
        slot=str(policies.slot(schedule) or ""),
        max_runs=schedule.max_runs or "",
    )


def _following(schedule: Schedule, tick: datetime | None) -> tuple[str, int]:
    return ("", 0) if tick is None else (clock.text(tick), clock.to_ms(policies.due(schedule, tick)))
