"""The staff of queues, as RQ has it in Redis: how many jobs wait, and who is there to take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.facts import Staff
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.store import Store

_PAGE = 25  # of a queue up to a thousand workers are looked at


def staff(store: Store, queues: Sequence[str]) -> dict[str, Staff]:
    """By name. A worker lives that takes jobs: neither gone, nor killed, nor told to go when it is done."""
    found: dict[str, Staff] = {}
    for page in pages(dict.fromkeys(queues), _PAGE):
        told: Any = store.run("staff", [[each] for each in page])
        for name, (queued, workers, idle) in zip(page, told, strict=True):
            found[name] = Staff(queued, *(None, None) if workers < 0 else (workers, idle))
    return found
