"""Decide what happens to the ticks of a due schedule: a pure function of the schedule, its next tick and the time.

    ── too old ──┬──────── missed ────────┬───── in time ─────┬── future
         catchup_window ago       misfire_after ago   now

Ticks in time all fire, oldest first. The misfire policy chooses which missed ticks fire. Ticks that are too old never
fire. A tick on an excluded day is always skipped. When a pause ends, the ticks that fell into it are skipped together.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from beat.policies import jitter_and_capacity

if TYPE_CHECKING:
    from beat.schedule.schedule import Schedule

_SECOND, _INSTANT = timedelta(seconds=1), timedelta(microseconds=1)
_MOST_KNOWN = 10_000
TOO_OLD, MISFIRE, EXCLUDED, PAUSED = "too_old", "misfire", "excluded", "paused"


@dataclass(frozen=True)
class Fire:
    """The decision to enqueue the job of a tick."""

    tick: datetime
    next: datetime | None
    """The following tick; None if the schedule ends."""
    by: str = "scheduler"
    """What triggered the run: `scheduler`, or `catchup` for a missed tick."""
    not_before: datetime | None = None
    """The earliest time at which the following tick may fire, if the catch-up limit is reached; otherwise None."""


@dataclass(frozen=True)
class Skip:
    """The decision to skip one or more consecutive ticks."""

    tick: datetime
    """The first skipped tick."""
    last: datetime
    count: int
    next: datetime | None
    reason: str = MISFIRE


@dataclass(frozen=True)
class Resume:
    """The decision to end a pause and to skip the ticks that fell into it."""

    tick: datetime
    """The next tick so far; if `count` is not 0, also the first skipped tick."""
    last: datetime
    count: int
    next: datetime | None
    """The next tick from now on; equal to `tick` if none is skipped."""
    until: datetime | None = None
    """The end that was set for the pause; None if an operator resumes the schedule."""


Verdict = Fire | Skip | Resume


@dataclass(frozen=True)
class Lateness:
    """The settings about late ticks, which apply unless the schedule has its own."""

    misfire_after: timedelta
    catchup_window: timedelta = timedelta(days=366)
    catchup_limit: int = 10
    pause: timedelta = _SECOND
    """The wait between two batches of missed ticks with misfire="all"."""


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
    """Return decisions on `tick` and every later tick up to `now`, oldest first.

    `tick` itself is always decided, even if it is not due yet. There are at most `most` decisions; with misfire="all",
    the limit is at least one whole batch of missed ticks. `moved_to` is when an operator wants `tick` to fire.
    `paused_until` ends a pause first, which skips the ticks before it.
    """
    if schedule.misfire == "all":  # never cut a batch, because its rest would count as a new batch
        # Count the end of a pause, the ticks that are too old, and excluded ticks before each tick that fires.
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
    """Return the decision to end a pause, which skips the ticks from `tick` on and before `end`."""
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
    spread = now - schedule.jitter if schedule.jitter else now  # a delay within the full jitter is not lateness
    oldest = spread - (schedule.catchup_window or lateness.catchup_window)
    limit = spread - (schedule.misfire_after or lateness.misfire_after)
    if moved_to and moved_to >= limit:  # count as in time, because it was due at moved_to
        oldest = limit = following or tick
    if following is not None and following < oldest:
        following = yield from _skip(schedule, following, oldest, TOO_OLD)
    if following is not None and following < limit:
        following = yield from _MISSED[schedule.misfire](schedule, following, limit, lateness, now)
    while following is not None and (jitter_and_capacity.due(schedule, following) <= now or following == tick):
        if jitter_and_capacity.is_excluded(schedule, following):
            awake = _awake(schedule, following, max(spread, following) + _INSTANT)
            following = yield from _skip(schedule, following, awake, EXCLUDED)
        else:
            fired, following = following, after(schedule, following)
            yield Fire(fired, following)
    return None


def _latest(schedule: Schedule, tick: datetime, limit: datetime, *_: object) -> Verdicts:
    """Fire the latest missed tick on a day that is not excluded, and skip the others (misfire="once")."""
    found = max(tick, schedule.before(limit) or tick)
    while found > tick and jitter_and_capacity.is_excluded(schedule, found):
        found = max(tick, schedule.before(jitter_and_capacity.morning(schedule, found)) or tick)
    if jitter_and_capacity.is_excluded(schedule, found):
        return (yield from _skip(schedule, tick, limit, EXCLUDED))
    if found > tick:
        yield from _skip(schedule, tick, found, MISFIRE)
    following = after(schedule, found)
    yield Fire(found, following, "catchup")
    if following is not None and following < limit:
        following = yield from _skip(schedule, following, limit, EXCLUDED)
    return following


def _none(schedule: Schedule, tick: datetime, limit: datetime, *_: object) -> Verdicts:
    """Skip all missed ticks (misfire="skip")."""
    return (yield from _skip(schedule, tick, limit, MISFIRE))


def _all(schedule: Schedule, tick: datetime, limit: datetime, lateness: Lateness, now: datetime) -> Verdicts:
    """Fire each missed tick, oldest first, up to the catch-up limit per batch (misfire="all")."""
    following: datetime | None = tick
    left = schedule.catchup_limit or lateness.catchup_limit
    while following is not None and following < limit:
        if jitter_and_capacity.is_excluded(schedule, following):
            following = yield from _skip(schedule, following, _awake(schedule, following, limit), EXCLUDED)
            continue
        fired, following, left = following, after(schedule, following), left - 1
        yield Fire(fired, following, "catchup", None if left else now + lateness.pause)
        if not left:
            return None
    return following


Verdicts = Generator[Verdict, None, datetime | None]
"""Yields decisions and returns the tick that follows them; None if there is none, or if a batch is full."""

_MISSED: Mapping[str, Callable[..., Verdicts]] = {"once": _latest, "skip": _none, "all": _all}


def _skip(schedule: Schedule, first: datetime, end: datetime, reason: str) -> Generator[Skip, None, datetime | None]:
    """Yield the decision to skip the ticks in `[first, end)`, and return the first tick at or after `end`."""
    following = schedule.after(end - _INSTANT)
    # After a change of timing, the due tick may not be one of the new ticks. It is skipped and counted, too.
    stranger = schedule.count(first, first + _SECOND) == 0
    last = max(first, schedule.before(end) or first)
    yield Skip(first, last, schedule.count(first, end) + stranger, following, reason)
    return following


def _awake(schedule: Schedule, tick: datetime, end: datetime) -> datetime:
    """Return the first tick from `tick` on whose day is not excluded, but at most `end`."""
    following: datetime | None = tick
    while following is not None and following < end and jitter_and_capacity.is_excluded(schedule, following):
        following = schedule.after(max(following, jitter_and_capacity.night(schedule, following) - _INSTANT))
    return end if following is None else min(following, end)


_known: dict[tuple[str, datetime], datetime | None] = {}


def after(schedule: Schedule, tick: datetime) -> datetime | None:
    """Return the tick after `tick`; cached by timing, because most schedules due at once share their ticks."""
    asked = schedule.timing_rev, tick
    try:
        return _known[asked]
    except KeyError:
        pass
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    found = _known[asked] = schedule.after(tick)
    return found
