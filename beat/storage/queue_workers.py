"""The staff of queues, as RQ has it in Redis: how many jobs wait, and who is there to take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beat.policies.facts import Staff
from beat.storage import connection
from beat.storage.messages import Reply, decoded
from beat.storage.store import pages
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from beat.storage.store import Store

_PAGE = 25  # of a queue up to a thousand workers are looked at
MOST_UNREAD = 1000
"""So many queues are noted that no worker reads: whoever has more has been told often enough."""


class Seen(NamedTuple):
    """What a beat has seen of a queue."""

    queue: str
    staffed: str
    """`1` if a worker reads it, `0` if none does, nothing if nobody knows."""
    sent: int
    """1 if a tick has just gone there."""


def staff(store: Store, queues: Iterable[str]) -> dict[str, Staff]:
    """By name. A worker lives that takes jobs: neither gone, nor killed, nor told to go when it is done."""
    found: dict[str, Staff] = {}
    for page in pages(dict.fromkeys(queues), _PAGE):
        told: Any = store.run("staff", [[each] for each in page])
        for name, (queued, workers, idle) in zip(page, told, strict=True):
            found[name] = Staff(queued, *(None, None) if workers < 0 else (workers, idle))
    return found


def note(
    store: Store, seen: Sequence[Seen], *, beat: str, kept: int, most: int = MOST_UNREAD
) -> tuple[list[str], list[Reply]]:
    """Notes which queues no worker reads, or a worker again: those that are noted now, and what is new of each."""
    noted, *replies = store.run("unread", seen, beat=beat, kept=kept, most=most)
    return [decoded(each) for each in noted], [Reply(*map(decoded, each)) for each in replies]


def unread(store: Store, queues: Sequence[str]) -> dict[str, datetime]:
    """Since when no worker reads them, of those to which ticks go all the same."""
    try:
        found: Any = store.client.hmget(store.keys.unread, list(queues)) if queues else []
    except connection.Refused as e:
        if connection.forbids(e):
            raise
        return {}  # it is no hash, which is said elsewhere
    since = ((name, _since(value)) for name, value in zip(queues, found, strict=True) if value)
    return {name: at for name, at in since if at}


def _since(value: bytes) -> datetime | None:
    return clock.found(decoded(value).partition(" ")[0])
