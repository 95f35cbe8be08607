"""What it means for ticks that Redis' clock went back: it was set, or a replica took over whose clock is behind.

A tick that is decided stays decided. So a schedule fires nothing before its next tick, which may lie ahead by as much
as the clock went back. Nothing else stands still: what is open is looked at, and locks last no longer than they should.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from beat.timing import clock

BACKWARD_MS = 2_000
"""A clock that shows less by more than this went back."""
DECIDED = "ticks that are decided are not fired again"
REMEDY = "keep the machine of Redis on time (chronyd, or systemd-timesyncd); beat trigger ID runs a schedule now"


class Setback(NamedTuple):
    """Redis' clock shows an earlier time than a scheduler has found sound."""

    now: datetime
    seen: datetime
    """The highest sound time."""
    next_due: datetime | None
    """When the next schedule is due, if any is."""

    @property
    def stops_everything(self) -> bool:
        """Whether no schedule is due before the time that was seen."""
        return self.next_due is None or self.next_due > self.seen

    @property
    def consequence(self) -> str:
        """Until when nothing fires, in words."""
        if self.next_due is None:
            return DECIDED
        due = clock.text(self.next_due)
        if self.stops_everything:
            return f"{DECIDED}, so nothing fires until {due}"
        waits = f"a schedule that has fired up to {_second(self.seen)} waits until then"
        return f"{DECIDED}: {waits}; the next one is due at {due}"

    @property
    def words(self) -> str:
        """What happened, and what follows from it."""
        times = f"it shows {_second(self.now)}, and {_second(self.seen)} was seen before"
        return f"Redis' clock went back: {times}; {self.consequence}"

    def plain(self) -> dict[str, Any]:
        """As `--json` has it."""
        due = self.next_due and clock.text(self.next_due)
        return {"now": clock.text(self.now), "seen": clock.text(self.seen), "next_due": due}


def read(now: datetime, seen: str, due_ms: float | None) -> Setback | None:
    """Return what Redis shows; None if its clock did not go back. `due_ms`: the lowest score in `due`."""
    highest = clock.found(seen)
    if highest is None or highest - now <= timedelta(milliseconds=BACKWARD_MS):
        return None
    return Setback(now, highest, None if due_ms is None else clock.from_ms(int(due_ms)))


def _second(instant: datetime) -> str:
    return clock.text(instant.replace(microsecond=0))
