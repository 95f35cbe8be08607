"""Compute every tick of all schedules in order, without a scheduler or a Redis."""

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
    """One tick of one schedule."""

    schedule_id: str
    instant: datetime
    """The time of the tick, in UTC."""


def simulate(registry: Registry | None, start: datetime, end: datetime) -> Iterator[Tick]:
    """Return an iterator over the ticks of all schedules from `start` up to, but not including, `end`.

    The order is that in which a scheduler enqueues them: by time, then high priority first, then by id. Disabled
    schedules have no ticks. `None` means the registry behind `beat.periodic`.
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
    """Return the ticks that a scheduler would fire from `first` up to, but not including, `last`."""
    return schedule.ticks(first, last) if schedule.enabled else iter(())
