"""The clock guard: notices when Redis' clock jumps, by comparing it with a clock that cannot be set.

CLOCK_BOOTTIME counts the seconds since this machine started, also while it sleeps; a forward jump of Redis' clock
beyond it is no passing of time, and what it would make due waits until the new time has lasted a minute.
"""

from __future__ import annotations

import functools
import re
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

FORWARD_MS = 120_000
"""A jump that is larger than this holds firing."""
BACKWARD_MS = 2_000
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
