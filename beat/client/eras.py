"""Eras: which rule decided the ticks from when to when, put together from the changes that a ledger holds.

Ticks of an era lie from its first one on and before its end. Between two eras there may be a gap, where a change moved
the next tick over what would have been one.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from beat.client.standing import ticking
from beat.errors import BadInstant
from beat.history import Change, Fired, Passed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from beat.client.standing import Standing
    from beat.history import Line
    from beat.schedule import Schedule

_INSTANT = timedelta(microseconds=1)


class Era(NamedTuple):
    """A time under one rule."""

    rule: Schedule | None
    """None where it cannot be read."""
    first: datetime | None
    """Its first tick, which need not be one of the rule's: a tick that is due is never moved. None: it had none."""
    end: datetime | None
    """The tick at which the next era took over; None for the one that goes on."""

    def holds(self, instant: datetime) -> bool:
        """Whether this era decided about the instant."""
        return self.first is not None and self.first <= instant and (self.end is None or instant < self.end)

    def ticks_at(self, instant: datetime) -> bool:
        """Whether the instant is a tick of this era."""
        if not self.holds(instant) or instant.microsecond:
            return False
        return instant == self.first or (
            self.rule is not None and _asked(self.rule.before, instant + _INSTANT) == instant
        )

    def before(self, instant: datetime) -> datetime | None:
        """Its last tick strictly before `instant`."""
        if self.first is None or self.first >= instant or (self.end is not None and self.first >= self.end):
            return None
        found = self.rule and _asked(self.rule.before, min(instant, self.end or instant))
        return max(found, self.first) if found else self.first

    def after(self, instant: datetime) -> datetime | None:
        """Its first tick strictly after `instant`."""
        if self.first is None:
            return None
        found = self.first if instant < self.first else self.rule and _asked(self.rule.after, instant)
        return found if found and (self.end is None or found < self.end) else None


def eras(standing: Standing, lines: Sequence[Line]) -> list[Era]:
    """The eras that a schedule's lines, newest first, tell of; oldest first, the last one goes on."""
    changes = [line for line in reversed(lines) if isinstance(line, Change)]
    began = begin(lines)
    ends = [change.before or change.next for change in changes]
    found = []
    if not changes or changes[0].type != "registered":
        rule = standing.schedule if not changes else ticking(changes[0].was or {})
        found.append(Era(rule, began or standing.next_run, ends[0] if ends else None))
    for change, end in zip(changes, [*ends[1:], None], strict=False):  # the last one goes on
        found.append(Era(ticking(change.rule), change.next, end))
    return found


def begin(lines: Sequence[Line]) -> datetime | None:
    """The first tick that the ledger answers for: of those before it, nothing is claimed."""
    for line in reversed(lines):
        match line:
            case Change():
                return line.before or line.next or line.at
            case Passed():
                return line.first
            case Fired(tick=tick, enqueued_at=enqueued_at) if tick and enqueued_at:
                return tick
    return None


def _asked(question: Callable[[datetime], datetime | None], instant: datetime) -> datetime | None:
    try:
        return question(instant)
    except BadInstant:  # beyond the calendar
        return None
