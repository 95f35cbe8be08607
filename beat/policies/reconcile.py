"""Reconcile a definition from the code with the schedule in Redis: decide its state and its next tick.

Only a change of timing or of time zone data moves the next tick. A tick that is already due never moves; register.lua
ensures that by Redis' clock. An edited or newly enabled schedule continues from now, so it never fires a tick of the
past.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat.policies import decide, jitter_and_capacity
from beat.schedule import overrides
from beat.timing import clock

if TYPE_CHECKING:
    from datetime import datetime

    from beat.schedule.schedule import Schedule
    from beat.schedule.state import State

KEEP = "keep"


class Placement(NamedTuple):
    """The new state of a schedule, and its next tick as text: KEEP to leave it unchanged, "" for none."""

    state: str
    next: str
    next_due: int = 0


class Prospect(NamedTuple):
    """What registering a schedule from the code will change."""

    schedule: Schedule
    before: State | None
    """The state in Redis; None if the schedule is new."""
    ruling: Schedule
    """The effective definition: that of the code, with an operator's override applied."""
    rev: str
    placed: Placement | None
    """What to write; None if Redis is up to date."""


def foresee(schedule: Schedule, seen: State | None, now: datetime, app: str) -> Prospect:
    """Return what registering a schedule of `app` changes; a schedule that `app` does not own yet is always written."""
    ruling, rev = overrides.in_force(schedule, seen.override if seen else "")
    anew = seen is not None and seen.app != app
    return Prospect(schedule, seen, ruling, rev, place(ruling, seen, now, rev, anew=anew))


def place(
    schedule: Schedule, seen: State | None, now: datetime, rev: str = "", *, anew: bool = False
) -> Placement | None:
    """Return the state and next tick to write, or None if Redis is up to date. With `anew`, always return them.

    `rev` is the revision of the effective definition if an operator has overridden the schedule's own.
    """
    placed = _place(schedule, seen, now, rev or schedule.rev)
    if seen is None or anew or not _is_same(seen, placed, rev or schedule.rev):
        return placed
    return None


def _place(schedule: Schedule, seen: State | None, now: datetime, rev: str) -> Placement:
    if seen is None:
        return _from(schedule, _after(schedule, now))
    if schedule.follows is not None:
        return _following(schedule, seen)
    base = now if seen.last is None else max(now, seen.last)
    if _has_run_enough(schedule, seen):
        return Placement("finished", "")
    if seen.state == "paused":
        placed = _rest(schedule, seen, base) or Placement("paused", KEEP)
        return placed._replace(state="paused")
    if not schedule.enabled:
        return _rest(schedule, seen, base) or Placement("disabled", KEEP)
    if seen.state in {"disabled", "retired"} or (seen.state == "finished" and seen.rev != rev):
        return _from(schedule, _after(schedule, base))
    return _rest(schedule, seen, base) or Placement(_state(seen), KEEP)


def _following(schedule: Schedule, seen: State) -> Placement:
    """Return the placement of a schedule that follows another; it has no next tick."""
    if _has_run_enough(schedule, seen):
        return Placement("finished", "")
    return Placement("paused", "") if seen.state == "paused" else _from(schedule, None)


def _has_run_enough(schedule: Schedule, seen: State) -> bool:
    most = schedule.max_runs
    return schedule.enabled and bool(most) and seen.ticked >= (most or 0) and seen.state != "paused"


def standing(schedule: Schedule, now: datetime) -> str:
    """Return the next tick that an unchanged schedule has in Redis; "" if it is disabled or has no next tick."""
    tick = _after(schedule, now) if schedule.enabled else None
    return clock.text(tick) if tick else ""


def _after(schedule: Schedule, instant: datetime) -> datetime | None:
    return decide.after(schedule, instant.replace(microsecond=0))  # ticks are whole seconds, so calls share the cache


def _rest(schedule: Schedule, seen: State, base: datetime) -> Placement | None:
    """Return the placement at a new next tick, or None if the one in Redis remains valid."""
    if seen.timing_rev != schedule.timing_rev:
        return _from(schedule, _after(schedule, base))
    if seen.next is None:
        if seen.state in {"finished", "disabled", "paused"} and not seen.next_run:
            return None
        lost = _after(schedule, seen.last or base)  # missing or garbled: continue after the last tick
        return _from(schedule, lost)
    if seen.next > base and seen.next != _after(schedule, base):  # the time zone data changed
        return _from(schedule, _after(schedule, base))
    return None


def _from(schedule: Schedule, tick: datetime | None) -> Placement:
    if tick is None:
        over = "finished" if schedule.follows is None else "active"
        return Placement(over if schedule.enabled else "disabled", "")
    due = clock.to_ms(jitter_and_capacity.due(schedule, tick))
    return Placement("active" if schedule.enabled else "disabled", clock.text(tick), due)


def _state(seen: State) -> str:
    return "finished" if seen.state == "finished" and seen.next is None else "active"


def _is_same(seen: State, placed: Placement, rev: str) -> bool:
    """Return whether Redis already has the placement, the revision and the job template."""
    stays = placed.next in {KEEP, seen.next_run} and seen.state == placed.state
    return seen.template and seen.rev == rev and stays and not seen.unannounced_at
