"""Read how many jobs wait in RQ's queues and how many workers listen, and record queues without a worker."""

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

_PAGE = 25  # queues per script call, which checks up to a thousand workers of each
MOST_UNREAD = 1000
"""How many queues without a worker are recorded at most; more would add no information."""


class Seen(NamedTuple):
    """A scheduler's observation of a queue."""

    queue: str
    staffed: str
    """`1` if a worker listens to it, `0` if none does, empty if unknown."""
    sent: int
    """1 if a tick has just gone there."""


def staff(store: Store, queues: Iterable[str]) -> dict[str, Staff]:
    """Return the workers of each queue by its name.

    A worker counts only if it takes jobs: it is neither gone nor killed nor about to stop.
    """
    found: dict[str, Staff] = {}
    for page in pages(dict.fromkeys(queues), _PAGE):
        told: Any = store.run("staff", [[each] for each in page])
        for name, (queued, workers, idle) in zip(page, told, strict=True):
            found[name] = Staff(queued, *(None, None) if workers < 0 else (workers, idle))
    return found


def note(
    store: Store, seen: Sequence[Seen], *, beat: str, kept: int, most: int = MOST_UNREAD
) -> tuple[list[str], list[Reply]]:
    """Record which queues have no worker, or have one again; return all recorded queues, and what is new about each."""
    noted, *replies = store.run("unread", seen, beat=beat, kept=kept, most=most)
    return [decoded(each) for each in noted], [Reply(*map(decoded, each)) for each in replies]


def unread(store: Store, queues: Sequence[str]) -> dict[str, datetime]:
    """Return since when these queues have no worker, for those that get ticks all the same."""
    try:
        found: Any = store.client.hmget(store.keys.unread, list(queues)) if queues else []
    except connection.Refused as e:
        if connection.forbids(e):
            raise
        return {}  # the key is not a hash, which the housekeeper reports
    since = ((name, _since(value)) for name, value in zip(queues, found, strict=True) if value)
    return {name: at for name, at in since if at}


def _since(value: bytes) -> datetime | None:
    return clock.found(decoded(value).partition(" ")[0])
