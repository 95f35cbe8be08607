"""What becomes of the ticks of a schedule that is due: a pure function of the schedule, its tick and the time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from beat.schedule import Schedule

_SECOND = timedelta(seconds=1)
_MOST_KNOWN = 10_000


@dataclass(frozen=True)
class Fire:
    """The tick becomes a job."""

    tick: datetime
    next: datetime | None
    """The tick that follows; None when the schedule ends."""
    by: str = "scheduler"
    """Who asked for it: `catchup` when it is a misfire that fires after all."""


@dataclass(frozen=True)
class Skip:
    """A stretch of ticks passes without a job."""

    tick: datetime
    """The first of them."""
    last: datetime
    count: int
    next: datetime | None
    reason: str = "misfire"


Verdict = Fire | Skip


def prepare(schedule: Schedule, tick: datetime, now: datetime, *, misfire_limit: timedelta, most: int) -> list[Verdict]:
    """Verdicts on `tick` and on every later tick up to `now`, oldest first, at most `most` of them.

    Ticks that are late by no more than `misfire_limit` all fire. Of those that are later, the latest fires and the
    others are skipped. A tick that is not due yet fires when it is.
    """
    verdicts: list[Verdict] = []
    for verdict in _verdicts(schedule, tick, now, now - misfire_limit):
        verdicts.append(verdict)
        if len(verdicts) == most:
            break
    return verdicts


def _verdicts(schedule: Schedule, tick: datetime, now: datetime, limit: datetime) -> Iterator[Verdict]:
    latest = schedule.before(limit) if tick < limit else None
    if latest is not None and latest > tick:
        # After a change of timing the tick that was due may be none of the new ones: it is skipped like them.
        stranger = schedule.count(tick, tick + _SECOND) == 0
        last = max(tick, schedule.before(latest) or tick)
        yield Skip(tick, last, schedule.count(tick, latest) + stranger, latest)
        tick = latest
    while True:
        following = after(schedule, tick)
        yield Fire(tick, following, "scheduler" if tick >= limit else "catchup")
        if following is None or following > now:
            return
        tick = following


_known: dict[tuple[str, datetime], datetime | None] = {}


def after(schedule: Schedule, tick: datetime) -> datetime | None:
    """The tick after a tick, remembered for all schedules that tick alike: most of those due at once do."""
    asked = schedule.timing_rev, tick
    try:
        return _known[asked]
    except KeyError:
        pass
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    found = _known[asked] = schedule.after(tick)
    return found
