"""Recompute every tick of a schedule, and compare the ticks with the ledger, the counters and the existing jobs.

The check covers only what it can see. Ticks before the ledger's oldest decision are not judged, and the result says
where the check begins.
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
"""States in which a due tick is decided sooner or later."""


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
    """Compare a schedule's ledger, newest entry first, with its hash; both must be as of one instant, `now`.

    `due_at` is when the next tick is due, if jitter or an operator moved it. `held` is True if nothing is decided for
    now, because the schedule is paused or no running scheduler declares it.

    `jobs` maps the RQ jobs whose meta names this schedule to their ticks. `open_jobs` are the schedule's jobs without a
    known outcome. `other_jobs` are the open jobs whose record names no schedule or another one. `waiting` are the ticks
    that wait for a slot. `counts` holds success_count, failure_count and stopped_count. `bonds` holds the runs of the
    schedules that this one follows. Anything not given is not compared. With `since`, only ticks and lines from then on
    are judged.

    The entries are read once, from the oldest to the newest, so a long ledger need not be kept in memory. `landmarks`
    are the changes and actions among them, oldest first, if the caller already has them.
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
    """Return the ids of the schedules that this schedule follows, or followed according to these entries."""
    told = [readable(each.rule) for each in entries if isinstance(each, Changed)]
    return {each.follows for each in (*told, readable(rule)) if each and each.follows}


def _rule(told: Schedule | None, current: Schedule | None, findings: Findings, now: datetime) -> None:
    """Report a rule in force that is unreadable or differs from the ledger's last one."""
    if current is None or (told and told.timing_rev != current.timing_rev):
        findings.say(now, f"the rule in force {'is another than the ledger says' if current else 'cannot be read'}")


def _is_registration(entry: Entry | None) -> bool:
    return isinstance(entry, Changed) and entry.type == "registered"


def _due(rule: Schedule | None, next_run: datetime | None, now: datetime) -> int:
    if rule is None or next_run is None or next_run > now:
        return 0
    try:
        return stretch(rule, next_run, now).count
    except (BadInstant, OverflowError):  # too many to count
        return 1
