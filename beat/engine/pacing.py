"""Compute the waits and page sizes of a ticker from the settings, and estimate Redis' clock between replies."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from beat.policies.decide import Lateness

if TYPE_CHECKING:
    import threading

    from beat.config.settings import Settings

_MS = timedelta(milliseconds=1)
MOST_CLAIMS = 10_000
"""The maximum number of claims that a scheduler holds, however long its locks last."""
LONGEST_WAIT = 20_000
"""The longest wait in ms before a rejected schedule is retried; `parts/retry.lua` has the same value."""


@dataclass(frozen=True)
class Pace:
    """The durations of a cycle, in ms, and the size of its pages."""

    interval: int
    lookahead: int
    lock_ttl: int
    misfire_limit: int
    page_size: int
    catchup_window: int = 366 * 86_400_000
    catchup_limit: int = 10

    @classmethod
    def of(cls, settings: Settings) -> Pace:
        """Return the pace that the settings ask for."""
        return cls(
            interval=settings.interval // _MS,
            lookahead=settings.lookahead // _MS,
            lock_ttl=settings.lock_ttl // _MS,
            misfire_limit=settings.misfire_limit // _MS,
            page_size=settings.page_size,
            catchup_window=settings.catchup_window // _MS,
            catchup_limit=settings.catchup_limit,
        )

    @functools.cached_property
    def lateness(self) -> Lateness:
        """Return what counts as late for schedules that do not say so themselves."""
        return Lateness(
            self.misfire_limit * _MS, self.catchup_window * _MS, self.catchup_limit, pause=self.interval * _MS
        )

    @property
    def cycle(self) -> int:
        """Return the shortest wait before a rejected schedule is retried, in ms."""
        return min(self.interval, self.misfire_limit // 4, LONGEST_WAIT)

    @property
    def waits(self) -> dict[str, int]:
        """Return the durations in ms that decide when the scripts retry rejections, by the scripts' names for them."""
        return {"cycle": self.cycle, "misfire_limit": self.misfire_limit, "early": self.lookahead}

    @property
    def most_claims(self) -> int:
        """Return how many claims a scheduler may hold: two for each millisecond that a lock outlasts the lookahead.

        So many ticks that are due together are claimed and prepared ahead, and a scheduler that fires 2,000 a second
        fires all of them before a lock expires.
        """
        return min(MOST_CLAIMS, 2 * (self.lock_ttl - self.lookahead))

    def asks(self, room: int | None) -> dict[str, int]:
        """Return the limits of the next claim; without room only schedules that are due already, with None nothing."""
        if room is None:
            return {"lock_ttl": self.lock_ttl, "lookahead": 0, "limit": 0}
        limit, lookahead = (min(self.page_size, room), self.lookahead) if room > 0 else (self.page_size, 0)
        return {"lock_ttl": self.lock_ttl, "lookahead": lookahead, "limit": limit}


class RedisClock:
    """Redis' clock, followed between two replies by this process's monotonic clock."""

    def __init__(self) -> None:
        self._ahead_ms = 0.0
        self._sent = 0.0

    def ask(self) -> None:
        """Take note that a command is sent now whose reply will contain the time."""
        self._sent = time.monotonic()

    def learn(self, first_ms: int, last_ms: int | None = None) -> None:
        """Correct the estimate by the times in the replies; both lie between the call of `ask` and now."""
        # Redis truncates to whole milliseconds, so on average its time is half a millisecond later.
        both_ms = first_ms + (first_ms if last_ms is None else last_ms)
        self._ahead_ms = both_ms / 2 + 0.5 - (self._sent + time.monotonic()) * 500

    def now_ms(self) -> float:
        """Return the present time by Redis' clock."""
        return time.monotonic() * 1000 + self._ahead_ms

    def local_s(self, instant_ms: float) -> float:
        """Return an instant of Redis' clock in seconds of the monotonic clock."""
        return (instant_ms - self._ahead_ms) / 1000

    def sleep_until(self, instant_ms: float, stopping: threading.Event) -> None:
        """Wait until an instant of Redis' clock, or until `stopping` is set."""
        left = instant_ms - self.now_ms()
        if left > 0:
            stopping.wait(left / 1000)
