"""Whether beats pass: the judgement that `beat health` and the page's probes share.

Nothing is imported that this answer does not need: most of the time of a probe is its imports.
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
    """A beat, and how long ago it passed; None before its first pass."""

    beat: Instance
    age: timedelta | None
    fresh: bool


def limit(interval: timedelta = timedelta(0)) -> timedelta:
    """How old a pass may be, where beats rest for so long between two."""
    return max(_MAX_AGE, 2 * min(interval, _LONGEST_INTERVAL))


def tell(beats: Iterable[Instance], now: datetime, limit: timedelta) -> list[Told]:
    """How long ago each of them passed, and whether that will do."""
    ages = ((beat, now - beat.last_pass if beat.last_pass else None) for beat in beats)
    return [Told(beat, age, age is not None and abs(age) <= limit) for beat, age in ages]


def words(told: Sequence[Told], limit: timedelta, here: str | None = None, *, elsewhere: int = 0) -> str:
    """About the best of all beats, or the worst of this machine: on that one it depends."""
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
    """As `--json` has it."""
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
