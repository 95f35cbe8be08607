"""Find the ticks of a cron expression that clock changes move, drop, keep single or repeat."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.timing.cron.wall_times import WallTimes
    from beat.timing.zones import Zone

_WALL = datetime(1970, 1, 1)  # noqa: DTZ001 (a wall time has no zone)


class Shift(NamedTuple):
    """A clock change that affects at least one tick."""

    kind: Literal["moved", "dropped", "single", "repeated"]
    at: datetime
    """The instant of the change."""
    first: datetime
    """The first wall time of the expression that the change skips or repeats, as a naive datetime."""
    ticks: int
    """How many wall times of the expression the change skips or repeats."""
    jump: timedelta
    """How far the clock jumps; negative if it jumps back."""


def shifts(times: WallTimes, zone: Zone, a: datetime, b: datetime, *, fixed: bool) -> Iterator[Shift]:
    """Yield the clock changes in `[a, b)` that affect a tick; `fixed` tells a fixed time from a wall-clock one."""
    low, high = clock.ceil(a), clock.ceil(b)
    while low < high:
        stretch = zone.at(low)
        if low <= stretch.start and stretch.opens != stretch.reached:
            forward = stretch.reached < stretch.opens
            skipped_or_repeated = sorted((stretch.reached, stretch.opens))
            first = times.first(*skipped_or_repeated)
            if first is not None:
                yield Shift(
                    kind=("moved" if fixed else "dropped") if forward else ("single" if fixed else "repeated"),
                    at=clock.at(stretch.start),
                    first=_WALL + timedelta(seconds=first),
                    ticks=times.count(*skipped_or_repeated),
                    jump=timedelta(seconds=stretch.opens - stretch.reached),
                )
        low = stretch.end


def note(shift: Shift, tick: datetime) -> str:
    """Return in words how `shift` changed `tick` or dropped ticks before it, or "" if it did neither."""
    time, day = f"{shift.first:%H:%M}", f"{shift.first.day} {shift.first:%B}"
    if shift.kind == "moved" and tick == shift.at:
        return f"{time} does not exist on {day}: the clock jumps forward, and this runs right after"
    if shift.kind == "dropped" and tick >= shift.at:
        ticks = f"{shift.ticks} ticks from {time} on were" if shift.ticks > 1 else f"1 tick, {time}, was"
        return f"before this, {ticks} dropped: the clock jumps forward on {day}"
    since = tick - shift.at
    if shift.kind == "single" and shift.jump <= since < timedelta(0):
        return f"this time comes twice on {day}: it runs the first time only"
    if shift.kind == "repeated" and shift.jump <= since < -shift.jump:
        return f"this time comes twice on {day}: {'first' if since < timedelta(0) else 'second'} time"
    return ""
