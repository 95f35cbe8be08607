"""Compute the ticks of intervals such as "every 15 minutes".

Ticks are counted from the epoch or from a fixed start, never from the start of a process, so all processes agree.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from beat.errors import BadDuration, BadInstant
from beat.timing import clock, durations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

_SHORTEST, _LONGEST = timedelta(seconds=1), timedelta(days=366)


class Every:
    """An interval that ticks at epoch + phase + n · period or, with `start`, at start + n · period (n ≥ 0)."""

    __slots__ = ("_anchor", "_period", "period", "phase", "start")

    def __init__(
        self, period: timedelta | float | str, phase: timedelta | float | str = 0, start: datetime | None = None
    ) -> None:
        self.period = _whole(period, "every")
        if not _SHORTEST <= self.period <= _LONGEST:
            raise BadDuration(f"every={_shown(period)} must lie between 1 second and 366 days, as in every='15m'")
        self.phase = _whole(phase, "phase")
        if not timedelta(0) <= self.phase < self.period:
            raise BadDuration(
                f"phase={_shown(phase)} must lie between 0 and every={durations.short(self.period)!r}, which it shifts"
            )
        self.start = None if start is None else _fixed(clock.utc(start, "start"))
        if self.start is not None and self.phase:
            raise BadDuration(
                "phase shifts what is counted from the epoch, start= is counted from itself: give one of the two"
            )
        self._period = self.period // _SHORTEST
        self._anchor = self.phase // _SHORTEST if self.start is None else clock.floor(self.start)

    def after(self, instant: datetime) -> datetime:
        """Return the first tick strictly later than `instant`."""
        return self._tick(self._number(clock.floor(instant) + 1))

    def before(self, instant: datetime) -> datetime | None:
        """Return the last tick strictly earlier than `instant`, or None if that is before `start`."""
        number = self._number(clock.ceil(instant)) - 1
        return None if self.start is not None and number < 0 else self._tick(number)

    def count(self, a: datetime, b: datetime) -> int:
        """Return the number of ticks in `[a, b)`."""
        return max(0, self._number(clock.ceil(b)) - self._number(clock.ceil(a)))

    def ticks(self, start: datetime, end: datetime | None = None) -> Iterator[datetime]:
        """Yield the ticks in `[start, end)`; without `end`, never stop."""
        number = self._number(clock.ceil(start))
        last = None if end is None else self._number(clock.ceil(end))
        while last is None or number < last:
            yield self._tick(number)
            number += 1

    @property
    def meaning(self) -> list[object]:
        """Return everything that determines the ticks, as plain values."""
        return ["every", self._period, self._anchor, self.start is not None]

    def describe(self) -> str:
        """Return the interval in words."""
        words = f"every {durations.words(self.period)}"
        if " " not in words.removeprefix("every 1 "):
            words = words.replace("every 1 ", "every ")
        if self.start is not None:
            return f"{words}, from {clock.text(self.start)} on"
        return f"{words}, shifted by {durations.words(self.phase)}" if self.phase else words

    def _number(self, second: int) -> int:
        """Return the number of the first tick at or after `second`."""
        number = -((self._anchor - second) // self._period)
        return number if self.start is None else max(number, 0)

    def _tick(self, number: int) -> datetime:
        return clock.at(self._anchor + number * self._period)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Every) and self.meaning == other.meaning

    def __hash__(self) -> int:
        return hash((self.period, self.phase, self.start))

    def __str__(self) -> str:
        return f"every {durations.short(self.period)}"

    def __repr__(self) -> str:
        phase = f", phase={durations.short(self.phase)!r}" if self.phase else ""
        start = f", start={self.start!r}" if self.start else ""
        return f"Every({durations.short(self.period)!r}{phase}{start})"


def _whole(value: object, name: str) -> timedelta:
    duration = durations.parse(value, name)
    if duration % _SHORTEST:
        raise BadDuration(f"{name}={_shown(value)} must be whole seconds: beat looks once a second")
    return duration


def _fixed(start: datetime) -> datetime:
    if start.microsecond:
        raise BadInstant(
            f"start {clock.text(start)} must be a whole second, the same in every process: "
            "write a date, not the time at which the code runs"
        )
    return start


def _shown(value: object) -> str:
    return f"{value!r:.60}"
