"""Describe the workers of queues, in words and as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client.describe import decisions, instants
from beat.config import shell_quoting

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beat.client.workers import Queue
    from beat.timing.zones import Zone


def workers(queues: Sequence[Queue], where: Zone) -> str:
    """Return how many workers each of these queues has; empty if that is unknown."""
    known = [(each, words) for each in queues if (words := _workers(each, where))]
    alone = len(queues) == 1
    return "; ".join(words if alone or not each.workers else f"{words} at {each.name}" for each, words in known)


def _workers(queue: Queue, where: Zone) -> str:
    if queue.workers is None:
        return ""
    waiting = f", and {queue.queued:,} job{'s wait' if queue.queued != 1 else ' waits'}" if queue.queued else ""
    if not queue.workers:
        return nobody(queue, where, waiting)
    idle = f" ({queue.idle:,} idle)" if queue.idle and queue.idle < queue.workers else " (idle)" if queue.idle else ""
    return f"{queue.workers:,}{idle}{waiting}"


def nobody(queue: Queue, where: Zone, waiting: str = "") -> str:
    """Return a sentence that says that no worker reads the queue, and how to start one."""
    at = queue.unread_since
    since = f" since {instants.both(at.replace(microsecond=0), where)}" if at else ""
    return f"no live worker reads {queue.name}{since}{waiting}: rq worker {shell_quoting.arguments(queue.name)}"


def awaited(state: str, worker: str | None, queues: Sequence[Queue], schedulers: int, where: Zone) -> str:
    """Return what a run waits for, and which workers or schedulers are missing."""
    match state:
        case "started":
            waits = f"waiting for worker {worker} to end the run" if worker else "waiting for the run to end"
        case "scheduled":
            waits = "waiting for the next attempt"
        case _:
            waits = f"waiting for a worker of {', '.join(each.name for each in queues)}" if queues else "waiting"
    missing = [nobody(each, where) for each in queues if each.workers == 0]
    if not schedulers:
        missing.append("no scheduler is running, so this command records the outcome itself")
    return "; ".join([waits, *missing])


def plain(queues: Iterable[Queue]) -> list[dict[str, Any]]:
    """Return the queues as `--json` prints them."""
    return [decisions.times(each._asdict()) for each in queues]
