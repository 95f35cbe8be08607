"""Cron expressions: when they tick, in any zone, through every DST change.

The next tick is a pure function of the instant asked about, strictly later, and the same in every process.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

from beat.errors import BadCron, BadInstant, BadOption
from beat.timing import clock
from beat.timing.cron import describe, dst, hashed, parser
from beat.timing.cron.fields import HOUR
from beat.timing.cron.wall_times import WallTimes
from beat.timing.zones import Stretch, zone

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Cron"]

_DAY = timedelta(days=1)
_EVER = 146_097 * 86_400  # after 400 years the calendar begins anew
_LOOKED_FROM = clock.floor(datetime(2026, 1, 1, tzinfo=UTC))  # any date would do; the same one in every process


class Cron:
    """A cron expression in a time zone.

    Five fields, or six with `seconds=True` (seconds first). DST follows Debian's cron: an expression whose minute or
    hour field begins with `*` follows the wall clock; any other is a fixed time, which runs right after a jump that
    skips it, and once in an hour that is repeated. `H` is what `seed` chooses, a schedule's id.
    """

    __slots__ = ("_times", "_zone", "chosen", "expression", "hashed", "normalised", "seconds", "seed", "tz")

    def __init__(self, expression: str, tz: str = "UTC", seconds: bool = False, seed: str | None = None) -> None:  # noqa: FBT001, FBT002 (public)
        if not isinstance(seconds, bool):
            raise BadOption(f"seconds must be True or False, not {seconds!r:.60}")
        parsed = parser.parse(expression, seconds=seconds, seed=seed)
        self._zone = zone(tz)
        self.expression, self.tz, self.seconds = expression.replace("\t", " "), tz, seconds
        self.hashed = hashed.within(expression)
        self.seed = seed if self.hashed else None
        if self.hashed and seed is None:
            return  # without what decides the ticks: see __getattr__
        self.chosen, self.normalised = parsed
        self._times = WallTimes(self.chosen)
        # Only a wall clock that skips an hour can keep an expression of that hour from ever ticking.
        skippable = not self.chosen.fixed and self.chosen.hours != HOUR.values
        if skippable and self._next(_LOOKED_FROM) is None:
            told = hashed.told(self.seed, self.normalised)
            raise BadCron(expression, f"never fires: whenever it would, the clock of {tz} skips that hour{told}")

    def seeded(self, seed: str) -> Cron:
        """The same, with every `H` as this id decides it."""
        return Cron(self.expression, self.tz, self.seconds, seed) if self.hashed else self

    if not TYPE_CHECKING:  # or any misspelt name would pass

        def __getattr__(self, name: str) -> NoReturn:
            missing = f"'Cron' object has no attribute {name!r}"
            raise hashed.needs_id(self.expression) if name in Cron.__slots__ else AttributeError(missing)

    def after(self, instant: datetime) -> datetime:
        """The first tick strictly later than `instant`."""
        tick = self._next(clock.floor(instant) + 1)
        if tick is None:
            raise BadInstant(f"{self!r} has no tick in the 400 years after {clock.text(instant)}")
        return clock.at(tick)

    def before(self, instant: datetime) -> datetime:
        """The last tick strictly earlier than `instant`."""
        high = clock.ceil(instant)
        stretch = self._zone.at(high - 1)
        while (tick := self._last(stretch, high)) is None:
            if stretch.start < high - _EVER:
                raise BadInstant(f"{self!r} has no tick in the 400 years before {clock.text(instant)}")
            stretch = self._zone.at(stretch.start - 1)
        return clock.at(tick)

    def count(self, a: datetime, b: datetime) -> int:
        """How many ticks there are from `a` on and before `b`."""
        low, high, total = clock.ceil(a), clock.ceil(b), 0
        while low < high:
            stretch = self._zone.at(low)
            total += self._count(stretch, low, min(high, stretch.end))
            low = stretch.end
        return total

    def ticks(self, start: datetime, end: datetime | None = None) -> Iterator[datetime]:
        """The ticks from `start` on and before `end`; without `end` they do not stop."""
        low, high = clock.ceil(start), None if end is None else clock.ceil(end)
        while high is None or low < high:
            stretch = self._zone.at(low)
            tick = self._first(stretch, low)
            if tick is None:
                low = stretch.end
            elif high is None or tick < high:
                yield clock.at(tick)
                low = tick + 1
            else:
                return

    def shifts(self, a: datetime, b: datetime) -> Iterator[dst.Shift]:
        """The changes of the clocks from `a` on and before `b` that move, drop, keep single or repeat a tick."""
        return dst.shifts(self._times, self._zone, a, b, fixed=self.chosen.fixed)

    def note(self, previous: datetime, tick: datetime) -> str:
        """What DST did to `tick`, or dropped between `previous` and it, in words; mostly nothing."""
        # A repeated hour is noted on ticks before and after the change: look a day to both sides.
        near = self.shifts(min(previous, tick - _DAY), tick + _DAY)
        notes = (dst.note(shift, tick) for shift in near if shift.at > previous or shift.kind == "repeated")
        return "; ".join(note for note in notes if note)

    @property
    def meaning(self) -> list[object]:
        """All that decides the ticks, as plain values: equal for equal meanings, whatever was written."""
        return ["cron", *(list(part) if isinstance(part, tuple) else part for part in self.chosen), self.tz]

    def describe(self) -> str:
        """The expression in words."""
        return describe.describe(self.chosen, self.tz)

    # One stretch at a time: the rule of DST. Debian's cron keeps a virtual clock for fixed times, which never goes
    # back, and which catches up at once when the wall clock jumps ahead of it: that clock is `reached`.

    def _next(self, low: int) -> int | None:
        stretch = self._zone.at(low)
        while (tick := self._first(stretch, low)) is None:
            if stretch.end > low + _EVER:
                return None
            stretch = self._zone.at(stretch.end)
        return tick

    def _first(self, stretch: Stretch, low: int) -> int | None:
        if low <= stretch.start and self._makes_up(stretch):
            return stretch.start
        found = self._times.first(self._from(stretch, low), stretch.end + stretch.offset)
        return None if found is None else found - stretch.offset

    def _last(self, stretch: Stretch, high: int) -> int | None:
        found = self._times.last(self._from(stretch, stretch.start), min(high, stretch.end) + stretch.offset)
        if found is not None:
            return found - stretch.offset
        return stretch.start if stretch.start < high and self._makes_up(stretch) else None

    def _count(self, stretch: Stretch, low: int, high: int) -> int:
        opens = self._from(stretch, low)
        total = self._times.count(opens, high + stretch.offset)
        if low <= stretch.start and self._makes_up(stretch):
            total += not self._times.count(opens, opens + 1)
        return total

    def _from(self, stretch: Stretch, low: int) -> int:
        wall = max(low, stretch.start) + stretch.offset
        return max(wall, stretch.reached) if self.chosen.fixed else wall

    def _makes_up(self, stretch: Stretch) -> bool:
        """A fixed time that the jump at this stretch's start skipped runs right there."""
        if not self.chosen.fixed or stretch.reached >= stretch.opens:
            return False
        return self._times.first(stretch.reached, stretch.opens) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cron) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, str]:
        return self.expression if self.hashed and self.seed is None else self.chosen, self.tz

    def __reduce__(self) -> tuple[type[Cron], tuple[object, ...]]:
        return Cron, (self.expression, self.tz, self.seconds, self.seed)

    def __str__(self) -> str:
        return self.expression

    def __repr__(self) -> str:
        extra = ", seconds=True" * self.seconds + (f", seed={self.seed!r}" if self.seed is not None else "")
        return f"Cron({self.expression!r}, tz={self.tz!r}{extra})"
