"""Verdicts as the fire script takes them: everything about a tick that Redis is to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat import clock, jobs, policies, prepare
from beat.prepare import Fire, Resume, Verdict
from beat.protocol import Claim, Item
from beat.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from beat.keys import Keys
    from beat.schedule import Schedule


MOVED = "moved"
"""The mark of a claim whose tick is due when an operator said so."""


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
    if item.due > claim.due or claim.mark == MOVED:  # it was placed before its jitter changed, or by an operator
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
    keys: Keys,
) -> Item:
    """Somebody asks for a run: of no tick, or of one of the past; perhaps in the place of the next one."""
    fired = _fire(rev, schedule, Fire(tick or clock.EPOCH, None, by), clock.text(tick) if tick else "", keys)
    next_run, next_due = _following(schedule, prepare.after(schedule, instead_of)) if instead_of else ("", 0)
    return fired._replace(
        kind="manual",
        due=0,
        next=next_run,
        next_due=next_due,
        job=job,
        run=jobs.run_block(Run(schedule.id, tick, by), schedule.serializer),
        number=kept_s,
        last=clock.text(instead_of) if instead_of else "",
        slot=f"{fired.slot} cleared" if fired.slot and not force else "",
        max_runs="",
        data=data,
    )


def _item(rev: str, schedule: Schedule, verdict: Verdict, tick: str, keys: Keys) -> Item:
    if isinstance(verdict, Fire):
        return _fire(rev, schedule, verdict, tick, keys)
    if isinstance(verdict, Resume):
        return resumed(rev, schedule, verdict, tick)
    due, (next_run, next_due) = clock.to_ms(policies.due(schedule, verdict.tick)), _following(schedule, verdict.next)
    last, number = clock.text(verdict.last), verdict.count
    return Item(
        "skip", schedule.id, rev, tick, due, next_run, next_due, number=number, last=last, reason=verdict.reason
    )


def resumed(rev: str, schedule: Schedule, verdict: Resume, tick: str) -> Item:
    """A pause ends; nobody needs a lock for that."""
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
