"""Notice when Redis' clock jumps, by comparing it with a clock that cannot be set.

CLOCK_BOOTTIME counts the time since this machine started, including sleep. If Redis' clock moves ahead of it, no time
has passed, so no scheduler fires until the new time has lasted a minute. If Redis' clock goes back, ticks that are
decided stay decided, and the log says what follows.
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
"""A larger jump forward stops firing for a while."""
HOLD_MS = 60_000

_NAMELESS = "-"
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Jump(Enum):
    """How Redis' clock moved since the reading before."""

    NONE = "none"
    FORWARD = "forward"
    BACKWARD = "backward"


@dataclass(frozen=True)
class Mark:
    """A reading of Redis' clock, taken between two readings of this machine's uptime."""

    boot: str
    """The id of this machine's boot."""
    asked_ms: int
    answered_ms: int
    redis_ms: int

    def __str__(self) -> str:
        return f"{self.boot} {self.asked_ms} {self.redis_ms}"

    @classmethod
    def read(cls, written: str) -> Mark | None:
        """Parse what `str` wrote; return None if the text is invalid."""
        boot, *numbers = written.split() or [""]
        if len(numbers) != len(("uptime", "redis")) or not all(map(_NUMBER.fullmatch, numbers)):
            return None
        uptime, redis = map(int, numbers)
        return cls(boot, uptime, uptime, redis)


def mark(asked_ms: int, redis_ms: int) -> Mark:
    """Return the mark for a reply that has just come to a command sent at the uptime `asked_ms`."""
    return Mark(boot(), asked_ms, uptime_ms(), redis_ms)


class Guard:
    """The judge of each reading of Redis' clock, by the last one that was accepted."""

    def __init__(self, before: Mark | None = None) -> None:
        self.by_ms = 0
        """The size of the last jump; negative if the clock went back."""
        self._before = before if before and before.boot == boot() != _NAMELESS else None

    def judge(self, now: Mark) -> Jump:
        """Return how Redis' clock moved compared with this machine's; a jump forward lasts until it is accepted."""
        before = self._before
        if before is None:
            self.accept(now)
            return Jump.NONE
        # A process that is paused between command and reply reads an old time late, which is no jump.
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
        """Judge later readings by this one."""
        self._before = now

    @property
    def sound(self) -> Mark | None:
        """Return the newest reading that was accepted; None before the first."""
        return self._before


def uptime_ms() -> int:
    """Return how long this machine has been up, including sleep if the system counts it."""
    which = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns() // 1_000_000 if which is None else time.clock_gettime_ns(which) // 1_000_000


@functools.cache
def boot() -> str:
    """Return the id of this machine's boot, or `-` if the system has none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return _NAMELESS  # without an id, marks of other processes cannot be compared


class Meta(Protocol):
    """What schedulers share about the time, in Redis; the store provides it."""

    def high_water(self) -> tuple[str, str]:
        """Return the highest time that a scheduler has found sound, and the mark that belongs to it; empty if none."""

    def hold(self, since: int, until: int) -> None:
        """Let no scheduler claim from `since` until `until`, both in ms by Redis' clock."""

    def setback(self) -> Setback | None:
        """Return what follows if Redis' clock went back; None if it did not."""


class Timekeeper:
    """The reaction of one scheduler to jumps of Redis' clock."""

    def __init__(self, meta: Meta, emit: Emit) -> None:
        self.guard = Guard()
        self._meta, self._emit = meta, emit
        self._has_looked = False

    def is_ahead(self, now: Mark) -> bool:
        """Return whether Redis' clock jumped forward, so that no tick may fire; this lasts until `hold` succeeds.

        Logs a clock that went back, and a jump forward to a time that another scheduler has found sound.
        """
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
        """Keep all schedulers from firing until this time has lasted a minute."""
        self._meta.hold(now.redis_ms, now.redis_ms + HOLD_MS)
        self.guard.accept(now)
        seconds = round(self.guard.by_ms / 1000)
        self._emit(Event("clock_forward", fields={"seconds": seconds, "hold_seconds": HOLD_MS // 1000}))

    def _look_back(self, seconds: int) -> None:
        """Log that the clock went back by `seconds`; with 0, check once whether it had before this scheduler began."""
        if not seconds and self._has_looked:
            return
        setback = None
        with contextlib.suppress(*connection.Errors):  # the log then says less
            setback = self._meta.setback()
            self._has_looked = True
        if setback:
            seconds = seconds or round((setback.seen - setback.now).total_seconds())
        if seconds:
            fields = {"seconds": seconds, "words": setback.consequence if setback else DECIDED}
            self._emit(Event("clock_backward", fields=fields))

    def _was_found_sound(self, now: Mark) -> bool:
        """Return whether a scheduler has found this time sound; then this machine slept, or the clock was corrected."""
        time, _ = self._meta.high_water()
        return time != "" and now.redis_ms - clock.to_ms(clock.read(time)) <= FORWARD_MS
