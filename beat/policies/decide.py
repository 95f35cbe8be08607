"""What becomes of the ticks of a schedule that is due: a pure function of the schedule, its tick and the time.

    ── too old ──┬──────── missed ────────┬───── in time ─────┬── to come
         catchup_window ago       misfire_after ago   now

Ticks in time all fire, oldest first. Of those that were missed, the misfire policy says which fire after all; what is
too old never does. A tick on a day of rest is skipped, whenever it is decided. What a pause held passes as one stretch
when the pause ends, and an operator may have said when the first tick is due.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from beat.policies import time_policies

if TYPE_CHECKING:
    from beat.schedule.schedule import Schedule

_SECOND, _INSTANT = timedelta(seconds=1), timedelta(microseconds=1)
_MOST_KNOWN = 10_000
TOO_OLD, MISFIRE, EXCLUDED, PAUSED = "too_old", "misfire", "excluded", "paused"


@dataclass(frozen=True)
class Fire:
    """The tick becomes a job."""

    tick: datetime
    next: datetime | None
    """The tick that follows; None when the schedule ends."""
    by: str = "scheduler"
    """Who asked for it: `catchup` when it is a misfire that fires after all."""
    not_before: datetime | None = None
    """Until then the following tick waits, late as it is: enough was caught up with for now."""


@dataclass(frozen=True)
class Skip:
    """A stretch of ticks passes without a job."""

    tick: datetime
    """The first of them."""
    last: datetime
    count: int
    next: datetime | None
    reason: str = MISFIRE


@dataclass(frozen=True)
class Resume:
    """A pause ends, and the ticks that it held pass without a job."""

    tick: datetime
    """The next tick, as it was: the first of them, unless none was held."""
    last: datetime
    count: int
    next: datetime | None
    """The same tick where none was held, or all are caught up with."""
    until: datetime | None = None
    """When it ended by itself; None where an operator ends it."""


Verdict = Fire | Skip | Resume


@dataclass(frozen=True)
class Lateness:
    """What counts as late, where the schedule does not say so itself."""

    misfire_after: timedelta
    catchup_window: timedelta = timedelta(days=366)
    catchup_limit: int = 10
    pause: timedelta = _SECOND
    """Between two helpings of what is caught up with."""


def prepare(
    schedule: Schedule,
    tick: datetime,
    now: datetime,
    *,
    lateness: Lateness,
    most: int,
    moved_to: datetime | None = None,
    paused_until: datetime | None = None,
) -> list[Verdict]:
    """Verdicts on `tick` and on every later tick up to `now`, oldest first, at most `most` of them or one helping.

    A tick that is not due yet fires when it is. It is due at `moved_to`, if an operator said so; and not before
    `paused_until`, where the schedule was paused until then.
    """
    if schedule.misfire == "all":  # never cut a helping, because the rest of it would count as a new one
        # The end of a pause, the stretch that is too old, and an excluded stretch before each tick that fires.
        most = max(most, 2 + 2 * (schedule.catchup_limit or lateness.catchup_limit))
    verdicts: list[Verdict] = []
    following: datetime | None = tick
    if paused_until:
        verdicts.append(resumed := resume(schedule, tick, paused_until, until=paused_until))
        following = resumed.next
    decided = _verdicts(schedule, following, now, lateness, tick=tick, moved_to=moved_to) if following else ()
    for verdict in decided:
        verdicts.append(verdict)
        if len(verdicts) == most:
            break
    return verdicts


def resume(schedule: Schedule, tick: datetime, end: datetime, *, until: datetime | None = None) -> Resume:
    """A pause ends: what it held before `end` passes."""
    if tick >= end:
        return Resume(tick, tick, 0, tick, until)
    stretch = next(_skip(schedule, tick, end, PAUSED))
    return Resume(tick, stretch.last, stretch.count, stretch.next, until)


def _verdicts(
    schedule: Schedule,
    following: datetime | None,
    now: datetime,
    lateness: Lateness,
    *,
    tick: datetime,
    moved_to: datetime | None,
) -> Verdicts:
    spread = now - schedule.jitter if schedule.jitter else now  # late is what its whole jitter does not excuse
    oldest = spread - (schedule.catchup_window or lateness.catchup_window)
    limit = spread - (schedule.misfire_after or lateness.misfire_after)
    if moved_to and moved_to >= limit:  # in time, by when it was to fire
        oldest = limit = following or tick
    if following is not None and following < oldest:
        following = yield from _skip(schedule, following, oldest, TOO_OLD)
    if following is not None and following < limit:
        following = yield from _MISSED[schedule.misfire](schedule, following, limit, lateness, now)
    while following is not None and (time_policies.due(schedule, following) <= now or following == tick):
        if time_policies.is_excluded(schedule, following):
            awake = _awake(schedule, following, max(spread, following) + _INSTANT)
            following = yield from _skip(schedule, following, awake, EXCLUDED)
        else:
            fired, following = following, after(schedule, following)
            yield Fire(fired, following)
    return None


def _latest(schedule: Schedule, tick: datetime, limit: datetime, *_: object) -> Verdicts:
    """misfire="once": the latest fires, on a day on which the schedule does not rest; the others are skipped."""
    found = max(tick, schedule.before(limit) or tick)
    while found > tick and time_policies.is_excluded(schedule, found):
        found = max(tick, schedule.before(time_policies.morning(schedule, found)) or tick)
    if time_policies.is_excluded(schedule, found):
        return (yield from _skip(schedule, tick, limit, EXCLUDED))
    if found > tick:
        yield from _skip(schedule, tick, found, MISFIRE)
    following = after(schedule, found)
    yield Fire(found, following, "catchup")
    if following is not None and following < limit:
        following = yield from _skip(schedule, following, limit, EXCLUDED)
    return following


def _none(schedule: Schedule, tick: datetime, limit: datetime, *_: object) -> Verdicts:
    """misfire="skip": none fires."""
    return (yield from _skip(schedule, tick, limit, MISFIRE))


def _all(schedule: Schedule, tick: datetime, limit: datetime, lateness: Lateness, now: datetime) -> Verdicts:
    """misfire="all": each fires, oldest first, and no more at once than nobody minds."""
    following: datetime | None = tick
    left = schedule.catchup_limit or lateness.catchup_limit
    while following is not None and following < limit:
        if time_policies.is_excluded(schedule, following):
            following = yield from _skip(schedule, following, _awake(schedule, following, limit), EXCLUDED)
            continue
        fired, following, left = following, after(schedule, following), left - 1
        yield Fire(fired, following, "catchup", None if left else now + lateness.pause)
        if not left:
            return None
    return following


Verdicts = Generator[Verdict, None, datetime | None]
"""Verdicts, and then the tick that follows them: None when there is none, or none for now."""

_MISSED: Mapping[str, Callable[..., Verdicts]] = {"once": _latest, "skip": _none, "all": _all}


def _skip(schedule: Schedule, first: datetime, end: datetime, reason: str) -> Generator[Skip, None, datetime | None]:
    """The ticks from `first` on and before `end` pass."""
    following = schedule.after(end - _INSTANT)
    # After a change of timing the tick that was due may be none of the new ones: it is skipped like them.
    stranger = schedule.count(first, first + _SECOND) == 0
    last = max(first, schedule.before(end) or first)
    yield Skip(first, last, schedule.count(first, end) + stranger, following, reason)
    return following


def _awake(schedule: Schedule, tick: datetime, end: datetime) -> datetime:
    """The first tick after that one on a day on which the schedule does not rest, or `end`."""
    following: datetime | None = tick
    while following is not None and following < end and time_policies.is_excluded(schedule, following):
        following = schedule.after(max(following, time_policies.night(schedule, following) - _INSTANT))
    return end if following is None else min(following, end)


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
