"""Explain one instant of a schedule: why it became a run, was skipped, waits, or is no tick.

The answer comes from a ledger that was read before. For a schedule that follows another one, an instant stands for its
whole minute, or for its second if it has seconds. beat claims nothing about ticks that the ledger no longer covers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from beat.client.rule_periods import begin, eras, newest
from beat.client.schedule_info import Pause
from beat.history.history import Action, Change, Fired, Passed, Waits
from beat.history.ledger import ASKED
from beat.policies import jitter_and_capacity
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from beat.client.relations import Parent
    from beat.client.rule_periods import Era
    from beat.client.schedule_info import Bound, Standing
    from beat.client.workers import Queue
    from beat.history.history import Line
    from beat.schedule.schedule import Schedule


Answer = Literal[
    "enqueued",  # it became a job: `runs`; also `passed`, if it was skipped first and backfilled later
    "skipped",  # it was skipped: `passed`; `behind`, if a run blocked it; `instead`, if another tick fired for it
    "waiting",  # it waits for an earlier run to end: `waits`, `behind`
    "due",  # it is due and undecided: `late`, `holder`, `beats`
    "catching_up",  # it is due and undecided, because missed ticks fire before it: `ahead`
    "not_due",  # it is in the future, or jitter or an operator (`deferred`) has delayed it: `due_at`; also `pause`,
    # if the pause ends by then
    "held",  # it cannot be decided in this `state`: `pause`; or because no running scheduler declares the schedule:
    # `unannounced_at`
    "not_a_tick",  # the schedule does not tick then: `before`, `after`; also the `change` that moved the next tick
    # past it, or the bound by which the schedule had `finished`
    "no_success",  # the schedule follows a `parent`, which had no success then: `before`, `after`
    "not_registered",  # the schedule did not exist yet: `begins`
    "trimmed",  # the ledger no longer covers it: `begins`
    "missing",  # it should have been decided, but was not
    "unreadable",  # the rule that was in force then cannot be read
]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The answer about one instant of one schedule; fields that `answer` does not name may be empty."""

    schedule_id: str
    instant: datetime
    answer: Answer
    tz: str
    state: str
    next_run: datetime | None
    runs: tuple[Fired, ...] = ()
    """The runs of the tick itself, normally one; if it was skipped, its backfill runs."""
    backfills: tuple[Fired, ...] = ()
    """The backfill runs of a tick that also has a run of its own."""
    unread: tuple[Queue, ...] = ()
    """The queues in which one of these runs waits and that no live worker reads."""
    passed: Passed | None = None
    waits: Waits | None = None
    """None if its line was trimmed."""
    behind: Fired | None = None
    """The run that blocked the tick; None if the ledger no longer holds it."""
    instead: datetime | None = None
    """The tick that fired in its place."""
    pause: Pause | None = None
    """The pause that holds the tick, or because of which it was skipped."""
    deferred: Action | None = None
    """The action by which an operator moved the tick."""
    unannounced_at: datetime | None = None
    """Since when no running scheduler declares the schedule."""
    before: datetime | None = None
    """The nearest tick before the instant."""
    after: datetime | None = None
    """The nearest tick after the instant."""
    parent: Parent | None = None
    """The schedule that this one follows."""
    change: Change | None = None
    finished: Bound | None = None
    begins: datetime | None = None
    due_at: datetime | None = None
    """When the tick is or was due."""
    moved_by: str = ""
    """The operator who moved the tick; empty if none did."""
    late: float | None = None
    """Seconds since `due_at`."""
    ahead: int = 0
    """How many missed ticks fire before this one."""
    holder: str = ""
    """The scheduler that holds the lock of the schedule."""
    beats: int = 0
    """How many schedulers are running."""
    policies: Schedule | None = field(default=None, repr=False)
    """The schedule as it is defined now; None if the definition cannot be read."""


_SECOND, _MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def end_of(instant: datetime) -> datetime:
    """Return the end of the minute that begins with `instant`, or of the second if `instant` has seconds."""
    return instant + (_SECOND if instant.second or instant.microsecond else _MINUTE)


