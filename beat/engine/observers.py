"""Pass events to listeners in a thread of their own, so that no listener can stop or delay the ticker."""

from __future__ import annotations

import logging
import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from beat.engine.events import Event

_MOST = 10_000
_log = logging.getLogger("beat.engine.observers")


class Observers:
    """A queue of events and its listeners; if they cannot keep up, new events are dropped."""

    def __init__(self, listeners: Iterable[Callable[[Event], None]]) -> None:
        self._listeners = list(listeners)
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="beat-observers", daemon=True)

    def start(self) -> None:
        """Start passing events to the listeners."""
        self._thread.start()

    def emit(self, event: Event) -> None:
        """Queue an event without waiting; drop it if the queue is full."""
        if self._events.qsize() < _MOST:
            self._events.put(event)

    def stop(self, wait_s: float) -> None:
        """Pass on the events that are left, for at most `wait_s` seconds."""
        self._events.put(None)
        self._thread.join(wait_s)

    def _run(self) -> None:
        while (event := self._events.get()) is not None:
            for listener in self._listeners:
                try:
                    listener(event)
                except BaseException:  # noqa: BLE001 (not even a listener's sys.exit() may end the thread)
                    _log.exception("a listener failed at %s", event.name)
