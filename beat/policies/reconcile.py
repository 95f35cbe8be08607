"""Where a schedule goes on when its definition comes from the code: a pure function of what Redis knows about it.

Only a change of what decides the ticks moves the next one, and a tick that is due already is never moved (the register
script sees to that, by Redis' own clock). What is edited or enabled goes on from now, and never fires at once unasked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat.policies import decide, time_policies
from beat.schedule import overrides
from beat.timing import clock

if TYPE_CHECKING:
    from datetime import datetime

    from beat.schedule.schedule import Schedule
    from beat.schedule.state import State

KEEP = "keep"


class Placement(NamedTuple):
    """The state of a schedule, and its next tick as text: `keep` where it stays, nothing where there is none."""

    state: str
    next: str
    next_due: int = 0


class Prospect(NamedTuple):
    """What becomes of a schedule when its code is registered."""

    schedule: Schedule
    before: State | None
    """What it goes on from; None when it is new."""
    ruling: Schedule
    """The definition in force: the code's, with what an operator has laid over it."""
    rev: str
    placed: Placement | None
    """None when Redis has it all."""


def foresee(schedule: Schedule, seen: State | None, now: datetime, app: str) -> Prospect:
    """Foresee what becomes of a schedule that the code of `app` declares, as Redis knows it."""
    ruling, rev = overrides.in_force(schedule, seen.override if seen else "")
    anew = seen is not None and seen.app != app
    return Prospect(schedule, seen, ruling, rev, place(ruling, seen, now, rev, anew=anew))


def place(
    schedule: Schedule, seen: State | None, now: datetime, rev: str = "", *, anew: bool = False
) -> Placement | None:
    """What is to be written, or None when Redis has it all; `anew`, it is written whatever Redis has.

    The rev is the schedule's own, unless an operator has laid something over its definition.
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
    """It has no next tick, wherever it comes from: another's success brings one."""
    if _has_run_enough(schedule, seen):
        return Placement("finished", "")
    return Placement("paused", "") if seen.state == "paused" else _from(schedule, None)


def _has_run_enough(schedule: Schedule, seen: State) -> bool:
    most = schedule.max_runs
    return schedule.enabled and bool(most) and seen.ticked >= (most or 0) and seen.state != "paused"


def standing(schedule: Schedule, now: datetime) -> str:
    """The next tick with which there is nothing to do, if all the rest is as it should be; nothing where it depends."""
    tick = _after(schedule, now) if schedule.enabled else None
    return clock.text(tick) if tick else ""


def _after(schedule: Schedule, instant: datetime) -> datetime | None:
    return decide.after(schedule, instant.replace(microsecond=0))  # ticks are whole seconds: one question for a second


def _rest(schedule: Schedule, seen: State, base: datetime) -> Placement | None:
    """The tick to move to, if the one that Redis has does not stand."""
    if seen.timing_rev != schedule.timing_rev:
        return _from(schedule, _after(schedule, base))
    if seen.next is None:
        if seen.state in {"finished", "disabled", "paused"} and not seen.next_run:
            return None
        lost = _after(schedule, seen.last or base)  # or garbled: nothing after the last one is lost
        return _from(schedule, lost)
    if seen.next > base and seen.next != _after(schedule, base):  # the zone's data have changed
        return _from(schedule, _after(schedule, base))
    return None


def _from(schedule: Schedule, tick: datetime | None) -> Placement:
    if tick is None:
        over = "finished" if schedule.follows is None else "active"
        return Placement(over if schedule.enabled else "disabled", "")
    due = clock.to_ms(time_policies.due(schedule, tick))
    return Placement("active" if schedule.enabled else "disabled", clock.text(tick), due)


def _state(seen: State) -> str:
    return "finished" if seen.state == "finished" and seen.next is None else "active"


def _is_same(seen: State, placed: Placement, rev: str) -> bool:
    """Whether Redis has it all."""
    stays = placed.next in {KEEP, seen.next_run} and seen.state == placed.state
    return seen.template and seen.rev == rev and stays and not seen.unannounced_at
