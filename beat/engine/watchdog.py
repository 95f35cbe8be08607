"""Watch the scheduler's threads from the main thread, and end the process if one of them hangs.

Each thread shows when its current step began, or when its current sleep ends. The time at one step counts only while
the watchdog itself runs, so that a stopped process or a suspended machine does not look like a hang.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING

from beat.engine.events import Event
from beat.engine.systemd import Notifier
from beat.errors import Stuck
from beat.storage import connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from beat.engine.events import Emit
    from beat.engine.health import Health
    from beat.storage.connection import Redis

END_S = 60.0
"""How long a thread may be at one step before the process ends; a warning comes after half of it."""
EXCHANGES = 6
"""How many of the slowest possible commands one step may contain."""
PATIENCE = 5
"""Factor on the limit of patient threads, and of all while Redis is away: a name lookup can take minutes."""
LONGEST_TURN_S = 5.0
"""The most that counts between two checks; if more time has passed, the whole process stood still."""


class _Watched:
    """A watched thread, and how long it has been at one step."""

    def __init__(self, name: str, at: Callable[[], float], limit_s: float, *, patient: bool) -> None:
        self.name, self.limit_s, self.patient = name, limit_s, patient
        self.silent_s, self.told = 0.0, False
        self._at, self._seen = at, at()

    def look(self, now: float, passed_s: float) -> None:
        """Count the time that has passed, unless the thread made progress or sleeps."""
        at = self._at()
        if at != self._seen:
            self._seen, self.silent_s, self.told = at, 0.0, False
        elif at <= now:
            self.silent_s += passed_s


class Watchdog:
    """The watch over the threads of one scheduler, which also reports to its service manager."""

    def __init__(self, emit: Emit, health: Health) -> None:
        self._emit, self._health = emit, health
        self._notifier = Notifier()
        self._watched: tuple[_Watched, ...] = ()
        self._words = "starting"
        self._looked_at = time.monotonic()

    def watch(self, name: str, at: Callable[[], float], client: Redis, *, patient: bool = False) -> None:
        """Watch a thread from now on; `at` returns when its step began or its sleep ends, by the monotonic clock.

        The timeouts of its `client` decide how long one step may take; the steps of a `patient` thread may take longer.
        """
        limit_s = max(END_S, EXCHANGES * connection.slowest_s(client))
        self._watched = (*self._watched, _Watched(name, at, limit_s, patient=patient))

    def ready(self, schedules: int) -> None:
        """Tell the service manager that all threads are running; `schedules` is the number that the code declares."""
        self._words = f"{schedules:,} schedule{'s' * (schedules != 1)} of its own code"
        self._notifier.tell("READY=1")

    def wait(self, wishes: queue.SimpleQueue[BaseException | None]) -> BaseException | None:
        """Wait for an item of `wishes` and return it, or return Stuck if a thread hangs."""
        while True:
            self._notifier.status(self._words if self._health.ready else "Redis does not work for us: waiting for it")
            self._notifier.alive(max((each.silent_s for each in self._watched), default=0.0))
            # The wait has a timeout, because Python handles a signal only when the main thread runs again.
            with contextlib.suppress(queue.Empty):
                wish = wishes.get(timeout=self._notifier.turn_s)
                self._notifier.tell("STOPPING=1")
                return wish
            if stuck := self.turn():
                self._notifier.tell("STOPPING=1", f"STATUS={stuck}")
                return stuck

    def turn(self) -> Stuck | None:
        """Check every thread once; emit `stuck` at half of its limit, and return Stuck at the limit."""
        now = time.monotonic()
        passed_s, self._looked_at = min(now - self._looked_at, LONGEST_TURN_S), now
        for each in self._watched:
            each.look(now, passed_s)
            limit_s = each.limit_s * (PATIENCE if each.patient or not self._health.ready else 1)
            fields = {"thread": each.name, "seconds": round(each.silent_s)}
            if each.silent_s >= limit_s:
                self._emit(Event("hung", fields=fields))
                return Stuck(f"the {each.name} hangs, for {round(each.silent_s)} s now", stacks())
            if each.silent_s >= limit_s / 2 and not each.told:
                each.told = True
                self._emit(Event("stuck", fields=fields))
        return None


def stacks() -> str:
    """Return the stack of each thread of this process, the most recent call last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames().items()  # noqa: SLF001 (documented, for this very purpose)
    return "\n".join(f"{names.get(each, each)}:\n{''.join(traceback.format_stack(frame))}" for each, frame in frames)