def look(lines: Sequence[Line], waiting: Collection[datetime], instant: datetime) -> tuple[Answer, dict[str, Any]]:
    """Return the most informative answer about the ticks from `instant` to its `end_of`, and its fields."""
    end = end_of(instant)
    runs = tuple(line for line in lines if isinstance(line, Fired) and line.tick and instant <= line.tick < end)
    if runs:
        return "enqueued", {"runs": runs}
    if any(instant <= tick < end for tick in waiting):
        told = (line for line in lines if isinstance(line, Waits) and instant <= line.tick < end)
        return "waiting", {"waits": next(told, None)}
    passed = (line for line in lines if isinstance(line, Passed) and line.first < end and instant <= line.last)
    if skipped := next(passed, None):
        return "skipped", {"passed": skipped}
    ticks = [line.tick for line in lines if isinstance(line, Fired) and line.tick and line.after]
    before = max((tick for tick in ticks if tick < instant), default=None)
    return "no_success", {"before": before, "after": min((tick for tick in ticks if tick >= end), default=None)}


__all__ = ["Explanation", "Question"]

_NONE = timedelta(0)


@dataclass(frozen=True)
class Question:
    """An instant and the facts that answer it; `lines` are newest first, at least those that `Near` picks."""

    standing: Standing
    lines: Sequence[Line]
    instant: datetime
    now: datetime
    holder: str = ""
    beats: int = 0
    waiting: Collection[datetime] = ()
    """The ticks on the waiting list."""
    parent: Parent | None = None
    """The schedule that this one follows, if it has no times of its own."""

    def answer(self) -> Explanation:
        """Return the most informative answer."""
        if self.parent:
            return self._followed(self.parent)
        runs = tuple(line for line in self.lines if isinstance(line, Fired) and line.tick == self.instant)
        known = eras(self.standing, self.lines)
        if runs:
            own = tuple(run for run in runs if run.triggered_by != "backfill")
            if own:
                return self._told("enqueued", runs=own, backfills=tuple(run for run in runs if run not in own))
            return self._told("enqueued", runs=runs, **self._skipped(known))
        waits = next((line for line in self.lines if isinstance(line, Waits) and line.tick == self.instant), None)
        if self.instant in self.waiting:
            return self._told("waiting", waits=waits, behind=self._run(waits.behind if waits else ""))
        if waits:
            return self._told("missing")
        if skipped := self._skipped(known):
            return self._told("skipped", **skipped)
        return self._out_of_reach() or self._around(known)

    def _followed(self, parent: Parent) -> Explanation:
        """Answer for a schedule that follows another one and has no times of its own."""
        answer, more = look(self.lines, self.waiting, self.instant)
        if answer == "no_success" and (told := self._out_of_reach()):
            return told
        if passed := more.get("passed"):
            more["pause"] = _pause(self.lines, passed)
        if line := passed or more.get("waits"):
            more["behind"] = self._run(line.behind)
        return self._told(answer, parent=parent, **more)

    def _skipped(self, known: list[Era]) -> dict[str, object]:
        """Return the line that skipped the tick and the fields that belong to it; empty if it was not skipped."""
        passed = self._passed(known)
        if passed is None:
            return {}
        more = {"instead": self._instead(passed), "pause": _pause(self.lines, passed)}
        return {"passed": passed, "behind": self._run(passed.behind), **more}

    def _run(self, job_id: str) -> Fired | None:
        return next((line for line in self.lines if isinstance(line, Fired) and line.job_id == job_id), None)

    def _instead(self, passed: Passed) -> datetime | None:
        """Return the tick that fired in place of the skipped ones, if any."""
        if passed.reason == "replaced":
            return next((line.tick for line in _ticks(self.lines) if line.job_id == passed.behind), None)
        if passed.reason != "misfire":
            return None
        runs = (line for line in self.lines if isinstance(line, Fired) and line.triggered_by not in ASKED)
        fired = [run for run in runs if run.tick and run.tick > passed.last]
        following = min(fired, key=lambda line: line.tick or line.at, default=None)
        return following.tick if following and following.triggered_by == "catchup" else None

    def _passed(self, known: list[Era]) -> Passed | None:
        for line in self.lines:
            if isinstance(line, Passed) and line.first <= self.instant <= line.last:
                ends = self.instant in (line.first, line.last)
                return line if ends or any(era.ticks_at(self.instant) for era in known) else None
        return None

    def _out_of_reach(self) -> Explanation | None:
        """Answer for an instant before the schedule, or before its ledger begins; None for any other."""
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
        finished = next((bound for era in known if (bound := era.finished(self.instant))), None)
        return self._told("not_a_tick", before=before, after=after, change=next(moved, None), finished=finished)

    def _tick(self) -> Explanation:
        """Answer for a tick without a decision."""
        following = self.standing.next_run
        if self.instant < following if following else self.instant <= (newest(self.lines) or clock.EPOCH):
            return self._trimmed() or self._told("missing")
        pause = self.standing.pause
        ends = pause is not None and pause.until is not None and pause.until <= self.instant
        if not following or not (ends or self.standing.state == "active"):
            return self._told("held", pause=pause)
        due = self._due(following)
        late = (self.now - due).total_seconds()
        if late < 0:
            moved_by = self.standing.deferred_by if self.instant == following else ""
            return self._told("not_due", due_at=due, moved_by=moved_by, pause=pause)
        if since := self.standing.unannounced_at:
            return self._told("held", unannounced_at=since)
        rule = self.standing.schedule
        if rule is None or not self._is_catching_up(following):
            return self._told("due", late=late, due_at=due)
        return self._told("catching_up", late=late, due_at=due, ahead=rule.count(following, self.instant))

    def _trimmed(self) -> Explanation | None:
        """Answer `trimmed` if the decision may be older than the oldest line of the ledger; None if it cannot be.

        A tick that waited is decided after later ticks. The ledger may therefore begin with an older tick than this
        one, although the decision of this one was trimmed.
        """
        oldest = self.lines[-1]
        whole = isinstance(oldest, Change) and oldest.type == "registered"
        return None if whole or self.instant > oldest.at else self._told("trimmed", begins=begin(self.lines))

    def _due(self, following: datetime) -> datetime:
        """Return when the tick is due, not when catch-up reaches it."""
        known = self.standing
        if self.instant == following and known.due_at and not self._is_catching_up(following):
            return known.due_at
        return jitter_and_capacity.due(known.policies, self.instant) if known.policies else self.instant

    def _is_catching_up(self, following: datetime) -> bool:
        """Return whether the next tick is late and delayed, because catch-up has just fired other ticks."""
        known, due = self.standing.policies, self.standing.due_at
        late = known and due and known.misfire == "all" and due > following + (known.jitter or _NONE)
        return bool(late) and not self.standing.deferred_by

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
            policies=self.standing.policies,
            deferred=next((line for line in self.lines if _moves(line, self.instant)), None),
            **more,  # type: ignore[arg-type]  # the fields differ by answer
        )


def _pause(lines: Sequence[Line], passed: Passed) -> Pause | None:
    """Return the pause that skipped these ticks, with its last reason."""
    if passed.reason != "paused":
        return None
    told = (line for line in lines if isinstance(line, Action) and line.type == "paused")
    line = next((line for line in told if line.at <= passed.at), None)
    return Pause(line.beat, line.at, line.until, line.reason, "") if line else None


def _moves(line: Line, tick: datetime) -> TypeGuard[Action]:
    return isinstance(line, Action) and line.type == "deferred" and line.tick == tick


def _ticks(lines: Iterable[Line]) -> Iterable[Fired | Waits]:
    """Yield the lines that name the job of a tick: lines of runs, and of ticks that wait or waited."""
    for line in lines:
        if isinstance(line, Fired | Waits):
            yield line
        elif isinstance(line, Passed) and line.waited:
            yield line.waited
