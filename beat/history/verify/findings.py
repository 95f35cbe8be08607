"""Collect the findings of a verification: how many ticks were expected, and which were not decided exactly once.

Ticks before the beginning of the ledger, or before the requested instant, are neither expected nor reported.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from beat.errors import BadInstant
from beat.timing import clock

if TYPE_CHECKING:
    from datetime import datetime

    from beat.schedule.schedule import Schedule

_SECOND, _CENTURY = timedelta(seconds=1), timedelta(days=36_525)
INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, order=True)
class Stretch:
    """A range of consecutive ticks of one schedule: `count` ticks from `first` to `last`."""

    first: datetime
    last: datetime
    count: int


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The result of comparing a schedule's ledger with the ticks of its definitions."""

    schedule_id: str
    expected: int
    """Ticks that had to be decided, whether they were or not; pending ticks are not included."""
    accounted: int
    missing: tuple[Stretch, ...] = ()
    double: tuple[Stretch, ...] = ()
    """Ticks that were decided more than once."""
    pending: int = 0
    """Due ticks that are not decided yet."""
    held: int = 0
    """Due ticks of a schedule that is paused or that no running scheduler declares."""
    waiting: int = 0
    """Ticks that wait for a slot and are decided later."""
    off: tuple[Stretch, ...] = ()
    """Ticks that came while the schedule was disabled or retired, and were not expected."""
    trimmed_before: datetime | None = None
    """The first tick that was checked, if the ledger does not reach back to its beginning or the requested instant."""
    problems: tuple[str, ...] = ()
    """All other problems, a sentence for each."""

    @property
    def sound(self) -> bool:
        """Return whether every expected tick was decided once, and all numbers agree."""
        return not (self.missing or self.double or self.problems)


def holds(rule: Schedule, tick: datetime) -> bool:
    """Return whether the instant is a tick of the rule."""
    return rule.count(tick, tick + INSTANT) > 0


def stretch(rule: Schedule, first: datetime, last: datetime) -> Stretch:
    """Return the range of ticks from `first` to `last`, counted by the rule.

    `first` need not be a tick of the rule, because it may have been due when the rule changed. Raises BadInstant if the
    range exceeds a hundred years: counting the ticks of ten thousand years takes half a minute.
    """
    if last - first > _CENTURY:
        raise BadInstant(f"more than a hundred years lie between {clock.text(first)} and {clock.text(last)}")
    return Stretch(first, last, rule.count(first, last + INSTANT) + (not holds(rule, first)))


@dataclass
class Findings:
    """The findings about ticks from `since` on."""

    since: datetime | None
    blind: datetime | None = None
    """Ticks up to here may have been decided, or begun to wait, in lines that were trimmed."""
    accounted: int = 0
    waiting: int = 0
    double: list[Stretch] = field(default_factory=list)
    off: list[Stretch] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _missing: list[tuple[Stretch, Schedule]] = field(default_factory=list)

    def covers(self, instant: datetime) -> bool:
        """Return whether the instant is in the requested period."""
        return self.since is None or instant >= self.since

    def is_beyond(self, tick: datetime) -> bool:
        """Return whether a trimmed line may have been about this tick."""
        return self.blind is not None and tick <= self.blind

    def say(self, at: datetime, problem: str) -> None:
        """Add a problem, unless its time `at` is before the requested period."""
        if self.covers(at):
            self.problems.append(problem)

    def clip(self, found: Stretch, rule: Schedule | None) -> Stretch | None:
        """Return the part of the range in the requested period; None if there is none."""
        if self.since is None or found.first >= self.since:
            return found
        first = rule.after(self.since - INSTANT) if rule else None
        if rule is None or first is None or first > found.last:
            return None
        return stretch(rule, first, found.last)

    def account(self, found: Stretch, rule: Schedule | None) -> None:
        """Count these ticks as decided."""
        clipped = self.clip(found, rule)
        self.accounted += clipped.count if clipped else 0

    def repeat(self, found: Stretch, rule: Schedule) -> None:
        """Report these ticks as decided more than once."""
        clipped = self.clip(found, rule)
        if clipped:
            self.double.append(clipped)

    def leave_out(self, rule: Schedule, first: datetime, before: datetime) -> None:
        """Report ticks from `first` on and before `before` that came while the schedule decided nothing."""
        last = max(first, rule.before(before) or first)
        clipped = self.clip(stretch(rule, first, last), rule)
        if clipped:
            self.off.append(clipped)

    def miss(self, rule: Schedule, first: datetime, before: datetime) -> None:
        """Report ticks from `first` on and before `before` as undecided, unless trimmed lines may have decided them."""
        if self.blind is not None and first <= self.blind:
            following = rule.after(self.blind)
            if following is None or following >= before:
                return
            first = following
        last = max(first, rule.before(before) or first)
        found = self.clip(stretch(rule, first, last), rule)
        if found:
            insort(self._missing, (found, rule), key=_first)

    def find(self, first: datetime, last: datetime) -> bool:
        """Turn ticks that were reported missing into decided ones, and report the wrong order of the lines.

        Return False, without a change, if they were not missing.
        """
        place = bisect_right(self._missing, first, key=_first) - 1
        if place < 0 or last > self._missing[place][0].last:
            return False
        gap, rule = self._missing[place]
        if first != gap.first and not holds(rule, first):
            return False
        del self._missing[place]
        if first > gap.first:
            self.miss(rule, gap.first, first)
        following = rule.after(last)
        if following and following <= gap.last:
            self.miss(rule, following, gap.last + _SECOND)
        self.account(stretch(rule, first, last), rule)
        self.say(first, f"the verdict on {clock.text(first)} stands in the ledger after a later one")
        return True

    def sum_up(self, schedule_id: str, pending: int, trimmed_before: datetime | None, *, held: int = 0) -> Verification:
        """Return all findings as one Verification."""
        missing = tuple(found for found, _ in self._missing)
        reaches = trimmed_before is None or (self.since is not None and trimmed_before <= self.since)
        return Verification(
            schedule_id=schedule_id,
            expected=self.accounted + sum(found.count for found in missing),
            accounted=self.accounted,
            missing=missing,
            double=tuple(self.double),
            pending=pending,
            held=held,
            waiting=self.waiting,
            off=tuple(self.off),
            trimmed_before=None if reaches else trimmed_before,
            problems=tuple(self.problems),
        )


def _first(missing: tuple[Stretch, Schedule]) -> datetime:
    return missing[0].first
