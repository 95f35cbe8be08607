"""Verdicts as the fire script takes them: everything about a tick that Redis is to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat import clock, jobs
from beat.prepare import Fire, Verdict
from beat.protocol import Claim, Item
from beat.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    first, *rest = (_item(rev, schedule, verdict, keys) for verdict in verdicts)
    # As Redis has it: it compares text, and somebody may have written the same instant in another way.
    return Chain((first._replace(tick=claim.tick), *rest), claim.due, schedule.func)


def released(schedule_id: str) -> Chain:
    """Nothing was decided: somebody else may."""
    return Chain((Item("release", schedule_id, ""),), 0)


def quarantined(schedule_id: str, rev: str, problem: str) -> Chain:
    """Its definition cannot be read: it waits for a person."""
    return Chain((Item("quarantine", schedule_id, rev, error=problem),), 0)


def _item(rev: str, schedule: Schedule, verdict: Verdict, keys: Keys) -> Item:
    following = verdict.next
    item = Item(
        kind="skip",
        id=schedule.id,
        rev=rev,
        tick=clock.text(verdict.tick),
        due=clock.to_ms(verdict.tick),
        next="" if following is None else clock.text(following),
        next_due=0 if following is None else clock.to_ms(following),
    )
    if not isinstance(verdict, Fire):
        return item._replace(number=verdict.count, last=clock.text(verdict.last), reason=verdict.reason)
    run = Run(schedule_id=schedule.id, scheduled_for=verdict.tick, triggered_by=verdict.by)
    return item._replace(
        kind="fire",
        job=keys.job(schedule.id, clock.floor(verdict.tick)),
        queue=jobs.queue_key(schedule.queue),
        at="front" if schedule.at_front else "back",
        run=jobs.run_block(run, schedule.serializer),
        by=verdict.by,
    )
