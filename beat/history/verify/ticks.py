"""Walk over the ticks of a schedule, from the ledger's oldest line on, and compare them with the decisions.

Before each line, the pointer is the next tick, or None if there is none. A decision on an earlier tick is a duplicate,
and a decision on a later one leaves a gap. A tick that begins to wait moves the pointer as a decision does, and is
decided later.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import TYPE_CHECKING, Literal

from beat.errors import BadInstant
from beat.history.ledger import Acted, Changed, Enqueued, Skipped, Waiting
from beat.history.verify.changes import arrive, leave, readable, text
from beat.history.verify.findings import INSTANT, Findings, Stretch, holds, stretch
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from beat.history.ledger import Entry
    from beat.schedule.schedule import Schedule

_POINTED = {"scheduler", "catchup"}
"""Triggers that enqueue the next tick; requested runs do not move the pointer."""
_Kind = Literal["enqueued", "skipped", "finished", "instead", "waiting"]
"""How a line treats its ticks.

A schedule that has finished skips its last ticks. Ticks skipped because an operator requested a run instead need not be
due.
"""


_KINDS: Mapping[str, _Kind] = {"finished": "finished", "instead": "instead"}


class Decided:
    """The ticks that have been decided, and those that wait."""

    def __init__(self) -> None:
        self.newest = clock.EPOCH
        self.waiting: dict[datetime, Schedule | None] = {}
        """The waiting ticks, each with the rule in force when it began to wait, if that rule was readable."""
        self.moved: datetime | None = None
        """The tick whose due time an operator changed, perhaps to a time before the tick."""
        self._firsts: set[datetime] = set()
        self._skipped: list[Stretch] = []

    def add(self, found: Stretch) -> None:
        """Record these ticks as decided."""
        self._firsts.add(found.first)
        self.newest = max(self.newest, found.last)
        if found.count > 1:
            insort(self._skipped, found)

    def holds(self, tick: datetime, rule: Schedule) -> bool:
        """Return whether the tick has been decided."""
        if tick in self._firsts:
            return True
        place = bisect_right(self._skipped, tick, key=lambda found: found.first) - 1
        return place >= 0 and tick <= self._skipped[place].last and holds(rule, tick)

    def end(self, waiting: Collection[datetime], findings: Findings, now: datetime) -> None:
        """Report ticks that wait according to the ledger but not in Redis, and the reverse."""
        for tick, rule in self.waiting.items():
            if tick not in waiting:
                findings.miss(rule, tick, tick + INSTANT) if rule else findings.say(now, f"{text(tick)} waited in vain")
            elif findings.covers(tick):
                findings.waiting += 1
        for tick in waiting:
            if tick not in self.waiting and not findings.is_beyond(tick):
                findings.say(now, f"{text(tick)} waits, and the ledger does not say so")


class Tally:
    """A count of the ticks that became jobs; max_runs of them finish a schedule."""

    def __init__(self, *, complete: bool) -> None:
        self.number = 0 if complete else None
        """None if the count is unknown."""

    def add(self) -> None:
        """Count one more job."""
        self.number = None if self.number is None else self.number + 1

    def finishes(self, rule: Schedule, waiting: int) -> bool:
        """Return whether the jobs so far and the waiting ticks use up max_runs."""
        return rule.max_runs is not None and self.number is not None and self.number + waiting >= rule.max_runs

    def allows_end(self, rule: Schedule) -> bool:
        """Return whether max_runs may be used up; an unknown count may be."""
        return rule.max_runs is not None and (self.number is None or self.number >= rule.max_runs)


class Walk:
    """A walk over the ticks of one schedule, as far as its ledger goes back."""

    def __init__(self, findings: Findings, rule: Schedule | None, *, complete: bool) -> None:
        self.rule = rule
        """The rule in force at this point of the ledger; None if it is unreadable."""
        self.begun: datetime | None = None
        """The first tick that is checked."""
        self.pointer: datetime | None = None
        self.lost = True
        """Whether the pointer is unknown, because the ledger begins here or the rule is unreadable."""
        self._findings, self._decided, self._tally = findings, Decided(), Tally(complete=complete)

    def step(self, entry: Entry) -> None:
        """Check the next entry."""
        try:
            match entry:
                case Enqueued(tick=tick, by=by) if tick and by in _POINTED:
                    self._tally.add()
                    self._decide(Stretch(tick, tick, 1), entry.at, "enqueued")
                case Enqueued(tick=tick, after=after) | Skipped(tick=tick, after=after) if tick and after:
                    self.begun = self.begun or tick  # it followed another schedule, so no rule gives its time
                case Skipped(reason=reason):
                    kind = _KINDS.get(reason, "skipped")
                    self._decide(Stretch(entry.tick, entry.last, entry.count), entry.at, kind)
                case Waiting() if not _goes_on(entry, self.rule, self._decided.waiting):
                    self._point(Stretch(entry.tick, entry.tick, 1), entry.at, "waiting")
                case Changed():
                    self._change(entry)
                case Acted(type="deferred"):
                    self._decided.moved = entry.tick
        except (BadInstant, OverflowError) as e:
            self.lost = True
            self._findings.say(entry.at, f"the line of {clock.text(entry.at)} cannot be placed: {e}")

    def end(self, next_run: datetime | None, state: str, now: datetime, waiting: Collection[datetime] | None) -> None:
        """Compare the pointer with `next_run`, and the waiting ticks with those in Redis."""
        try:
            if not self.lost and self.rule is not None and self.pointer != next_run:
                self._part(self.rule, next_run, state, now)
            self._decided.end(self._decided.waiting if waiting is None else waiting, self._findings, now)
        except (BadInstant, OverflowError) as e:
            self._findings.say(now, f"next_run is {text(next_run)}: {e}")

    def _part(self, rule: Schedule, next_run: datetime | None, state: str, now: datetime) -> None:
        expected, say = self.pointer, self._findings.say
        if expected is None:
            say(now, f"next_run is {text(next_run)}, and the ledger says that there are no more ticks")
        elif next_run is not None and next_run > expected:
            self._findings.miss(rule, expected, next_run)
        elif next_run or (state != "disabled" and not self._may_be_over(rule)):
            named = text(next_run) if next_run else "empty"
            say(now, f"next_run is {named}, and the ledger says that {text(expected)} comes next")

    def _may_be_over(self, rule: Schedule) -> bool:
        """Return whether no tick may be left, because of max_runs or because trimmed lines covered all later ticks."""
        return self._tally.allows_end(rule) or (self.pointer is not None and self._findings.is_beyond(self.pointer))

    def _decide(self, found: Stretch, at: datetime, kind: _Kind) -> None:
        """Apply a decision to the next ticks, or to a tick that waited."""
        if found.first in self._decided.waiting and found.count == 1:
            del self._decided.waiting[found.first]
            self._note(found)
        else:
            self._point(found, at, kind)

    def _point(self, found: Stretch, at: datetime, kind: _Kind) -> None:
        first, last, count = found.first, found.last, found.count
        if last > at and kind != "instead" and last != self._decided.moved:
            self._findings.say(at, f"{text(last)} was decided before it was due, at {text(at)}")
        if last < first:
            self._findings.say(at, f"the stretch from {text(first)} ends before it begins, at {text(last)}")
            last = first
        if self.rule is None:  # nothing to compare with: that was reported, or it is before the period that is checked
            if self.begun:
                self._note(Stretch(first, last, count), kind)
            elif kind != "waiting":
                self._decided.add(Stretch(first, last, count))
            return
        if (found.last, count) != (first, 1):
            found = Stretch(first, first, 1) if first == last else stretch(self.rule, first, last)
        if found.count != count or not (first == last or holds(self.rule, last)):
            words = f"{found.count} ticks from {text(first)} to {text(last)}"
            self._findings.say(at, f"the line of {text(at)} says {count} skipped, and there are {words}")
        if self.lost:
            self.pointer, self.lost, self.begun = first, False, self.begun or first
        self._compare(found, self.rule, at, kind)

    def _compare(self, found: Stretch, rule: Schedule, at: datetime, kind: _Kind) -> None:
        first, say = found.first, self._findings.say
        if self._decided.holds(first, rule) or first in self._decided.waiting:
            self._twice(found, rule)
        elif (self.pointer is None or first < self.pointer) and self._findings.is_beyond(found.last):
            self._note(found, kind)  # it had waited, and that line was trimmed
        elif self.pointer is None:
            say(at, f"{text(first)} was decided, and there were to be no more ticks")
        elif first < self.pointer:
            if self._findings.find(first, found.last):
                self._decided.add(found)
            else:
                say(at, f"{text(first)} was decided, and {text(self.pointer)} was to come next")
        else:
            if first > self.pointer:
                self._findings.miss(rule, self.pointer, first)
            if first == self.pointer or holds(rule, first):
                self._note(found, kind)
            else:
                say(at, f"{text(first)} was decided, and is not a tick of the rule")
            counts = kind in {"enqueued", "waiting"} and self._tally.finishes(rule, len(self._decided.waiting))
            self.pointer = None if counts or kind == "finished" else rule.after(found.last)

    def _twice(self, found: Stretch, rule: Schedule) -> None:
        """Report the ticks before the pointer as decided twice, and record those from the pointer on as decided."""
        beyond = self.pointer is not None and found.first < self.pointer <= found.last
        if not beyond or self.pointer is None:
            self._findings.repeat(found, rule)
            return
        self._findings.repeat(stretch(rule, found.first, rule.before(self.pointer) or found.first), rule)
        self._note(stretch(rule, self.pointer, found.last))
        self.pointer = rule.after(found.last)

    def _note(self, found: Stretch, kind: _Kind = "skipped") -> None:
        if kind == "waiting":
            self._decided.waiting[found.first] = self.rule
        else:
            self._findings.account(found, self.rule)
            self._decided.add(found)

    def _change(self, entry: Changed) -> None:
        before = None if entry.type == "registered" else entry.before
        self.begun = self.begun or before or entry.next or entry.at
        if entry.type == "registered":
            self._anew(entry)
        elif not self.lost and self.rule is not None:
            leave(entry, self.rule, self.pointer, self._findings, finished=self._may_be_over(self.rule))
        self.rule = readable(entry.rule)
        self.pointer, self.lost = entry.next, self.rule is None
        if self.rule is None:
            self._findings.say(entry.at, f"the rule that came at {text(entry.at)} cannot be read")
        else:
            newest, finished = self._decided.newest, self._tally.allows_end(self.rule)
            arrive(entry, self.rule, newest, self._findings, finished=finished)

    def _anew(self, entry: Changed) -> None:
        """Start again after Redis had lost the schedule: report that, and the ticks that nothing decided meanwhile."""
        if self.lost:
            return
        self._tally = Tally(complete=False)
        self._findings.say(entry.at, f"the schedule was lost, and registered again at {text(entry.at)}")
        if self.rule and self.pointer and self.pointer <= entry.at:
            self._findings.miss(self.rule, self.pointer, entry.at + INSTANT)


def _goes_on(entry: Waiting, rule: Schedule | None, waiting: Collection[datetime]) -> bool:
    """Return whether the entry is no new tick of the calendar.

    Either the tick waited for its schedule's own slot before, and waits for its group's now, or it follows another
    schedule.
    """
    return bool(entry.group and entry.tick in waiting) or bool(rule and rule.follows)
