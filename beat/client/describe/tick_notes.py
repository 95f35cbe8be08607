"""Add notes to ticks about what daylight saving time (DST) does to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.timing.cron import Cron

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from beat.schedule.rule import Clocked, Timing
    from beat.schedule.schedule import Schedule


def ticks_after(rule: Clocked, start: datetime) -> Iterator[tuple[datetime, str]]:
    """Yield the ticks after `start`, each with a note about DST."""
    previous = start
    while True:
        tick = rule.after(previous)
        yield tick, note(rule, previous, tick)
        previous = tick


def notes(schedule: Schedule, ticks: Iterable[datetime]) -> Iterator[str]:
    """Yield a note about DST for each of these ticks of a schedule, which follow each other; most notes are empty."""
    previous: datetime | None = None
    for tick in ticks:
        yield note(schedule.timing, previous or schedule.before(tick) or tick, tick)
        previous = tick


def note(rule: Timing, previous: datetime, tick: datetime) -> str:
    """Return what DST did to the tick, or dropped between the previous tick and this one."""
    return rule.note(previous, tick) if isinstance(rule, Cron) else ""
