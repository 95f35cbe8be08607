"""Find out since when a scheduler has heard workers without a break, by Redis' clock.

A heartbeat looks old if Redis was away, if its clock jumped, or if no scheduler was running. So its age says nothing
until the scheduler has listened for longer than a worker is silent between two heartbeats.
"""

from __future__ import annotations

from beat.engine.clock_guard import uptime_ms

BREAK_MS = 30_000
"""How long Redis may be silent before a scheduler starts to listen again from zero.

A shorter outage makes no living worker look silent: a heartbeat comes every 30 s and counts for 60.
"""
LEAP_MS = 5_000
"""How far Redis' clock and this machine's may drift apart before a scheduler starts to listen again from zero."""


class Hearing:
    """The time since which one run tracker has heard from Redis without a break."""

    def __init__(self) -> None:
        self._answered_ms = 0
        self._ahead_ms: int | None = None
        """How far Redis' clock was ahead of the uptime when it began to listen; None if it has not begun."""
        self._since_ms = 0

    def answered(self) -> None:
        """Take note that Redis has answered."""
        now = uptime_ms()
        if now - self._answered_ms > BREAK_MS:
            self._ahead_ms = None
        self._answered_ms = now

    def since(self, redis_ms: int) -> int:
        """Return since when it has listened, by Redis' clock; Redis has just answered at `redis_ms` of that clock."""
        self.answered()
        ahead = redis_ms - self._answered_ms
        if self._ahead_ms is None or abs(ahead - self._ahead_ms) > LEAP_MS:
            self._ahead_ms, self._since_ms = ahead, redis_ms
        return self._since_ms
