"""What schedules would do: every tick of all of them, in order, computed without a beat or a Redis."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, NamedTuple

from beat.errors import BadInstant
from beat.schedule import registry as registries
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from beat.schedule.registry import Registry
    from beat.schedule.schedule import Schedule

_PRIORITIES = ("high", "normal", "low")


class Tick(NamedTuple):
    """One due instant of one schedule."""

    schedule_id: str
    instant: datetime
    """In UTC."""


def simulate(registry: Registry | None, start: datetime, end: datetime) -> Iterator[Tick]:
    """The ticks of all schedules from `start` on and before `end`, one by one.

    In the order in which a beat enqueues them: of those at one instant, high priority first, then by id. Disabled
    schedules have none. With None for the registry it is the one behind `beat.periodic`.
    """
    first, last = clock.utc(start, "start"), clock.utc(end, "end")
    if first > last:
        raise BadInstant(
            f"start {clock.text(first)} lies after end {clock.text(last)}: write simulate(registry, start, end)"
        )
    known = registries.default_registry if registry is None else registry
    ranked = sorted(known, key=lambda schedule: (_PRIORITIES.index(schedule.priority), schedule.id))
    streams = (map(Tick, itertools.repeat(schedule.id), ticks(schedule, first, last)) for schedule in ranked)
    return heapq.merge(*streams, key=lambda tick: tick.instant)


def ticks(schedule: Schedule, first: datetime, last: datetime) -> Iterator[datetime]:
    """The ticks that a beat would fire from `first` on and before `last`."""
    return schedule.ticks(first, last) if schedule.enabled else iter(())
