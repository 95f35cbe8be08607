"""Provide a clock that moves only when a test moves it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from beat.errors import BadDuration, BadInstant
from beat.timing import clock, durations

if TYPE_CHECKING:
    from datetime import datetime

    from beat.timing.durations import Duration


class ManualClock:
    """A clock that shows `start` until it is moved.

    It refuses naive datetimes, and goes back only with `backwards=True`.
    """

    def __init__(self, start: datetime) -> None:
        self._now = clock.utc(start, "start")

    @property
    def now(self) -> datetime:
        """Return the present instant in UTC."""
        return self._now

    def advance(self, by: Duration) -> datetime:
        """Move forward by seconds, a timedelta or text such as "1h30m", and return the new instant."""
        length = durations.parse(by, "by")
        if length < timedelta(0):
            raise BadDuration(f"a clock advances forward, not by {by!r}: write clock.set(…, backwards=True) to go back")
        try:
            self._now += length
        except OverflowError as e:
            raise BadDuration(f"{durations.short(length)} after {clock.text(self._now)} there is no calendar") from e
        return self._now

    def set(self, instant: datetime, *, backwards: bool = False) -> datetime:
        """Move to an aware datetime and return it in UTC. Refuse an earlier one unless `backwards` is true."""
        to = clock.utc(instant)
        if to < self._now and not backwards:
            raise BadInstant(
                f"{clock.text(to)} lies before {clock.text(self._now)}, which this clock shows: "
                "write clock.set(…, backwards=True) if time is to go back"
            )
        self._now = to
        return to

    def __repr__(self) -> str:
        return f"ManualClock({clock.text(self._now)})"
