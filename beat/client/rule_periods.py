"""Find rule periods: which rule decided the ticks from when to when, by the changes in a ledger.

The ticks of a period lie from its first one to before its end. There may be a gap between two periods, if a change
moved the next tick past times that would have been ticks.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from beat.client.schedule_info import Bound, ticking
from beat.errors import BadInstant
from beat.history.history import Action, Change, Fired, Passed, Waits
from beat.history.ledger import ASKED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.history.history import Line
    from beat.schedule.schedule import Schedule

_INSTANT = timedelta(microseconds=1)


class Era(NamedTuple):
    """A period under one rule."""

    rule: Schedule | None
    """None if it cannot be read."""
    first: datetime | None
    """Its first tick, or None. The rule itself may have no such tick, because a tick that is due is never moved."""
    end: datetime | None
    """The tick at which the next period begins; None for the present period."""
    last: datetime | None = None
    """Its last tick, if max_runs ended the period early."""

    def covers(self, instant: datetime) -> bool:
        """Return whether the instant lies from the first tick of this period to before its end."""
        return self.first is not None and self.first <= instant and (self.end is None or instant < self.end)

    def holds(self, instant: datetime) -> bool:
        """Return whether this period decided about the instant, so max_runs had not ended it yet."""
        return self.covers(instant) and (self.last is None or instant <= self.last)

    def finished(self, instant: datetime) -> Bound | None:
        """Return what ended this period before the instant, if anything did."""
        if self.rule is None or not self.covers(instant):
            return None
        if self.last and self.last < instant and self.rule.max_runs:
            return Bound(max_runs=self.rule.max_runs)
        return Bound(end=self.rule.end) if self.rule.end and self.rule.end < instant else None

    def ticks_at(self, instant: datetime) -> bool:
        """Return whether the instant is a tick of this period."""
        if not self.holds(instant) or instant.microsecond:
            return False
        return instant == self.first or (
            self.rule is not None and _asked(self.rule.before, instant + _INSTANT) == instant
        )

    def before(self, instant: datetime) -> datetime | None:
        """Return its last tick strictly before `instant`."""
        if self.first is None or self.first >= instant or (self.end is not None and self.first >= self.end):
            return None
        latest = min(instant, self.end or instant, self.last + _INSTANT if self.last else instant)
        found = self.rule and _asked(self.rule.before, latest)
        return max(found, self.first) if found else self.first

    def after(self, instant: datetime) -> datetime | None:
        """Return its first tick strictly after `instant`."""
        if self.first is None:
            return None
        found = self.first if instant < self.first else self.rule and _asked(self.rule.after, instant)
        return found if found and self.holds(found) else None


def eras(standing: Standing, lines: Sequence[Line]) -> list[Era]:
    """Return the rule periods in a history (newest line first), oldest first; the last one is the present period."""
    changes = [line for line in reversed(lines) if isinstance(line, Change)]
    began = begin(lines)
    ends: list[_End] = [(change.before or change.next, change.before, change.at) for change in changes]
    ends.append((None, standing.next_run, None))  # the present period has no end
    found = []
    if not changes or changes[0].type != "registered":
        rule = standing.schedule if not changes else ticking(changes[0].was or {})
        found.append(_era(rule, began or standing.next_run, ends[0], lines))
    for change, end in zip(changes, ends[1:], strict=True):
        found.append(_era(ticking(change.rule), change.next, end, lines))
    return found


def newest(lines: Sequence[Line], until: datetime | None = None) -> datetime | None:
    """Return the newest tick that was decided, or waited, by `until`."""
    told = (line for line in lines if not isinstance(line, Change | Action) and (until is None or line.at <= until))
    ticks = (line.last if isinstance(line, Passed) else line.tick for line in told)
    return max((tick for tick in ticks if tick), default=None)


def _era(rule: Schedule | None, first: datetime | None, end: _End, lines: Sequence[Line]) -> Era:
    """Return a period; if its rule has max_runs and no tick was next, its newest tick was its last one."""
    limit, following, at = end
    over = rule is not None and rule.max_runs is not None and following is None
    return Era(rule, first, limit, newest(lines, at) if over else None)


_End = tuple["datetime | None", "datetime | None", "datetime | None"]
"""The first tick of the next period, the tick that was next at the change, and the time of the change."""


def begin(lines: Sequence[Line]) -> datetime | None:
    """Return the first tick that the ledger covers; beat claims nothing about earlier ones."""
    for line in reversed(lines):
        match line:
            case Change():
                return line.before or line.next or line.at
            case Passed():
                return line.first
            case Waits():
                return line.tick
            case Fired(tick=tick, enqueued_at=enqueued_at) if tick and enqueued_at and line.triggered_by not in ASKED:
                return tick
    return None


def _asked(question: Callable[[datetime], datetime | None], instant: datetime) -> datetime | None:
    try:
        return question(instant)
    except BadInstant:  # beyond the calendar
        return None
