"""The rhythm of a beat: Redis' clock, followed between two replies by this process's own monotonic clock."""

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
"""No beat holds more schedules at once, however long its locks last."""
LONGEST_WAIT = 20_000
"""The longest wait in ms before what Redis rejects is retried; `parts/retry.lua` has the same."""


@dataclass(frozen=True)
class Pace:
    """The lengths of time that a pass goes by, in ms, and how much it takes at once."""

    interval: int
    lookahead: int
    lock_ttl: int
    misfire_limit: int
    page_size: int
    catchup_window: int = 366 * 86_400_000
    catchup_limit: int = 10

    @classmethod
    def of(cls, settings: Settings) -> Pace:
        """As the settings say."""
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
        """What counts as late, where a schedule does not say so itself."""
        return Lateness(
            self.misfire_limit * _MS, self.catchup_window * _MS, self.catchup_limit, pause=self.interval * _MS
        )

    @property
    def cycle(self) -> int:
        """How soon at the earliest a scheduler retries what Redis rejects."""
        return min(self.interval, self.misfire_limit // 4, LONGEST_WAIT)

    @property
    def waits(self) -> dict[str, int]:
        """What decides when Redis' rejections are retried, by the names that the scripts use."""
        return {"cycle": self.cycle, "misfire_limit": self.misfire_limit, "early": self.lookahead}

    @property
    def most_claims(self) -> int:
        """How many schedules a beat holds at once: two for each millisecond that a lock lasts beyond the lookahead.

        So what is due at once is claimed and prepared before it is due; and who fires two thousand a second has fired
        all of it before a lock runs out.
        """
        return min(MOST_CLAIMS, 2 * (self.lock_ttl - self.lookahead))

    def asks(self, room: int | None) -> dict[str, int]:
        """What to claim: when there is room for no more, only what is due already; for None, nothing."""
        if room is None:
            return {"lock_ttl": self.lock_ttl, "lookahead": 0, "limit": 0}
        limit, lookahead = (min(self.page_size, room), self.lookahead) if room > 0 else (self.page_size, 0)
        return {"lock_ttl": self.lock_ttl, "lookahead": lookahead, "limit": limit}


class RedisClock:
    """Redis' clock, estimated from its replies."""

    def __init__(self) -> None:
        self._ahead_ms = 0.0
        self._sent = 0.0

    def ask(self) -> None:
        """A command that will bring back the time goes out now."""
        self._sent = time.monotonic()

    def learn(self, first_ms: int, last_ms: int | None = None) -> None:
        """The replies say that it is `first_ms`, then `last_ms`: both some time between the question and now."""
        # A reply is cut to whole milliseconds, so on average it is half a millisecond later than it says.
        both_ms = first_ms + (first_ms if last_ms is None else last_ms)
        self._ahead_ms = both_ms / 2 + 0.5 - (self._sent + time.monotonic()) * 500

    def now_ms(self) -> float:
        """The present, by Redis' clock."""
        return time.monotonic() * 1000 + self._ahead_ms

    def local_s(self, instant_ms: float) -> float:
        """That instant by the monotonic clock."""
        return (instant_ms - self._ahead_ms) / 1000

    def sleep_until(self, instant_ms: float, stopping: threading.Event) -> None:
        """Returns at that instant, or when it is time to stop."""
        left = instant_ms - self.now_ms()
        if left > 0:
            stopping.wait(left / 1000)
