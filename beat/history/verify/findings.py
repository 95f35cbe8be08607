"""What a verification finds: how many ticks were to come, and which of them have no verdict, or more than one.

What lies before the beginning of the ledger, or before the instant asked about, is neither claimed nor complained of.
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
    """Ticks of one schedule that follow each other: from `first` to `last`, `count` of them."""

    first: datetime
    last: datetime
    count: int


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The ledger of one schedule, compared with the ticks of the definitions in force."""

    schedule_id: str
    expected: int
    """Ticks that were to be decided: those with a verdict and those without, not those that are pending."""
    accounted: int
    missing: tuple[Stretch, ...] = ()
    double: tuple[Stretch, ...] = ()
    """Ticks that were decided once more."""
    pending: int = 0
    """Ticks that are due and not decided yet."""
    held: int = 0
    """Ticks that are due, and held: by a pause, or because no running scheduler declares the schedule."""
    waiting: int = 0
    """Ticks that wait for an earlier run to end: their verdict comes then."""
    off: tuple[Stretch, ...] = ()
    """Ticks that came while the schedule was disabled or retired, and were not expected."""
    trimmed_before: datetime | None = None
    """The first tick that is claimed, where the ledger does not reach back to the beginning, or to what was asked."""
    problems: tuple[str, ...] = ()
    """All else that is off, each in a sentence."""

    @property
    def sound(self) -> bool:
        """Whether every tick that was to be decided was decided once, and all numbers agree."""
        return not (self.missing or self.double or self.problems)


def holds(rule: Schedule, tick: datetime) -> bool:
    """Whether it is a tick of the rule."""
    return rule.count(tick, tick + INSTANT) > 0


def stretch(rule: Schedule, first: datetime, last: datetime) -> Stretch:
    """From `first`, which may be a stranger to the rule (it was due when the rule changed), to `last`.

    Refuses what is longer than any ledger: to count the ticks of ten thousand years takes half a minute.
    """
    if last - first > _CENTURY:
        raise BadInstant(f"more than a hundred years lie between {clock.text(first)} and {clock.text(last)}")
    return Stretch(first, last, rule.count(first, last + INSTANT) + (not holds(rule, first)))


@dataclass
class Findings:
    """Collects what concerns the ticks from `since` on."""

    since: datetime | None
    blind: datetime | None = None
    """Up to here a tick may have been decided, or begun to wait, in what was trimmed."""
    accounted: int = 0
    waiting: int = 0
    double: list[Stretch] = field(default_factory=list)
    off: list[Stretch] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _missing: list[tuple[Stretch, Schedule]] = field(default_factory=list)

    def covers(self, instant: datetime) -> bool:
        """Whether it was asked about."""
        return self.since is None or instant >= self.since

    def is_beyond(self, tick: datetime) -> bool:
        """Whether what was trimmed may have told of it."""
        return self.blind is not None and tick <= self.blind

    def say(self, at: datetime, problem: str) -> None:
        """Something of that time is off."""
        if self.covers(at):
            self.problems.append(problem)

    def clip(self, found: Stretch, rule: Schedule | None) -> Stretch | None:
        """As much of it as was asked about."""
        if self.since is None or found.first >= self.since:
            return found
        first = rule.after(self.since - INSTANT) if rule else None
        if rule is None or first is None or first > found.last:
            return None
        return stretch(rule, first, found.last)

    def account(self, found: Stretch, rule: Schedule | None) -> None:
        """These have their verdict."""
        clipped = self.clip(found, rule)
        self.accounted += clipped.count if clipped else 0

    def repeat(self, found: Stretch, rule: Schedule) -> None:
        """These had their verdict already."""
        clipped = self.clip(found, rule)
        if clipped:
            self.double.append(clipped)

    def leave_out(self, rule: Schedule, first: datetime, before: datetime) -> None:
        """These came while nobody was to decide."""
        last = max(first, rule.before(before) or first)
        clipped = self.clip(stretch(rule, first, last), rule)
        if clipped:
            self.off.append(clipped)

    def miss(self, rule: Schedule, first: datetime, before: datetime) -> None:
        """There is no verdict from `first` on and before `before`."""
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
        """What was missing has been found, out of order; False if it was not missing."""
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
        """All of it."""
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
