"""The watchdog: what the main thread does while the others work. It ends a beat of which a thread hangs.

A thread shows since when it has been at one step of its work, or until when it sleeps. That time counts only while the
watchdog itself comes round: a process that was stopped, or a machine that slept, does not hang.
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
"""A thread that has been at one step for so long ends the process; after half of it, that is told."""
EXCHANGES = 6
"""So many times may Redis let one step wait as long as it can."""
PATIENCE = 5
"""So many times as long where steps are long, and everywhere while Redis is away: looking up a name takes minutes."""
LONGEST_TURN_S = 5.0
"""What has lasted longer since the last look is not counted: this process stood still, too."""


class _Watched:
    """One thread."""

    def __init__(self, name: str, at: Callable[[], float], limit_s: float, *, patient: bool) -> None:
        self.name, self.limit_s, self.patient = name, limit_s, patient
        self.silent_s, self.told = 0.0, False
        self._at, self._seen = at, at()

    def look(self, now: float, passed_s: float) -> None:
        """So much time has passed: it counts unless the thread went on, or sleeps."""
        at = self._at()
        if at != self._seen:
            self._seen, self.silent_s, self.told = at, 0.0, False
        elif at <= now:
            self.silent_s += passed_s


class Watchdog:
    """Watches the threads of one beat, and tells its service manager how they are."""

    def __init__(self, emit: Emit, health: Health) -> None:
        self._emit, self._health = emit, health
        self._notifier = Notifier()
        self._watched: tuple[_Watched, ...] = ()
        self._words = "starting"
        self._looked_at = time.monotonic()

    def watch(self, name: str, at: Callable[[], float], client: Redis, *, patient: bool = False) -> None:
        """From now on a thread is watched: `at` is since when it is at a step, or until when it sleeps.

        Its `client` says how long Redis may let it wait; the steps of one that is `patient` may take long.
        """
        limit_s = max(END_S, EXCHANGES * connection.slowest_s(client))
        self._watched = (*self._watched, _Watched(name, at, limit_s, patient=patient))

    def ready(self, schedules: int) -> None:
        """All threads are at work, on so many schedules of this beat's own code."""
        self._words = f"{schedules:,} schedule{'s' * (schedules != 1)} of its own code"
        self._notifier.tell("READY=1")

    def wait(self, wishes: queue.SimpleQueue[BaseException | None]) -> BaseException | None:
        """Until somebody wishes an end, which is returned; or Stuck, when a thread hangs."""
        while True:
            self._notifier.status(self._words if self._health.ready else "Redis does not work for us: waiting for it")
            self._notifier.alive(max((each.silent_s for each in self._watched), default=0.0))
            # Not for ever: the kernel may hand a signal to another thread, and this one acts on it when it looks up.
            with contextlib.suppress(queue.Empty):
                wish = wishes.get(timeout=self._notifier.turn_s)
                self._notifier.tell("STOPPING=1")
                return wish
            if stuck := self.turn():
                self._notifier.tell("STOPPING=1", f"STATUS={stuck}")
                return stuck

    def turn(self) -> Stuck | None:
        """Looks at every thread."""
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
    """Where each thread of this process is, the most recent call last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames().items()  # noqa: SLF001 (documented, for this very purpose)
    return "\n".join(f"{names.get(each, each)}:\n{''.join(traceback.format_stack(frame))}" for each, frame in frames)
