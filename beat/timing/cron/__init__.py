"""Compute the ticks of cron expressions in any time zone and across DST changes.

The next tick is a pure function of the given instant, strictly later than it, and the same in every process.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

from beat.errors import BadCron, BadInstant, BadOption
from beat.timing import clock
from beat.timing.cron import describe, dst_notes, hashed, parser
from beat.timing.cron.fields import HOUR
from beat.timing.cron.wall_times import WallTimes
from beat.timing.zones import Stretch, zone

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Cron"]

_DAY = timedelta(days=1)
_EVER = 146_097 * 86_400  # the Gregorian calendar repeats after 400 years
_LOOKED_FROM = clock.floor(datetime(2026, 1, 1, tzinfo=UTC))  # any date works if all processes use the same one


class Cron:
    """A cron expression in a time zone.

    It has five fields, or six with `seconds=True` (seconds first). DST is handled as in Debian's cron. An expression
    whose minute or hour field begins with `*` follows the wall clock. Any other expression is a fixed time: it ticks
    right after a jump that skips it, and once if its hour is repeated. `seed`, a schedule's id, decides each `H`.
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
            return  # the attributes that need an id stay unset, so __getattr__ raises for them
        self.chosen, self.normalised = parsed
        self._times = WallTimes(self.chosen)
        # An expression that follows the wall clock may never tick if the clock always skips its hour.
        skippable = not self.chosen.fixed and self.chosen.hours != HOUR.values
        if skippable and self._next(_LOOKED_FROM) is None:
            told = hashed.told(self.seed, self.normalised)
            raise BadCron(expression, f"never fires: whenever it would, the clock of {tz} skips that hour{told}")

    def seeded(self, seed: str) -> Cron:
        """Return a copy in which the id `seed` decides every `H`, or this object if it has no `H`."""
        return Cron(self.expression, self.tz, self.seconds, seed) if self.hashed else self

    if not TYPE_CHECKING:  # with a visible __getattr__, type checkers would accept any misspelt attribute

        def __getattr__(self, name: str) -> NoReturn:
            missing = f"'Cron' object has no attribute {name!r}"
            raise hashed.needs_id(self.expression) if name in Cron.__slots__ else AttributeError(missing)

    def after(self, instant: datetime) -> datetime:
        """Return the first tick strictly later than `instant`."""
        tick = self._next(clock.floor(instant) + 1)
        if tick is None:
            raise BadInstant(f"{self!r} has no tick in the 400 years after {clock.text(instant)}")
        return clock.at(tick)

    def before(self, instant: datetime) -> datetime:
        """Return the last tick strictly earlier than `instant`."""
        high = clock.ceil(instant)
        stretch = self._zone.at(high - 1)
        while (tick := self._last(stretch, high)) is None:
            if stretch.start < high - _EVER:
                raise BadInstant(f"{self!r} has no tick in the 400 years before {clock.text(instant)}")
            stretch = self._zone.at(stretch.start - 1)
        return clock.at(tick)

    def count(self, a: datetime, b: datetime) -> int:
        """Return the number of ticks in `[a, b)`."""
        low, high, total = clock.ceil(a), clock.ceil(b), 0
        while low < high:
            stretch = self._zone.at(low)
            total += self._count(stretch, low, min(high, stretch.end))
            low = stretch.end
        return total

    def ticks(self, start: datetime, end: datetime | None = None) -> Iterator[datetime]:
        """Yield the ticks in `[start, end)`; without `end`, never stop."""
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

    def shifts(self, a: datetime, b: datetime) -> Iterator[dst_notes.Shift]:
        """Yield the clock changes in `[a, b)` that affect a tick."""
        return dst_notes.shifts(self._times, self._zone, a, b, fixed=self.chosen.fixed)

    def note(self, previous: datetime, tick: datetime) -> str:
        """Return in words how DST changed `tick` or dropped ticks between `previous` and it; mostly ""."""
        # A repeated hour concerns ticks before and after the change, so search a day on both sides.
        near = self.shifts(min(previous, tick - _DAY), tick + _DAY)
        notes = (dst_notes.note(shift, tick) for shift in near if shift.at > previous or shift.kind == "repeated")
        return "; ".join(note for note in notes if note)

    @property
    def meaning(self) -> list[object]:
        """Return everything that determines the ticks, as plain values; spelling makes no difference."""
        return ["cron", *(list(part) if isinstance(part, tuple) else part for part in self.chosen), self.tz]

    def describe(self) -> str:
        """Return the expression in words."""
        return describe.describe(self.chosen, self.tz)

    # The methods below apply the DST rule to one stretch at a time. For fixed times, Debian's cron keeps a virtual
    # clock that never goes back, and that catches up at once when the wall clock jumps forward. `Stretch.reached` is
    # that virtual clock.

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
        """Return whether the jump at the start of `stretch` skipped a fixed time, which then ticks at that start."""
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
