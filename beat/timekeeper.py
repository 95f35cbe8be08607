"""The timekeeper: has every reading of Redis' clock judged.

It holds firing everywhere when that clock jumped forward, and says what follows when it went back.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Protocol

from beat import clock, connection
from beat.event import Event
from beat.guard import FORWARD_MS, HOLD_MS, Guard, Jump
from beat.setback import DECIDED

if TYPE_CHECKING:
    from beat.event import Emit
    from beat.guard import Mark
    from beat.setback import Setback


class Meta(Protocol):
    """What all beats know about the time."""

    def high_water(self) -> tuple[str, str]:
        """The highest time that a beat has found sound, and the mark that went with it."""

    def hold(self, since: int, until: int) -> None:
        """Nothing is handed out meanwhile."""

    def setback(self) -> Setback | None:
        """Return what it means that Redis' clock went back; None if it did not."""


class Timekeeper:
    """One beat's eye on the clock."""

    def __init__(self, meta: Meta, emit: Emit) -> None:
        self.guard = Guard()
        self._meta, self._emit = meta, emit
        self._has_looked = False

    def is_ahead(self, now: Mark) -> bool:
        """Whether Redis' clock jumped forward, so that nothing may fire by it; true until `hold` is done."""
        jump = self.guard.judge(now)
        seconds = round(abs(self.guard.by_ms) / 1000)
        if jump is not Jump.FORWARD:
            self._look_back(seconds if jump is Jump.BACKWARD else 0)
            return False
        if not self._was_found_sound(now):
            return True
        self.guard.accept(now)
        self._emit(Event("stood_still", fields={"seconds": seconds}))
        return False

    def hold(self, now: Mark) -> None:
        """Nobody fires until this time has lasted a minute."""
        self._meta.hold(now.redis_ms, now.redis_ms + HOLD_MS)
        self.guard.accept(now)
        seconds = round(self.guard.by_ms / 1000)
        self._emit(Event("clock_forward", fields={"seconds": seconds, "hold_seconds": HOLD_MS // 1000}))

    def _look_back(self, seconds: int) -> None:
        """Say that the clock went back, by so many seconds; and once, when this scheduler starts, that it had."""
        if not seconds and self._has_looked:
            return
        setback = None
        with contextlib.suppress(*connection.Errors):  # without it the log only says less
            setback = self._meta.setback()
            self._has_looked = True
        if setback:
            seconds = seconds or round((setback.seen - setback.now).total_seconds())
        if seconds:
            fields = {"seconds": seconds, "words": setback.consequence if setback else DECIDED}
            self._emit(Event("clock_backward", fields=fields))

    def _was_found_sound(self, now: Mark) -> bool:
        """Whether a beat has found this time sound: this machine stood still, or the clock is put right again."""
        time, _ = self._meta.high_water()
        return time != "" and now.redis_ms - clock.to_ms(clock.read(time)) <= FORWARD_MS
