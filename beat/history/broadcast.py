"""Combine the parts of a broadcast tick into one run.

A broadcast tick has one job, a *part*, in each of its queues. The run starts with its first part and ends with its
last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from beat.history.ledger import Outcome
from beat.history.records import OPEN, Fired, Part
from beat.schedule.routing_options import MOST_QUEUES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from beat.history.ledger import Reopened


_WORST = ("failed", "lost", "stopped")


def jobs(job: str, number: int) -> list[str]:
    """Return the job ids of the first `number` parts of the tick whose own job id is `job`."""
    return [f"{job}_s{n}" for n in range(min(number, MOST_QUEUES))]


def outcome(states: Collection[str], number: int = 0) -> str:
    """Return the worst of `states`, or `open` while a part has not ended or fewer than `number` are known."""
    if len(states) < number or any(each != "succeeded" and each not in _WORST for each in states):
        return OPEN
    return next((each for each in _WORST if each in states), "succeeded")


def parts(job: str, number: int, told: Iterable[Outcome | Reopened]) -> tuple[Part, ...]:
    """Return the parts of the tick, ordered by number, each with the state that its newest ledger line gives.

    Parts without a line are open. A line about a part beyond `number` adds that part.
    """
    known = {each: Part(job_id=each, shard=n) for n, each in enumerate(jobs(job, number))}
    known |= {entry.job: _part(entry) for entry in told}
    return tuple(sorted(known.values(), key=lambda part: (part.shard, part.job_id)))


def together(run: Fired, own: tuple[Part, ...]) -> Fired:
    """Return the run with these parts and the state, times and error that follow from them.

    The error is that of the first part that ended in the run's state. The duration is None unless all parts have both
    times.
    """
    state = outcome([part.state for part in own], min(run.shards, len(own)))
    starts = [part.started_at for part in own if part.started_at]
    made = replace(
        run, parts=own, started_at=min(starts, default=None), attempts=max((part.attempts for part in own), default=0)
    )
    if state == OPEN:
        return replace(made, state=_way(own))
    ends = [part.ended_at for part in own if part.ended_at]
    first = min((part for part in own if part.state == state), key=_when, default=None)
    whole = len(ends) == len(own) == len(starts)
    return replace(
        made,
        state=state,
        ended_at=max(ends, default=None),
        duration=(max(ends) - min(starts)).total_seconds() if whole else None,
        error=first.error if first else None,
        reason=first.reason if first else "",
        reported=first.reported if first else False,
        message=first.message if first else "",
        closed_at=max((part.closed_at for part in own if part.closed_at), default=None),
    )


def _way(own: tuple[Part, ...]) -> str:
    """Return the state of a run while a part of it is open.

    It is `started` if a part is running. If no part has begun, it is the parts' own state.
    """
    states = {part.state for part in own}
    if states == {OPEN}:
        return OPEN
    left = states & {OPEN, "queued", "scheduled", "deferred"}
    return min(left) if left == states else "started" if "started" in states else OPEN


def _when(part: Part) -> float:
    ended = part.ended_at or part.closed_at
    return ended.timestamp() if ended else 0.0


def _part(entry: Outcome | Reopened) -> Part:
    if not isinstance(entry, Outcome):
        return Part(job_id=entry.job, shard=entry.shard, attempts=entry.attempts)
    return Part(
        job_id=entry.job,
        shard=entry.shard,
        state=entry.type,
        started_at=entry.started,
        ended_at=entry.ended,
        duration=entry.duration,
        worker=entry.worker,
        attempts=entry.attempts,
        error=entry.error,
        reason=entry.reason,
        reported=entry.reported,
        message=entry.message,
        closed_at=entry.at,
    )
