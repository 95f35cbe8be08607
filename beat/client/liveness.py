"""Decide whether schedulers complete cycles, for `beat health` and the health checks of the web UI.

Import only what the answer needs, because imports take most of the time of a probe.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.timing import clock, durations

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from beat.storage.heartbeat import Instance

_MAX_AGE = timedelta(seconds=30)
_LONGEST_INTERVAL = timedelta(minutes=1)


class Told(NamedTuple):
    """A scheduler and the age of its last cycle; the age is None before its first cycle."""

    beat: Instance
    age: timedelta | None
    fresh: bool


def limit(interval: timedelta = timedelta(0)) -> timedelta:
    """Return the maximum age of a cycle, for schedulers that rest for `interval` between two cycles."""
    return max(_MAX_AGE, 2 * min(interval, _LONGEST_INTERVAL))


def tell(beats: Iterable[Instance], now: datetime, limit: timedelta) -> list[Told]:
    """Return each scheduler with the age of its last cycle, and whether that is within the limit."""
    ages = ((beat, now - beat.last_pass if beat.last_pass else None) for beat in beats)
    return [Told(beat, age, age is not None and abs(age) <= limit) for beat, age in ages]


def words(told: Sequence[Told], limit: timedelta, here: str | None = None, *, elsewhere: int = 0) -> str:
    """Describe the freshest scheduler, or with `here`, the name of a host, the stalest one of that host."""
    if not told:
        others = f"; elsewhere {elsewhere} {'are' if elsewhere > 1 else 'is'}" if elsewhere else ""
        return f"no scheduler is running{f' on {here}' if here else ''}{others}"
    decides = (max if here else min)(told, key=lambda each: timedelta.max if each.age is None else abs(each.age))
    number = sum(each.fresh for each in told)
    others = f"; {number} of {len(told)} schedulers {'are' if number != 1 else 'is'} fresh" if len(told) > 1 else ""
    if decides.age is None:
        return f"not ready: {decides.beat.name} has not passed yet{others}"
    seconds = round(decides.age.total_seconds())
    passed = f"{decides.beat.name} passed {f'{seconds:,} s ago' if seconds >= 0 else f'{-seconds:,} s in the future'}"
    if decides.fresh:
        return f"ok: {passed}{others}"
    return f"stale: {passed}, and {durations.short(limit)} is the most{others}"


def plain(told: Told) -> dict[str, Any]:
    """Return the scheduler as `--json` prints it."""
    beat = told.beat
    return {
        "name": beat.name,
        "host": beat.host,
        "pid": beat.pid,
        "version": beat.version,
        "last_pass": clock.text(beat.last_pass) if beat.last_pass else None,
        "age": told.age.total_seconds() if told.age is not None else None,
        "fresh": told.fresh,
    }
