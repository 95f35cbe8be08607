"""Judge the queues: whether workers take the jobs that beat enqueues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.config import shell_quoting
from beat.doctor.findings import OK, PROBLEM, WARNING, Finding, counted, rename, some, span, unseen
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.doctor.facts import Queue, Queues


def judge(found: Queues) -> Iterator[Finding]:
    """Yield a finding for each queue without a worker, and one for all others."""
    if found.suspended:
        yield Finding("queues", "suspended", WARNING, "RQ's workers are suspended: no job is taken", "rq resume")
    hidden = [each.name for each in found.queues if each.workers is None or (each.queued is None and not each.strange)]
    if hidden:
        what = f"queues and their workers: {some(hidden)}"
        rights = "(%R~rq:queue:* %R~rq:worker:* %R~rq:workers:* +hmget +llen +srandmember)"
        yield unseen("queues", "workers", rights, what)
    for each in found.queues:
        if each.strange:
            what = f"{each.strange} is no queue: no job can be put there"
            yield Finding("queues", "types", PROBLEM, what, rename(each.strange))
        elif each.workers == 0:
            yield from _alone(each, found)
    served = [each for each in found.queues if each.workers and not each.strange]
    if served:
        words = [f"{each.name} ({counted(each.workers or 0, 'worker')}, {_queued(each)})" for each in served]
        yield Finding("queues", "workers", OK, f"somebody works at {some(words)}")


def _alone(queue: Queue, found: Queues) -> Iterator[Finding]:
    remedy = f"rq worker {shell_quoting.arguments(queue.name)}"
    at = queue.unread_since
    alone = f" since {clock.text(at.replace(microsecond=0))}" if at else ""
    if queue.queued:
        waiting = f"{counted(queue.queued, 'job')} wait{'s' * (queue.queued == 1)}"
        what = f"{queue.name}: {waiting}, and no worker listens{alone}"
        yield Finding("queues", "workers", PROBLEM, what, remedy)
    elif queue.active:
        left = (queue.due_at - found.now).total_seconds() if queue.due_at else None
        due = "" if left is None else f", the next due in {span(left)}" if left > 0 else ", the next due now"
        what = (
            f"{queue.name}: no worker listens{alone}, and {counted(queue.active, 'schedule')} will put jobs there{due}"
        )
        yield Finding("queues", "workers", WARNING, what, remedy)


def _queued(queue: Queue) -> str:
    return f"{queue.queued or 0:,} queued"
