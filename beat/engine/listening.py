"""Since when a scheduler has heard workers without a break, by Redis' clock.

A heartbeat looks old when Redis was away, when its clock leapt, or when no scheduler listened. So its age says nothing
until the scheduler has listened for longer than a worker is silent between two heartbeats.
"""

from __future__ import annotations

from beat.engine.clock_guard import uptime_ms

BREAK_MS = 30_000
"""After so long without an answer from Redis, a scheduler begins to listen anew.

A shorter outage makes no living worker look silent: a heartbeat comes every 30 s and counts for 60.
"""
LEAP_MS = 5_000
"""By how much Redis' clock and this machine's may move apart before it does, too."""


class Hearing:
    """What one watcher has heard."""

    def __init__(self) -> None:
        self._answered_ms = 0
        self._ahead_ms: int | None = None
        """How far Redis' clock was ahead of this machine's when the watcher began to listen; None if it has not."""
        self._since_ms = 0

    def answered(self) -> None:
        """Take note that Redis has answered."""
        now = uptime_ms()
        if now - self._answered_ms > BREAK_MS:
            self._ahead_ms = None
        self._answered_ms = now

    def since(self, redis_ms: int) -> int:
        """Return since when, at an answer that Redis gave at this time of its clock."""
        self.answered()
        ahead = redis_ms - self._answered_ms
        if self._ahead_ms is None or abs(ahead - self._ahead_ms) > LEAP_MS:
            self._ahead_ms, self._since_ms = ahead, redis_ms
        return self._since_ms
