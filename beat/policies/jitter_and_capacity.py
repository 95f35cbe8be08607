"""Compute the inputs of the time policies, with one pure function for each.

    due          when a tick may fire: its own time plus its share of the jitter
    is_excluded  whether the day of a tick is excluded
    slot         the capacity of a schedule, and what happens to a tick when it is full

`decide.prepare` handles late ticks. Only Redis knows the free capacity when a tick is due, so `slot` only returns the
limits that fire.lua applies.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from beat.schedule import exclusions
from beat.timing import clock
from beat.timing.zones import zone

if TYPE_CHECKING:
    from datetime import date, datetime

    from beat.schedule.options import Overlap
    from beat.schedule.schedule import Schedule

_MS, _DAY = timedelta(milliseconds=1), timedelta(days=1)


class Room(NamedTuple):
    """The capacity of a schedule: the number of running jobs at which it is full, and how many ticks may wait."""

    overlap: Overlap
    running: int
    waiting: int

    def __str__(self) -> str:
        return f"{self.overlap} {self.running} {self.waiting}"


def slot(schedule: Schedule) -> Room | None:
    """Return the schedule's capacity, or None if its runs may overlap."""
    if schedule.overlap == "allow":
        return None
    waiting = {"skip": 0, "wait": schedule.max_waiting or 1, "replace": 1}[schedule.overlap]
    full = ((schedule.max_running or 1) - 1) * jobs(schedule) + 1  # from this many running jobs on, a tick has no slot
    return Room(schedule.overlap, full, waiting)


def jobs(schedule: Schedule) -> int:
    """Return how many jobs a tick becomes."""
    return len(schedule.queues) if schedule.route == "broadcast" else 1


def due(schedule: Schedule, tick: datetime) -> datetime:
    """Return when a tick may fire: after a pseudo-random part of the jitter, which is the same for every scheduler."""
    if not schedule.jitter:
        return tick
    written = f"{schedule.id} {clock.floor(tick)}".encode()
    drawn = int.from_bytes(hashlib.blake2b(written, digest_size=8).digest())
    return tick + drawn % (schedule.jitter // _MS + 1) * _MS


def is_excluded(schedule: Schedule, tick: datetime) -> bool:
    """Return whether the day of the tick, in the schedule's time zone, is excluded."""
    return bool(schedule.exclude) and exclusions.rests(schedule.exclude, day_of(schedule, tick))


def day_of(schedule: Schedule, tick: datetime) -> date:
    """Return the day of a tick in the schedule's time zone."""
    return (tick + _ahead(schedule, tick)).date()


def morning(schedule: Schedule, tick: datetime) -> datetime:
    """Return when the day of the tick began; if the clock changed that night, the latest candidate."""
    return min(tick, _midnight(schedule, tick) - min(_ahead(schedule, tick), _ahead(schedule, tick - _DAY)))


def night(schedule: Schedule, tick: datetime) -> datetime:
    """Return when the day of the tick ends; if the clock changes that night, the earliest candidate."""
    ends = _midnight(schedule, tick) + _DAY
    return max(tick, ends - max(_ahead(schedule, tick), _ahead(schedule, tick + _DAY)))


def _midnight(schedule: Schedule, tick: datetime) -> datetime:
    wall = tick + _ahead(schedule, tick)
    return wall.replace(hour=0, minute=0, second=0, microsecond=0)


def _ahead(schedule: Schedule, instant: datetime) -> timedelta:
    return timedelta(seconds=zone(str(schedule.tz)).offset(clock.floor(instant)))
