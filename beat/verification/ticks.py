"""A pointer that walks over the ticks of the definitions in force, from the ledger's oldest line on.

Before every line the pointer is the tick that comes next; None when there is none. A verdict on an earlier tick is one
too many, a verdict on a later one leaves a gap.
"""

from __future__ import annotations

import functools
import json
from bisect import bisect_right, insort
from typing import TYPE_CHECKING

from beat import clock, definitions
from beat.errors import BadInstant
from beat.ledger import Changed, Enqueued, Skipped
from beat.verification.findings import INSTANT, Findings, Stretch, holds, stretch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any

    from beat.ledger import Entry
    from beat.schedule import Schedule

_POINTED = {"scheduler", "catchup"}
"""By whom a tick is enqueued that was next; a run that somebody asked for moves nothing."""


class Decided:
    """The ticks that have a verdict."""

    def __init__(self) -> None:
        self.newest = clock.EPOCH
        self._firsts: set[datetime] = set()
        self._skipped: list[Stretch] = []

    def add(self, found: Stretch) -> None:
        """These have one from now on."""
        self._firsts.add(found.first)
        self.newest = max(self.newest, found.last)
        if found.count > 1:
            insort(self._skipped, found)

    def holds(self, tick: datetime, rule: Schedule) -> bool:
        """Whether this one has."""
        if tick in self._firsts:
            return True
        place = bisect_right(self._skipped, tick, key=lambda found: found.first) - 1
        return place >= 0 and tick <= self._skipped[place].last and holds(rule, tick)


