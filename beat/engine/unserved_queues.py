"""Report queues that get ticks although no worker reads them, and report when a worker reads them again.

Of all schedulers, the one that sees it first reports it. A queue must be without a worker in two checks, some seconds
apart, so that a worker has time to restart.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from beat.engine.events import Event
from beat.storage import queue_workers
from beat.storage.queue_workers import Seen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from beat.engine.events import Emit
    from beat.policies.facts import Staff
    from beat.storage.store import Store

GRACE_S = 5
"""How long a queue may be without a worker, as during a deploy."""
FORGET_MS = 86_400_000
"""How long after its last tick an unserved queue is forgotten."""


class Lookout:
    """The checks of one scheduler on the queues that get ticks."""

    def __init__(self, store: Store, *, name: str, emit: Emit) -> None:
        self._store, self._name, self._emit = store, name, emit
        self._lock = threading.Lock()
        self._sent: set[str] = set()
        self._alone: dict[str, float] = {}
        """Queues without a worker that are not reported yet → since when, by the monotonic clock."""
        self._noted: list[str] = []
        """Queues without a worker that some scheduler has reported."""

    def sent(self, *queues: str) -> None:
        """Take note that a tick was sent to these queues; safe to call from any thread."""
        with self._lock:
            self._sent.update(queues)

    def turn(self) -> None:
        """Check the queues that got ticks since the last call, and those without a worker."""
        with self._lock:
            sent = set(self._sent)
        found = queue_workers.staff(self._store, sorted({*sent, *self._alone, *self._noted}))
        seen = list(self._judged(found, sent))
        self._noted, replies = queue_workers.note(self._store, seen, beat=self._name, kept=FORGET_MS)
        for each, reply in zip(seen, replies, strict=True):
            self._alone.pop(each.queue, None)
            if reply.code == "NEW":
                self._emit(Event("no_worker", fields={"queue": each.queue}))
            elif reply.code == "BACK":
                self._emit(Event("worker_back", fields={"queue": each.queue, "since": reply.words}))
        with self._lock:
            self._sent -= sent

    def _judged(self, found: Mapping[str, Staff], sent: Collection[str]) -> Iterator[Seen]:
        """Yield what to record in Redis: queues that are noted there, and new ones after the grace period."""
        now, noted, before = time.monotonic(), set(self._noted), set(self._alone)
        for queue, (_, workers, _) in found.items():
            if queue in noted:
                yield Seen(queue, "" if workers is None else str(int(workers > 0)), int(queue in sent))
            elif workers != 0:
                self._alone.pop(queue, None)
            elif now - self._alone.setdefault(queue, now) >= GRACE_S and queue in before:
                yield Seen(queue, "0", int(queue in sent))
