"""Describe what a setback of Redis' clock means for ticks; it was set, or a replica took over whose clock is behind.

A decided tick stays decided. So a schedule fires nothing before its next tick, which may be as far in the future as the
clock went back. Everything else goes on: schedulers still check open runs, and locks last no longer than they should.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from beat.timing import clock

BACKWARD_MS = 2_000
"""A clock that shows a time earlier by more than this went back."""
DECIDED = "ticks that are decided are not fired again"
REMEDY = "keep the machine of Redis on time (chronyd, or systemd-timesyncd); beat trigger ID runs a schedule now"


class Setback(NamedTuple):
    """Redis' clock shows an earlier time than one that a scheduler found sound."""

    now: datetime
    seen: datetime
    """The highest sound time."""
    next_due: datetime | None
    """When the next schedule is due; None without one."""

    @property
    def stops_everything(self) -> bool:
        """Return whether no schedule is due before the highest sound time."""
        return self.next_due is None or self.next_due > self.seen

    @property
    def consequence(self) -> str:
        """Return until when nothing fires, in words."""
        if self.next_due is None:
            return DECIDED
        due = clock.text(self.next_due)
        if self.stops_everything:
            return f"{DECIDED}, so nothing fires until {due}"
        waits = f"a schedule that has fired up to {_second(self.seen)} waits until then"
        return f"{DECIDED}: {waits}; the next one is due at {due}"

    @property
    def words(self) -> str:
        """Return what happened and its consequence, in words."""
        times = f"it shows {_second(self.now)}, and {_second(self.seen)} was seen before"
        return f"Redis' clock went back: {times}; {self.consequence}"

    def plain(self) -> dict[str, Any]:
        """Return the setback as `--json` prints it."""
        due = self.next_due and clock.text(self.next_due)
        return {"now": clock.text(self.now), "seen": clock.text(self.seen), "next_due": due}


def read(now: datetime, seen: str, due_ms: float | None) -> Setback | None:
    """Return the setback that Redis shows, or None without one; `due_ms` is the lowest score in `due`."""
    highest = clock.found(seen)
    if highest is None or highest - now <= timedelta(milliseconds=BACKWARD_MS):
        return None
    return Setback(now, highest, None if due_ms is None else clock.from_ms(int(due_ms)))


def _second(instant: datetime) -> str:
    return clock.text(instant.replace(microsecond=0))
