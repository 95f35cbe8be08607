"""Why an instant became a run, was skipped, or is no tick: one question, answered from a ledger as it was read.

Nothing is claimed about what the ledger no longer holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from beat import clock
from beat.client.eras import begin, eras
from beat.history import Change, Fired, Passed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from beat.client.eras import Era
    from beat.client.standing import Standing
    from beat.history import Line

Answer = Literal[
    "enqueued",  # it became a job: `runs`
    "skipped",  # it passed without one: `passed`
    "due",  # it is due, and no beat has decided yet: `late`, `holder`, `beats`
    "not_due",  # it lies ahead
    "held",  # it will not be decided while the schedule is in its `state`
    "not_a_tick",  # the schedule does not tick then: `before`, `after`, and the `change` that moved over it, if any
    "not_registered",  # the schedule was not there yet: `begins`
    "trimmed",  # the ledger no longer goes back so far: `begins`
    "missing",  # it should have been decided, and was not
    "unreadable",  # the rule that decided then cannot be read
]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What there is to say about one instant of one schedule; fields that `answer` does not name may be empty."""

    schedule_id: str
    instant: datetime
    answer: Answer
    tz: str
    state: str
    next_run: datetime | None
    runs: tuple[Fired, ...] = ()
    """One, unless something went wrong."""
    passed: Passed | None = None
    before: datetime | None = None
    """The nearest tick before the instant."""
    after: datetime | None = None
    """The nearest tick after it."""
    change: Change | None = None
    begins: datetime | None = None
    late: float | None = None
    """Seconds since it was due."""
    holder: str = ""
    """The beat that is at work on the schedule."""
    beats: int = 0
    """How many beats are alive."""


@dataclass(frozen=True)
class Question:
    """All that is known when somebody asks; `lines` is the whole ledger, newest first."""

    standing: Standing
    lines: Sequence[Line]
    instant: datetime
    now: datetime
    holder: str = ""
    beats: int = 0

    def answer(self) -> Explanation:
        """The answer that says most."""
        runs = tuple(line for line in self.lines if isinstance(line, Fired) and line.tick == self.instant)
        if runs:
            return self._told("enqueued", runs=runs)
        known = eras(self.standing, self.lines)
        passed = self._passed(known)
        if passed:
            return self._told("skipped", passed=passed)
        return self._out_of_reach() or self._around(known)

    def _passed(self, known: list[Era]) -> Passed | None:
        for line in self.lines:
            if isinstance(line, Passed) and line.first <= self.instant <= line.last:
                ends = self.instant in (line.first, line.last)
                return line if ends or any(era.ticks_at(self.instant) for era in known) else None
        return None

    def _out_of_reach(self) -> Explanation | None:
        """Before the schedule, or before what the ledger holds of it."""
        oldest, created = self.lines[-1] if self.lines else None, self.standing.created_at
        if isinstance(oldest, Change) and oldest.type == "registered":
            return self._told("not_registered", begins=oldest.at) if self.instant < oldest.at else None
        if created and self.instant < created:
            return self._told("not_registered", begins=created)
        begins = begin(self.lines) or self.standing.next_run
        if begins is None or self.instant < begins:
            return self._told("trimmed", begins=begins)
        return None

    def _around(self, known: list[Era]) -> Explanation:
        if any(era.ticks_at(self.instant) for era in known):
            return self._tick()
        if any(era.holds(self.instant) and era.rule is None for era in known):
            return self._told("unreadable")
        before = max((found for era in known if (found := era.before(self.instant))), default=None)
        after = min((found for era in known if (found := era.after(self.instant))), default=None)
        changes = (line for line in self.lines if isinstance(line, Change) and line.before and line.next)
        moved = (line for line in changes if (line.before or line.at) <= self.instant < (line.next or line.at))
        return self._told("not_a_tick", before=before, after=after, change=next(moved, None))

    def _tick(self) -> Explanation:
        """A tick without a verdict."""
        following = self.standing.next_run
        if self.instant < following if following else self.instant <= self._newest():
            return self._told("missing")
        if self.standing.state != "active" or not following:
            return self._told("held")
        due = self.standing.due_at if self.instant == following else None
        late = (self.now - (due or self.instant)).total_seconds()
        return self._told("not_due") if late < 0 else self._told("due", late=late)

    def _newest(self) -> datetime:
        """The newest tick that has a verdict."""
        decided = [
            line.last if isinstance(line, Passed) else line.tick for line in self.lines if not isinstance(line, Change)
        ]
        return max((tick for tick in decided if tick), default=clock.EPOCH)

    def _told(self, answer: Answer, **more: object) -> Explanation:
        return Explanation(
            schedule_id=self.standing.schedule_id,
            instant=self.instant,
            answer=answer,
            tz=self.standing.tz,
            state=self.standing.state,
            next_run=self.standing.next_run,
            holder=self.holder,
            beats=self.beats,
            **more,  # type: ignore[arg-type]  # each answer brings fields of its own
        )
