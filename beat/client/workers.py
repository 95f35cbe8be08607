"""Who works at the queues of a schedule, and where a run waits that nobody takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat.policies import routing
from beat.storage import queue_workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from beat.client.reader import Archive
    from beat.client.schedule_info import Standing
    from beat.history.history import Fired
    from beat.storage.store import Store


class Queue(NamedTuple):
    """A queue, and who is there to take its jobs."""

    name: str
    queued: int
    """How many jobs wait in it."""
    workers: int | None
    """How many live workers read it; None if nobody lets us look."""
    idle: int | None
    """How many of those do nothing."""
    unread_since: datetime | None
    """Since when a beat knows that no worker reads it, although ticks go there."""


def look(store: Store, names: Iterable[str]) -> tuple[Queue, ...]:
    """These queues, in this order."""
    wanted = list(dict.fromkeys(names))
    since = queue_workers.unread(store, wanted)
    return tuple(Queue(name, *found, since.get(name)) for name, found in queue_workers.staff(store, wanted).items())


def of(store: Store, known: Standing) -> tuple[Queue, ...]:
    """Those to which the ticks of a schedule may go."""
    named = known.definition.get("queue")
    names = (
        routing.all_queues(known.policies) if known.policies else (named,) if isinstance(named, str) and named else ()
    )
    return look(store, names)


def unread(store: Store, archive: Archive, runs: Sequence[Fired]) -> tuple[Queue, ...]:
    """Those in which one of these runs waits, and that no live worker reads."""
    parts = (part for run in runs for part in (run.parts or (run,)))
    waiting = [each.job_id for each in parts if each.state == "queued"]
    found = look(store, (each.queue for each in archive.progress(waiting) if each.queue))
    return tuple(each for each in found if each.workers == 0)