class Walk:
    """The ticks of one schedule, as far as its ledger tells of them."""

    def __init__(self, findings: Findings, rule: Schedule | None) -> None:
        self.rule = rule
        """What decides the ticks now; None where it cannot be read."""
        self.begun: datetime | None = None
        """The first tick that is claimed."""
        self.pointer: datetime | None = None
        self.lost = True
        """Nobody knows where the pointer stands: the ledger begins here, or the rule cannot be read."""
        self._findings = findings
        self._decided = Decided()

    def step(self, entry: Entry) -> None:
        """The line that follows."""
        try:
            match entry:
                case Enqueued(tick=tick, by=by) if tick and by in _POINTED:
                    self._verdict(tick, tick, 1, entry.at)
                case Skipped():
                    self._verdict(entry.tick, entry.last, entry.count, entry.at)
                case Changed():
                    self._change(entry)
        except (BadInstant, OverflowError) as e:
            self.lost = True
            self._findings.say(entry.at, f"the line of {clock.text(entry.at)} cannot be placed: {e}")

    def end(self, next_run: datetime | None, state: str, now: datetime) -> None:
        """What was decided must end where the schedule goes on."""
        try:
            if not self.lost and self.rule is not None and self.pointer != next_run:
                self._part(self.rule, next_run, state, now)
        except (BadInstant, OverflowError) as e:
            self._findings.say(now, f"next_run is {_text(next_run)}: {e}")

    def _part(self, rule: Schedule, next_run: datetime | None, state: str, now: datetime) -> None:
        expected, say = self.pointer, self._findings.say
        if expected is None:
            say(now, f"next_run is {_text(next_run)}, and the ledger says that there are no more ticks")
        elif next_run is None:
            if state != "disabled":
                say(now, f"next_run is empty, and the ledger says that {_text(expected)} comes next")
        elif next_run < expected:
            say(now, f"next_run is {_text(next_run)}, and the ledger says that {_text(expected)} comes next")
        else:
            self._findings.miss(rule, expected, next_run)

    def _verdict(self, first: datetime, last: datetime, count: int, at: datetime) -> None:
        if last > at:
            self._findings.say(at, f"{_text(last)} was decided before it was due, at {_text(at)}")
        if last < first:
            self._findings.say(at, f"the stretch from {_text(first)} ends before it begins, at {_text(last)}")
            last = first
        if self.rule is None:  # nothing to compare with: that was said, or it came before all that is claimed
            note = self._note if self.begun else self._decided.add
            note(Stretch(first, last, count))
            return
        found = Stretch(first, first, 1) if first == last else stretch(self.rule, first, last)
        if found.count != count or not (first == last or holds(self.rule, last)):
            words = f"{found.count} ticks from {_text(first)} to {_text(last)}"
            self._findings.say(at, f"the line of {_text(at)} says {count} skipped, and there are {words}")
        if self.lost:
            self.pointer, self.lost, self.begun = first, False, self.begun or first
        self._compare(found, self.rule, at)

    def _compare(self, found: Stretch, rule: Schedule, at: datetime) -> None:
        first, say = found.first, self._findings.say
        if self._decided.holds(first, rule):
            self._twice(found, rule)
        elif self.pointer is None:
            say(at, f"{_text(first)} was decided, and there were to be no more ticks")
        elif first < self.pointer:
            if self._findings.find(first, found.last):
                self._decided.add(found)
            else:
                say(at, f"{_text(first)} was decided, and {_text(self.pointer)} was to come next")
        else:
            if first > self.pointer:
                self._findings.miss(rule, self.pointer, first)
            if first == self.pointer or holds(rule, first):
                self._note(found)
            else:
                say(at, f"{_text(first)} was decided, and is not a tick of the rule")
            self.pointer = rule.after(found.last)

    def _twice(self, found: Stretch, rule: Schedule) -> None:
        """Some have had their verdict; those from the pointer on have not."""
        beyond = self.pointer is not None and found.first < self.pointer <= found.last
        if not beyond or self.pointer is None:
            self._findings.repeat(found, rule)
            return
        self._findings.repeat(stretch(rule, found.first, rule.before(self.pointer) or found.first), rule)
        self._note(stretch(rule, self.pointer, found.last))
        self.pointer = rule.after(found.last)

    def _note(self, found: Stretch) -> None:
        self._findings.account(found, self.rule)
        self._decided.add(found)

    def _change(self, entry: Changed) -> None:
        before = None if entry.type == "registered" else entry.before
        self.begun = self.begun or before or entry.next or entry.at
        if entry.type == "registered":
            self._anew(entry)
        elif not self.lost and self.rule is not None:
            self._leave(entry, self.rule)
        self.rule = readable(entry.rule)
        self.pointer, self.lost = entry.next, self.rule is None
        if self.rule is None:
            self._findings.say(entry.at, f"the rule that came at {_text(entry.at)} cannot be read")
        else:
            self._arrive(entry, self.rule)

    def _anew(self, entry: Changed) -> None:
        """Where this is not the first line, Redis had lost the schedule, and nobody decided about its ticks."""
        if self.lost:
            return
        self._findings.say(entry.at, f"the schedule was lost, and registered again at {_text(entry.at)}")
        if self.rule and self.pointer and self.pointer <= entry.at:
            self._findings.miss(self.rule, self.pointer, entry.at + INSTANT)

    def _leave(self, entry: Changed, rule: Schedule) -> None:
        """The old rule must have come as far as the change says."""
        was, say = readable(entry.was or {}), self._findings.say
        if was and was.timing_rev != rule.timing_rev:
            say(entry.at, f"the change of {_text(entry.at)} replaced a rule that the ledger does not know")
        if entry.before != self.pointer:
            if entry.before and self.pointer and entry.before > self.pointer:
                self._findings.miss(rule, self.pointer, entry.before)
            else:
                words = f"{_text(entry.before)} was next, and the ledger says {_text(self.pointer)}"
                say(entry.at, f"at the change of {_text(entry.at)} {words}")
        if entry.before and entry.before <= entry.at and entry.next != entry.before:
            self._findings.leave_out(rule, entry.before, entry.at + INSTANT)

    def _arrive(self, entry: Changed, rule: Schedule) -> None:
        """The new rule goes on with its first tick after the change, or with one that was due already."""
        base = max(entry.at, self._decided.newest)
        if entry.next and entry.next <= base:
            return
        following, say = rule.after(base), self._findings.say
        if entry.next and following and entry.next > following:
            self._findings.miss(rule, following, entry.next)
        elif entry.next != following:
            words = f"goes on with {_text(entry.next)}, and the rule with {_text(following)}"
            say(entry.at, f"the change of {_text(entry.at)} {words}")


def readable(rule: Mapping[str, Any]) -> Schedule | None:
    """A schedule with the ticks of this rule; None if it is none."""
    try:
        return _ticking(json.dumps(dict(rule)))
    except (TypeError, ValueError, RecursionError):  # what is refused is a ValueError, too
        return None


@functools.lru_cache(maxsize=100)
def _ticking(rule: str) -> Schedule:  # a ledger may tell of the same few rules a thousand times
    return definitions.ticking(json.loads(rule))


def _text(instant: datetime | None) -> str:
    return clock.text(instant) if instant else "nothing"
