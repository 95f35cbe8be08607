"""The clock guard: notices when Redis' clock jumps, by comparing it with a clock that cannot be set.

CLOCK_BOOTTIME counts the seconds since this machine started, also while it sleeps; a forward jump of Redis' clock
beyond it is no passing of time, and what it would make due waits until the new time has lasted a minute.

The timekeeper: has every reading of Redis' clock judged.

It holds firing everywhere when that clock jumped forward, and says what follows when it went back.
"""

from __future__ import annotations

import contextlib
import functools
import re
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from beat.engine.events import Event
from beat.storage import connection
from beat.storage.clock_setback import BACKWARD_MS, DECIDED
from beat.timing import clock

if TYPE_CHECKING:
    from beat.engine.events import Emit
    from beat.storage.clock_setback import Setback


FORWARD_MS = 120_000
"""A jump that is larger than this holds firing."""
HOLD_MS = 60_000

_NAMELESS = "-"
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Jump(Enum):
    """What Redis' clock did since it was last looked at."""

    NONE = "none"
    FORWARD = "forward"
    BACKWARD = "backward"


@dataclass(frozen=True)
class Mark:
    """One instant, by Redis' clock and by this machine's uptime: it lies between the question and the reply."""

    boot: str
    """Which start of which machine."""
    asked_ms: int
    answered_ms: int
    redis_ms: int

    def __str__(self) -> str:
        return f"{self.boot} {self.asked_ms} {self.redis_ms}"

    @classmethod
    def read(cls, written: str) -> Mark | None:
        """What `str` wrote."""
        boot, *numbers = written.split() or [""]
        if len(numbers) != len(("uptime", "redis")) or not all(map(_NUMBER.fullmatch, numbers)):
            return None
        uptime, redis = map(int, numbers)
        return cls(boot, uptime, uptime, redis)


def mark(asked_ms: int, redis_ms: int) -> Mark:
    """The reply that has just come, to what was asked at that uptime."""
    return Mark(boot(), asked_ms, uptime_ms(), redis_ms)


class Guard:
    """Judges every reading of Redis' clock by the one before it."""

    def __init__(self, before: Mark | None = None) -> None:
        self.by_ms = 0
        """By how much the clock jumped when it last did."""
        self._before = before if before and before.boot == boot() != _NAMELESS else None

    def judge(self, now: Mark) -> Jump:
        """Whether Redis' clock passed as this machine's did; a jump forward stays one until it is accepted."""
        before = self._before
        if before is None:
            self.accept(now)
            return Jump.NONE
        # Whoever is stopped between question and reply reads an old time late: that is no jump.
        passed = now.redis_ms - before.redis_ms
        ahead = passed - (now.answered_ms - before.asked_ms)
        behind = passed - (now.asked_ms - before.answered_ms)
        if ahead > FORWARD_MS:
            self.by_ms = ahead
            return Jump.FORWARD
        self.accept(now)
        if behind < -BACKWARD_MS:
            self.by_ms = behind
            return Jump.BACKWARD
        return Jump.NONE

    def accept(self, now: Mark) -> None:
        """Judge by this from now on."""
        self._before = now

    @property
    def sound(self) -> Mark | None:
        """The newest time that was found sound."""
        return self._before


def uptime_ms() -> int:
    """How long this machine has been up, sleep included."""
    which = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns() // 1_000_000 if which is None else time.clock_gettime_ns(which) // 1_000_000


@functools.cache
def boot() -> str:
    """Which start of which machine this is."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return _NAMELESS  # no such file on this system: marks of other processes are not comparable


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
