"""Compute the ticks to come of a schedule, and the ticks that a pause will skip, as far as is known today.

Pauses, excluded days, jitter and moved ticks are taken into account.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from beat.errors import BadOption
from beat.policies import decide, jitter_and_capacity
from beat.schedule import exclusions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.policies.decide import Resume
    from beat.schedule.schedule import Schedule


_MOST = 1000
_INSTANT = timedelta(microseconds=1)


class NextTick(NamedTuple):
    """A tick to come."""

    tick: datetime
    due_at: datetime
    """When it fires; jitter or an operator may have changed that."""
    unless: tuple[str, ...] = ()
    """Functions of its application that may exclude its day; only a scheduler calls them."""


def ticks(found: Standing, n: int, *, resumed: datetime | None = None) -> list[NextTick]:
    """Return the next `n` ticks, or fewer if there are no more.

    `resumed` is the assumed end of a pause that has none.
    """
    if type(n) is not int or not 1 <= n <= _MOST:
        raise BadOption(f"n {n!r:.60} must be a whole number from 1 to {_MOST:,}, as in n=5")
    schedule, first = found.policies, _first(found, resumed)
    if schedule is None or first is None:
        return []
    if schedule.max_runs is not None:
        n = min(n, max(0, schedule.max_runs - found.ticked))
    unless = tuple(exclusions.functions(schedule.exclude))
    known = zip(range(n), _awake(schedule, first), strict=False)
    return [NextTick(tick, _due(found, schedule, tick), unless) for _, tick in known]


def _first(found: Standing, resumed: datetime | None) -> datetime | None:
    """Return the first tick that no pause will skip; None if there is none, or it is unknown."""
    if found.state == "active":
        return found.next_run
    end = found.pause and (found.pause.until or resumed)
    if not end or found.policies is None or found.next_run is None:
        return None
    return decide.resume(found.policies, found.next_run, end).next


def _awake(schedule: Schedule, first: datetime) -> Iterator[datetime]:
    """Yield the ticks from `first` on, except on days that the schedule excludes by date."""
    dates = tuple(set(schedule.exclude).difference(exclusions.functions(schedule.exclude)))
    tick: datetime | None = first
    while tick is not None:
        if exclusions.rests(dates, jitter_and_capacity.day_of(schedule, tick)):
            tick = schedule.after(max(tick, jitter_and_capacity.night(schedule, tick) - _INSTANT))
        else:
            yield tick
            tick = schedule.after(tick)


def _due(found: Standing, schedule: Schedule, tick: datetime) -> datetime:
    moved = tick == found.next_run and found.deferred_by and found.due_at
    return moved or jitter_and_capacity.due(schedule, tick)


def next_ticks(found: Standing, number: int, now: datetime) -> list[datetime]:
    """Return at most `number` ticks that will become jobs; after a pause, those from its end or from now on."""
    return [each.tick for each in ticks(found, number, resumed=now)]


def due(found: Standing) -> datetime | None:
    """Return when the next tick is to fire: at its own time, unless an operator moved it."""
    return found.due_at if found.deferred_by and found.due_at else found.next_run


def held(found: Standing, end: datetime) -> Resume | None:
    """Return what a pause of the schedule holds until `end`; None if that is unknown."""
    if found.policies is None or found.next_run is None:
        return None
    return decide.resume(found.policies, found.next_run, end)
