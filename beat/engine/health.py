"""Report once that Redis is unavailable and once that it is back, and report repeated problems only once."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from beat.engine.events import Event
from beat.storage.backoff import cause

if TYPE_CHECKING:
    from beat.engine.events import Emit


class Health:
    """The state of Redis as the threads of a scheduler see it; it is available if it is for all of them."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._ill: set[str] = set()
        self._away_since = 0.0
        self.failures = 0
        """How many commands failed or lost their reply."""

    @property
    def ready(self) -> bool:
        """Return whether the last command of every thread succeeded."""
        return not self._ill

    def failed(self, who: str, error: BaseException) -> None:
        """Count a command that failed or lost its reply; emit `redis_away` if it is the first."""
        with self._lock:
            first = not self._ill
            self._ill.add(who)
            self.failures += 1
            if first:
                self._away_since = time.monotonic()
        if first:
            self._emit(Event("redis_away", fields={"error": cause(error)}))

    def worked(self, who: str) -> None:
        """Take note that a command was answered; emit `redis_back` if no thread is failing any more."""
        with self._lock:
            if who not in self._ill:
                return
            self._ill.discard(who)
            last, seconds = not self._ill, time.monotonic() - self._away_since
        if last:
            self._emit(Event("redis_back", fields={"seconds": round(seconds, 1)}))


class Once:
    """A filter that emits an event only if it differs from the last one about its subject."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._said: dict[str, Event] = {}

    def say(self, subject: str, event: Event) -> None:
        """Emit the event, unless it equals the last one about this subject."""
        if self._said.get(subject) != event:
            self._said[subject] = event
            self._emit(event)

    def forget(self, subject: str) -> None:
        """Forget the last event about a subject that is well again, so that the same event would be emitted."""
        self._said.pop(subject, None)
