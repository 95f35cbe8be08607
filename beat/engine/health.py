"""Whether Redis works for us: says once that it does not, and once that it does again; the waits in between grow."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from beat.engine.events import Event
from beat.storage.backoff import cause

if TYPE_CHECKING:
    from beat.engine.events import Emit


class Health:
    """Shared by the threads of a beat, each of which tells how its commands went: it works when it does for all."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._ill: set[str] = set()
        self._away_since = 0.0
        self.failures = 0
        """How many commands were not carried out, or lost their reply."""

    @property
    def ready(self) -> bool:
        """Whether everybody's last word was good."""
        return not self._ill

    def failed(self, who: str, error: BaseException) -> None:
        """A command was not carried out, or its reply was lost."""
        with self._lock:
            first = not self._ill
            self._ill.add(who)
            self.failures += 1
            if first:
                self._away_since = time.monotonic()
        if first:
            self._emit(Event("redis_away", fields={"error": cause(error)}))

    def worked(self, who: str) -> None:
        """A command was answered."""
        with self._lock:
            if who not in self._ill:
                return
            self._ill.discard(who)
            last, seconds = not self._ill, time.monotonic() - self._away_since
        if last:
            self._emit(Event("redis_back", fields={"seconds": round(seconds, 1)}))


class Once:
    """Passes on what is new about a subject, and keeps to itself what was said before."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._said: dict[str, Event] = {}

    def say(self, subject: str, event: Event) -> None:
        """Passes the event on, unless it is what was last said about its subject."""
        if self._said.get(subject) != event:
            self._said[subject] = event
            self._emit(event)

    def forget(self, subject: str) -> None:
        """It is well again: the same would be news."""
        self._said.pop(subject, None)
