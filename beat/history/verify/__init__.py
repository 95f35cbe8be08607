"""Recomputes every tick of the definitions in force, and compares: with the ledger, the counters, the jobs that exist.

It claims what it can see. Ticks before the ledger's oldest verdict are not claimed, and the answer says from when on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.errors import BadInstant
from beat.history.ledger import Acted, Changed, Enqueued, Skipped
from beat.history.verify.changes import readable
from beat.history.verify.findings import Findings, Stretch, Verification, stretch
from beat.history.verify.followers import NOBODY, Bonds, compare, eras, rule_before
from beat.history.verify.runs import Numbers, Runs
from beat.history.verify.ticks import Walk
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Reversible, Sequence
    from datetime import datetime
    from typing import Any

    from beat.history.ledger import Entry
    from beat.schedule.schedule import Schedule

__all__ = ["Bonds", "Stretch", "Verification", "parents_of", "verify"]

_MARKS = (Changed, Acted)
_DECIDING = {"active", "broken"}
"""States in which what is due gets its verdict sooner or later."""


def verify(
    schedule_id: str,
    entries: Reversible[Entry],
    *,
    rule: Mapping[str, Any],
    next_run: datetime | None,
    run_count: int | None,
    skip_count: int | None,
    state: str,
    now: datetime,
    since: datetime | None = None,
    due_at: datetime | None = None,
    held: bool = False,
    waiting: Collection[datetime] | None = None,
    jobs: Mapping[str, datetime | None] | None = None,
    open_jobs: Collection[str] | None = None,
    other_jobs: Collection[str] = (),
    landmarks: Sequence[Changed | Acted] | None = None,
    counts: Mapping[str, int] | None = None,
    bonds: Bonds = NOBODY,
) -> Verification:
    """The whole ledger of a schedule, newest first, against its hash: both as they were at one instant, `now`.

    `due_at` is when its next tick is due, where jitter or an operator makes that another time than its own; `held`
    whether nothing is decided for now, because it is paused or no running scheduler declares it.
    `jobs` are the RQ jobs that exist and say that they are of this schedule, with their ticks; `open_jobs` those of it
    whose outcome is waited for, and `other_jobs` those of which no record names the schedule; `waiting` the ticks that
    wait for an earlier run to end; `counts` its success_count, failure_count and stopped_count; `bonds` whom it
    follows. What is not given is not compared. With `since`, only ticks and lines from then on are judged.

    The entries are read once, from the oldest to the newest, so that a long ledger need not be kept; `landmarks` are
    the changes and actions among them, oldest first, if they are known already.
    """
    marks = [each for each in reversed(entries) if isinstance(each, _MARKS)] if landmarks is None else landmarks
    oldest, current = next(iter(reversed(entries)), None), readable(rule)
    complete = _is_registration(oldest)
    blind = None if complete else oldest.at if oldest else now
    findings, of_numbers, of_runs = (Findings(since and max(since, clock.EPOCH), blind) for _ in range(3))
    walk = Walk(findings, rule_before(marks, current), complete=complete)
    numbers = Numbers(of_numbers, complete=complete)
    lost_once = any(map(_is_registration, marks[1:] if complete else marks))  # Redis had lost the counters
    runs = Runs(of_runs, complete=complete and not lost_once)
    followed: list[Enqueued | Skipped] = []
    for place, entry in enumerate(reversed(entries)):
        walk.step(entry)
        if place and _is_registration(entry):
            numbers = Numbers(of_numbers, complete=False)
        numbers.step(entry)
        runs.step(entry, walk.begun)
        if isinstance(entry, Enqueued | Skipped) and entry.after and entry.tick:
            followed.append(entry)
    walk.end(next_run, state, now, waiting)
    compare(followed, eras(marks, oldest, current, now), findings, bonds, now)
    numbers.end(run_count, skip_count, now)
    runs.end(now, walk.begun, jobs=jobs or {}, open_jobs=open_jobs, other_jobs=other_jobs, counts=counts or {})
    findings.problems += [*of_numbers.problems, *of_runs.problems]
    _rule(walk.rule, current, findings, now)
    begun = None if complete else walk.begun or next_run or now
    due = _due(current, next_run, now) if due_at is None or due_at <= now else 0
    return findings.sum_up(schedule_id, due * (state in _DECIDING and not held), begun, held=due * held)


def parents_of(entries: Iterable[Entry], rule: Mapping[str, Any]) -> set[str]:
    """The ids of all that a schedule follows, or followed, as far as its ledger tells."""
    told = [readable(each.rule) for each in entries if isinstance(each, Changed)]
    return {each.follows for each in (*told, readable(rule)) if each and each.follows}


def _rule(told: Schedule | None, current: Schedule | None, findings: Findings, now: datetime) -> None:
    """That which is in force must be the one that the ledger tells of last."""
    if current is None or (told and told.timing_rev != current.timing_rev):
        findings.say(now, f"the rule in force {'is another than the ledger says' if current else 'cannot be read'}")


def _is_registration(entry: Entry | None) -> bool:
    return isinstance(entry, Changed) and entry.type == "registered"


def _due(rule: Schedule | None, next_run: datetime | None, now: datetime) -> int:
    if rule is None or next_run is None or next_run > now:
        return 0
    try:
        return stretch(rule, next_run, now).count
    except (BadInstant, OverflowError):  # beyond what can be counted
        return 1
