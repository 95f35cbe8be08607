"""One beat's time at telling monitors: it takes events, looks who has started, and hands messages to the lanes."""

from __future__ import annotations

import queue
import time
from functools import partial
from typing import TYPE_CHECKING

from beat.event import Event
from beat.health import Once
from beat.monitors.lane import GIVE_UP_S, Lane, Letter
from beat.monitors.pings import BEGINS, ENDS, Ping, ended

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from beat.event import Emit
    from beat.monitors.pings import Request
    from beat.monitors.reading import Reading, Register, Taken
    from beat.schedule import Schedule

MOST_WAITING = 1000
"""How many runs are looked at, whether they have started; of the others only the end is told."""
_LOOK_S = 1.0


class Round:
    """From the moment that this beat got the lock."""

    def __init__(
        self, reading: Reading, register: Register, request: Callable[[Ping], Request | str], emit: Emit
    ) -> None:
        self._reading, self._register, self._request, self._emit = reading, register, request, emit
        self._once = Once(emit)
        self._lanes: dict[str, Lane] = {}
        self._done: queue.SimpleQueue[tuple[str, ...]] = queue.SimpleQueue()
        self._waiting: dict[
            str, tuple[str, Schedule, str]
        ] = {}  # job id → the event that began it, and whose run it is
        self._looked_at = 0.0

    def resume(self) -> None:
        """Goes on with what another beat has left."""
        for page in self._reading.left():
            self._handle(page)

    def turn(self) -> bool:
        """Whether something came."""
        page = [] if any(lane.is_full for lane in self._lanes.values()) else self._reading.take()
        self._handle(page)
        if time.monotonic() - self._looked_at >= _LOOK_S:
            self._looked_at = time.monotonic()
            self._look()
        self.settle()
        return bool(page)

    def settle(self) -> None:
        """Acknowledges what was sent or given up, and what is nobody's business."""
        ids: list[str] = []
        while not self._done.empty():
            ids += self._done.get()
        self._reading.acknowledge(ids)

    def stop(self) -> None:
        """Nothing more is sent."""
        for lane in self._lanes.values():
            lane.stop()

    def _handle(self, page: Sequence[Taken]) -> None:
        if gone := self._reading.missed + sum(each.is_gone for each in page):
            self._reading.missed = 0
            self._emit(Event("monitor_missed", fields={"count": gone, "why": "gone from the outbox before"}))
        told = [(each.id, each.notice) for each in page]
        wanted = {n.schedule_id for _, n in told if n and n.job_id and (n.type in BEGINS or n.type in ENDS)}
        known = self._register.among(wanted)
        for event_id, notice in told:
            told_of = known.get(notice.schedule_id) if notice and notice.job_id else None
            if notice is None or told_of is None or notice.entry.get("shards"):
                self._done.put((event_id,))
            elif notice.type in ENDS:
                self._forget(str(notice.job_id))
                self._tell(ended(notice, *told_of))
            elif notice.type in BEGINS:
                self._await(str(notice.job_id), event_id, *told_of)
            else:
                self._done.put((event_id,))

    def _await(self, job_id: str, event_id: str, schedule: Schedule, source: str) -> None:
        self._forget(job_id)
        self._waiting[job_id] = event_id, schedule, source
        if len(self._waiting) > MOST_WAITING:
            self._forget(next(iter(self._waiting)))

    def _forget(self, job_id: str) -> None:
        """Its start is no news any more."""
        if found := self._waiting.pop(job_id, None):
            self._done.put((found[0],))

    def _look(self) -> None:
        for job_id in self._register.started(list(self._waiting)):
            event_id, schedule, source = self._waiting.pop(job_id)
            self._tell(Ping("start", schedule, job_id, (event_id,), source=source))

    def _tell(self, ping: Ping) -> None:
        found, done = self._request(ping), partial(self._done.put, ping.settles)
        if isinstance(found, str):
            if found:
                service = ping.schedule.monitor.service if ping.schedule.monitor else ""
                fields = {"service": service, "error": found}
                self._once.say(ping.schedule.id, Event("monitor_failed", ping.schedule.id, fields))
            done()
            return
        lane = self._lanes.get(found.service) or self._lanes.setdefault(found.service, Lane(found.service, self._emit))
        lane.put(Letter(ping.schedule.id, found, done, time.monotonic() + GIVE_UP_S))
