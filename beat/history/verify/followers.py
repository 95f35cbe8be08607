"""Check a schedule that follows another: each success of the other must have one tick here, and one decision.

Only the period that both ledgers cover is compared, and only while the one followed the other.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from beat.history.ledger import Changed
from beat.history.verify.changes import readable, text
from beat.history.verify.findings import INSTANT, Stretch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from beat.history.history import Fired
    from beat.history.ledger import Acted, Enqueued, Entry, Skipped
    from beat.history.verify.findings import Findings
    from beat.schedule.schedule import Schedule

_FAILED = {"failed", "lost", "stopped"}


class Bonds(NamedTuple):
    """The schedules that a schedule follows or followed."""

    parents: Mapping[str, Sequence[Fired]] = MappingProxyType({})
    """Their runs by schedule id, read no later than this schedule's own ledger."""
    in_line: Collection[str] = ()
    """The jobs of those schedules after which a tick of this schedule waits."""


NOBODY = Bonds()


class Era(NamedTuple):
    """A period in which the schedule followed one other."""

    rule: Schedule
    parent: str
    start: datetime
    end: datetime


def eras(
    landmarks: Sequence[Changed | Acted], oldest: Entry | None, current: Schedule | None, now: datetime
) -> list[Era]:
    """Return the eras that a ledger shows, whose oldest entry is `oldest`.

    A retired schedule follows no other until its definition is registered again.
    """
    found: list[Era] = []
    rule, start = rule_before(landmarks, current), oldest.at if oldest else now
    for entry in landmarks:
        if isinstance(entry, Changed) or entry.type == "retired":
            found += _era(rule, start, entry.at)
            rule, start = readable(entry.rule) if isinstance(entry, Changed) else None, entry.at
    return [*found, *_era(rule, start, now)]


def compare(
    followed: Sequence[Enqueued | Skipped], known: Sequence[Era], findings: Findings, bonds: Bonds, now: datetime
) -> None:
    """Compare the decisions on ticks that followed runs, and the waiting ticks, with the runs that they followed."""
    told: dict[str, Enqueued | Skipped] = {}
    for entry in followed:
        tick = entry.tick or entry.at
        found, twice = Stretch(tick, tick, 1), entry.after in told
        rule = next((era.rule for era in known), None)
        if twice and rule:
            findings.repeat(found, rule)
        elif not twice:
            findings.account(found, rule)
        told.setdefault(entry.after, entry)
    for job in bonds.in_line:
        findings.waiting += 1
        if job in told:
            findings.say(now, f"the tick that follows job {job} has its verdict, and waits for one")
    for era in known:
        for run in bonds.parents.get(era.parent, ()):
            _look(era, run, told, bonds.in_line, findings)


def _look(
    era: Era, run: Fired, told: Mapping[str, Enqueued | Skipped], in_line: Collection[str], findings: Findings
) -> None:
    """Compare one run of the followed schedule with the decision on the tick that follows it."""
    verdict, ended = told.get(run.job_id), run.closed_at
    if verdict is not None and run.state in _FAILED:
        words = f"follows job {run.job_id} of {era.parent}, which has {run.state}, not succeeded"
        findings.say(verdict.at, f"{text(verdict.tick)} {words}")
    if run.state != "succeeded" or run.enqueued_at is None or ended is None or not era.start < ended < era.end:
        return  # if its decision was trimmed, the run may be one of a schedule that has since been removed
    if verdict is None and run.job_id not in in_line:
        findings.miss(era.rule, ended, ended + INSTANT)


def rule_before(landmarks: Sequence[Changed | Acted], current: Schedule | None) -> Schedule | None:
    """Return the rule in force when the ledger begins: the one that its first change replaced."""
    change = next((entry for entry in landmarks if isinstance(entry, Changed)), None)
    return current if change is None else readable(change.was or {})


def _era(rule: Schedule | None, start: datetime, end: datetime) -> Iterator[Era]:
    if rule is not None and rule.follows:
        yield Era(rule, rule.follows, start, end)
