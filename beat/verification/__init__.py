"""Recomputes every tick of the definitions in force, and compares: with the ledger, the counters, the jobs that exist.

It claims what it can see. Ticks before the ledger's oldest verdict are not claimed, and the answer says from when on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat import clock
from beat.errors import BadInstant
from beat.ledger import Changed
from beat.verification.changes import readable
from beat.verification.findings import Findings, Stretch, Verification, stretch
from beat.verification.followed import NOBODY, Bonds, compare
from beat.verification.runs import Numbers, Runs
from beat.verification.ticks import Walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from beat.ledger import Entry
    from beat.schedule import Schedule

__all__ = ["Bonds", "Stretch", "Verification", "parents_of", "verify"]

_DECIDING = {"active", "broken"}
"""States in which what is due gets its verdict sooner or later."""


def verify(
    schedule_id: str,
    entries: Iterable[Entry],
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
    counts: Mapping[str, int] | None = None,
    bonds: Bonds = NOBODY,
) -> Verification:
    """The whole ledger of a schedule, newest first, against its hash: both as they were at one instant, `now`.

    `due_at` is when its next tick is due, where jitter or an operator makes that another time than its own; `held`
    whether nothing is decided for now, because it is paused or no live beat declares it.
    `jobs` are the RQ jobs that exist and say that they are of this schedule, with their ticks; `open_jobs` those of it
    whose outcome is waited for; `waiting` the ticks that wait for an earlier run to end; `counts` its success_count,
    failure_count and stopped_count; `bonds` whom it follows. What is not given is not compared. With `since`, only
    ticks and lines from then on are judged.
    """
    oldest_first, current = list(entries)[::-1], readable(rule)
    findings = Findings(since and max(since, clock.EPOCH), _blind(oldest_first, now))
    walk = _walk(oldest_first, findings, current)
    walk.end(next_run, state, now, waiting)
    compare(oldest_first, current, findings, bonds, now)
    runs = _runs(oldest_first, findings, walk.begun, (run_count, skip_count), now)
    runs.end(now, jobs=jobs or {}, open_jobs=open_jobs, counts=counts or {})
    _rule(walk.rule, current, findings, now)
    begun = None if _reaches_back(oldest_first) else walk.begun or next_run or now
    due = _due(current, next_run, now) if due_at is None or due_at <= now else 0
    return findings.sum_up(schedule_id, due * (state in _DECIDING and not held), begun, held=due * held)


def parents_of(entries: Iterable[Entry], rule: Mapping[str, Any]) -> set[str]:
    """The ids of all that a schedule follows, or followed, as far as its ledger tells."""
    told = [readable(each.rule) for each in entries if isinstance(each, Changed)]
    return {each.follows for each in (*told, readable(rule)) if each and each.follows}


def _walk(oldest_first: Sequence[Entry], findings: Findings, current: Schedule | None) -> Walk:
    """Begins with the rule that the first change replaced; where there was no change, with the one in force now."""
    change = next((entry for entry in oldest_first if isinstance(entry, Changed)), None)
    rule = current if change is None else readable(change.was or {})
    walk = Walk(findings, rule, complete=_reaches_back(oldest_first))
    for entry in oldest_first:
        walk.step(entry)
    return walk


def _rule(told: Schedule | None, current: Schedule | None, findings: Findings, now: datetime) -> None:
    """That which is in force must be the one that the ledger tells of last."""
    if current is None or (told and told.timing_rev != current.timing_rev):
        findings.say(now, f"the rule in force {'is another than the ledger says' if current else 'cannot be read'}")


def _runs(
    oldest_first: Sequence[Entry],
    findings: Findings,
    begun: datetime | None,
    kept: tuple[int | None, int | None],
    now: datetime,
) -> Runs:
    """Follows the numbers; the runs are complete where those can be followed from the first one on."""
    complete = _reaches_back(oldest_first)
    numbers = Numbers(findings, complete=complete)
    for place, entry in enumerate(oldest_first):
        if place and isinstance(entry, Changed) and entry.type == "registered":  # Redis had lost the counters
            complete, numbers = False, Numbers(findings, complete=False)
        numbers.step(entry)
    numbers.end(*kept, now)
    return Runs(findings, begun, oldest_first, complete=complete)


def _blind(oldest_first: Sequence[Entry], now: datetime) -> datetime | None:
    """Up to when what was trimmed may tell of ticks; None where nothing was."""
    return None if _reaches_back(oldest_first) else oldest_first[0].at if oldest_first else now


def _reaches_back(oldest_first: Sequence[Entry]) -> bool:
    return any(isinstance(entry, Changed) and entry.type == "registered" for entry in oldest_first[:1])


def _due(rule: Schedule | None, next_run: datetime | None, now: datetime) -> int:
    if rule is None or next_run is None or next_run > now:
        return 0
    try:
        return stretch(rule, next_run, now).count
    except (BadInstant, OverflowError):  # beyond what can be counted
        return 1
