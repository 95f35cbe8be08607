"""Count what only this process knows, since it started: failed locks, Redis errors, cycle durations."""

from __future__ import annotations

import threading
from collections import Counter, deque
from typing import TYPE_CHECKING

from beat.telemetry.metrics.folding import SUM, bucket

if TYPE_CHECKING:
    from beat.engine.events import Event
    from beat.engine.health import Health

LOCK_FAILURES, REDIS_ERRORS, PASS = "lock_failures", "redis_errors", "pass"
_COUNTED = {"locked": LOCK_FAILURES, "fenced": LOCK_FAILURES}


class Tally:
    """The counts of one scheduler, from its events and from the ticker's `passes` and `health`."""

    def __init__(self) -> None:
        self.passes = deque[float]()
        self.health: Health | None = None
        self._totals, self._known = Counter[str](), dict[str, str]()
        self._seconds = 0.0
        self._lock = threading.Lock()

    def listen(self, event: Event) -> None:
        """Count an event that belongs to a total."""
        if event.name in _COUNTED:
            with self._lock:
                self._totals[_COUNTED[event.name]] += 1

    def items(self) -> list[tuple[str, str, str]]:
        """Return each total as (field, total, how much of it Redis has confirmed)."""
        with self._lock:
            while self.passes:
                took = self.passes.popleft()
                self._totals[f"{PASS}:{bucket(took)}"] += 1
                self._seconds += took
            if self.health:
                self._totals[REDIS_ERRORS] = self.health.failures
            totals = {field: str(total) for field, total in self._totals.items()}
            if self._seconds:
                totals[f"{PASS}:{SUM}"] = f"{self._seconds:.6f}"
            return [(field, total, self._known.get(field, "0")) for field, total in totals.items()]

    def known(self, items: list[tuple[str, str, str]]) -> None:
        """Take note that Redis has confirmed these totals."""
        with self._lock:
            self._known |= {field: total for field, total, _ in items}
