"""Policies of time, each a pure function with a name: what a tick is worth that is late, early by chance, or unwanted.

    due          when a tick may fire: its own time, and its part of the jitter
    is_excluded  whether the schedule rests on the day of a tick
    slot         how many runs may go on at once, and what becomes of a tick that finds no room

What becomes of ticks that nobody decided in time is for `prepare` to say. Whether there is room when a tick is due only
Redis knows: `slot` says what `fire` is to do then.
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
    """That of a slot: how many runs may go on at once, how many ticks may wait for one of them to end."""

    overlap: Overlap
    running: int
    waiting: int

    def __str__(self) -> str:
        return f"{self.overlap} {self.running} {self.waiting}"


def slot(schedule: Schedule) -> Room | None:
    """What a tick needs besides its time; None when runs may overlap."""
    if schedule.overlap == "allow":
        return None
    waiting = {"skip": 0, "wait": schedule.max_waiting or 1, "replace": 1}[schedule.overlap]
    full = ((schedule.max_running or 1) - 1) * jobs(schedule) + 1  # where one more has no room
    return Room(schedule.overlap, full, waiting)


def jobs(schedule: Schedule) -> int:
    """How many a tick becomes."""
    return len(schedule.queues) if schedule.route == "broadcast" else 1


def due(schedule: Schedule, tick: datetime) -> datetime:
    """When a tick may fire: the same for every beat, and for every tick another part of the jitter."""
    if not schedule.jitter:
        return tick
    written = f"{schedule.id} {clock.floor(tick)}".encode()
    drawn = int.from_bytes(hashlib.blake2b(written, digest_size=8).digest())
    return tick + drawn % (schedule.jitter // _MS + 1) * _MS


def is_excluded(schedule: Schedule, tick: datetime) -> bool:
    """Whether the schedule rests on the day of that tick, in its own zone."""
    return bool(schedule.exclude) and exclusions.rests(schedule.exclude, day_of(schedule, tick))


def day_of(schedule: Schedule, tick: datetime) -> date:
    """The day of a tick, in the schedule's own zone."""
    return (tick + _ahead(schedule, tick)).date()


def morning(schedule: Schedule, tick: datetime) -> datetime:
    """When the day of that tick began; at the latest, where the clocks changed that night."""
    return min(tick, _midnight(schedule, tick) - min(_ahead(schedule, tick), _ahead(schedule, tick - _DAY)))


def night(schedule: Schedule, tick: datetime) -> datetime:
    """When the day of that tick ends; at the earliest, where the clocks change that night."""
    ends = _midnight(schedule, tick) + _DAY
    return max(tick, ends - max(_ahead(schedule, tick), _ahead(schedule, tick + _DAY)))


def _midnight(schedule: Schedule, tick: datetime) -> datetime:
    wall = tick + _ahead(schedule, tick)
    return wall.replace(hour=0, minute=0, second=0, microsecond=0)


def _ahead(schedule: Schedule, instant: datetime) -> timedelta:
    return timedelta(seconds=zone(str(schedule.tz)).offset(clock.floor(instant)))
