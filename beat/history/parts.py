"""A tick that went to all of its queues, as one run: begun with the first of its parts, and ended with the last."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from beat import shards
from beat.history.lines import OPEN, Fired, Part
from beat.ledger import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beat.ledger import Reopened


def parts(job: str, number: int, told: Iterable[Outcome | Reopened]) -> tuple[Part, ...]:
    """So many parts of the tick with that job, of which the newest lines tell; of others, as far as they do."""
    known = {each: Part(job_id=each, shard=n) for n, each in enumerate(shards.jobs(job, number))}
    known |= {entry.job: _part(entry) for entry in told}
    return tuple(sorted(known.values(), key=lambda part: (part.shard, part.job_id)))


def together(run: Fired, own: tuple[Part, ...]) -> Fired:
    """The run with these parts, and what became of it by that: the error is that of the part that failed first."""
    state = shards.outcome([part.state for part in own], min(run.shards, len(own)))
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
    """How far it is: running as soon as one part is, or has been."""
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
