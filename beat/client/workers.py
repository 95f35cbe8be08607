"""Read which workers serve the queues of a schedule, and in which queues runs wait that no worker takes."""

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
    """A queue and its workers."""

    name: str
    queued: int
    """How many jobs wait in it."""
    workers: int | None
    """How many live workers read it; None if beat lacks the permission to look."""
    idle: int | None
    """How many of those are idle."""
    unread_since: datetime | None
    """Since when a scheduler has known that ticks go there although no worker reads it."""


def look(store: Store, names: Iterable[str]) -> tuple[Queue, ...]:
    """Return these queues with their workers, in this order."""
    wanted = list(dict.fromkeys(names))
    since = queue_workers.unread(store, wanted)
    return tuple(Queue(name, *found, since.get(name)) for name, found in queue_workers.staff(store, wanted).items())


def of(store: Store, known: Standing) -> tuple[Queue, ...]:
    """Return the queues to which the ticks of a schedule may go."""
    named = known.definition.get("queue")
    names = (
        routing.all_queues(known.policies) if known.policies else (named,) if isinstance(named, str) and named else ()
    )
    return look(store, names)


def unread(store: Store, archive: Archive, runs: Sequence[Fired]) -> tuple[Queue, ...]:
    """Return the queues in which one of these runs waits and that no live worker reads."""
    parts = (part for run in runs for part in (run.parts or (run,)))
    waiting = [each.job_id for each in parts if each.state == "queued"]
    found = look(store, (each.queue for each in archive.progress(waiting) if each.queue))
    return tuple(each for each in found if each.workers == 0)
