"""Summarise an installation in one sentence: first what is wrong, then what comes next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from beat.client.describe import instants
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from beat.client.schedule_info import Standing

Level = Literal["bad", "warn", "good", "none"]
_NAMED = 2
OFF_S = 5.0
"""From how many seconds on a difference between two clocks is reported."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """The facts for the sentence."""

    now: datetime
    active: int = 0
    paused: int = 0
    broken: int = 0
    failing: int = 0
    """How many of all schedules failed when they last ran."""
    late: int = 0
    """How many are undecided although they have been due for too long."""
    held: int = 0
    """How many are due, but no running scheduler declares them."""
    beats: int = 0
    stuck: tuple[str, ...] = ()
    """The schedulers that are alive but complete no cycles."""
    missing: tuple[str, ...] = ()
    """The schedulers that disappeared without signing off."""
    hold_until: datetime | None = None
    """Until when nothing fires because Redis' clock has jumped."""
    clock_s: float = 0.0
    """How many seconds Redis' clock is ahead of this machine's; negative if it is behind."""
    next_id: str = ""
    next_at: datetime | None = None

    @property
    def schedules(self) -> int:
        """Return how many schedules should tick; finished, disabled and retired ones do not count."""
        return max(self.active + self.paused + self.broken, self.failing)

    @property
    def fires(self) -> bool:
        """Return whether anything fires."""
        return bool(self.beats and self.active and not self.hold_until)


def sentence(found: Situation) -> str:
    """Return the summary, such as `All 14 schedules on time. Next: cache_warm in 41 s.`."""
    return " ".join(part for part in (state(found), following(found)) if part)


def state(found: Situation) -> str:
    """Return the summary without what comes next."""
    told = list(_machinery(found))
    wrong = _wrong(found)
    if not found.schedules:
        return " ".join(["There is no schedule yet.", *told])
    if wrong:
        return " ".join([wrong, *told])
    if not found.beats:
        wait = "1 schedule waits" if found.schedules == 1 else f"{found.schedules:,} schedules wait"
        return " ".join([*told, f"{wait} for one."])
    return " ".join([_well(found), *told])


def following(found: Situation) -> str:
    """Return what comes next, and when; empty if nothing fires."""
    if not (found.fires and found.next_at and found.next_id):
        return ""
    seconds = (found.next_at - found.now).total_seconds()
    away = f"in {instants.span(math.floor(seconds))}" if seconds >= 1 else "now"
    return f"Next: {found.next_id} {away}."


def level(found: Situation) -> Level:
    """Return how bad the situation is."""
    if not found.schedules:
        return "none"
    if found.failing or found.late or found.broken or not found.beats or found.hold_until:
        return "bad"
    wary = found.held or found.stuck or found.missing or abs(found.clock_s) >= OFF_S or not found.active
    return "warn" if wary else "good"


def due(known: Standing, beats: int, now: datetime) -> str:
    """Return why a due tick is undecided, as far as the state of the schedule tells."""
    late = instants.span(max(0.0, (now - (known.due_at or now)).total_seconds()))
    if known.unannounced_at:
        return f"due for {late}, and held: no running scheduler declares it"
    alive = f"{beats:,} scheduler{'s are' if beats > 1 else ' is'} running" if beats else "no scheduler is running"
    return f"due for {late}, and not decided yet: {alive}"


def _wrong(found: Situation) -> str:
    """Return what is wrong, such as `2 of 14 schedules are failing, 1 is late.`; empty if nothing is."""
    numbers = {"failing": found.failing, "late": found.late, "broken": found.broken, "held": found.held}
    first, *others = [(number, word) for word, number in numbers.items() if number] or [(0, "")]
    if not first[0]:
        return ""
    if found.schedules == 1:
        return f"The only schedule is {' and '.join([first[1], *(word for _, word in others)])}."
    whole = first[0] >= found.schedules
    subject = f"All {found.schedules:,} schedules" if whole else f"{first[0]:,} of {found.schedules:,} schedules"
    verb = "is" if first[0] == 1 and not whole else "are"
    more = "".join(f", {number:,} {'is' if number == 1 else 'are'} {word}" for number, word in others)
    return f"{subject} {verb} {first[1]}{more}."


def _well(found: Situation) -> str:
    if not found.active:
        return f"{_every(found.schedules)} {'is' if found.schedules == 1 else 'are'} paused: nothing fires."
    if found.paused:
        waits = f"{found.paused:,} {'is' if found.paused == 1 else 'are'} paused"
        return f"{found.active:,} of {found.schedules:,} schedules on time, {waits}."
    return f"{_every(found.schedules)} on time."


def _every(number: int) -> str:
    return "The only schedule" if number == 1 else f"All {number:,} schedules"


def _machinery(found: Situation) -> Iterator[str]:
    """Yield what is wrong with schedulers and clocks."""
    if not found.beats:
        yield "No scheduler is running: nothing fires." if found.schedules else "No scheduler is running."
    if found.missing:
        yield f"{_named(found.missing)} missing."
    if found.stuck:
        yield f"{_named(found.stuck)} stuck."
    if found.hold_until:
        until = instants.clock_time(found.hold_until, zone("UTC"))
        yield f"Redis' clock has jumped: nothing fires until {until}."
    elif abs(found.clock_s) >= OFF_S:
        side = "ahead of" if found.clock_s > 0 else "behind"
        yield f"Redis' clock is {instants.span(abs(found.clock_s))} {side} this machine's."


def _named(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return f"The scheduler {names[0]} is"
    shown = ", ".join(names[:_NAMED])
    return f"{len(names):,} schedulers ({shown}{' …' if len(names) > _NAMED else ''}) are"
