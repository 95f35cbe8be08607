"""The way to one service: what it is to be told, in order, in a thread of its own, so that it delays no other.

A message is tried again for a quarter of an hour, with pauses that grow; then it is given up, for what is newer says
more. A service that is silent is left alone meanwhile; where one answers that it cannot take something now, only the
messages about that schedule wait: those about one stay in order, and no other has to wait for them.

A service that fails is told of once, and once when it is back. What was given up is counted, and said.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from beat.event import Event
from beat.health import Once
from beat.monitors.post import post

if TYPE_CHECKING:
    from collections.abc import Callable

    from beat.event import Emit
    from beat.monitors.pings import Request
    from beat.monitors.post import Failure

GIVE_UP_S = 900.0
MOST = 10_000
"""How many messages wait for a service, about; then nothing more is read, or the oldest are given up if it fails."""
_FIRST_S, _LONGEST_S = 1.0, 60.0
_IDLE_S = 60.0


class Letter(NamedTuple):
    """A message to a service."""

    schedule_id: str
    request: Request
    done: Callable[[], None]
    """Called when it was taken, or is given up."""
    until: float
    """When it is given up, by the monotonic clock."""


class Lane:
    """One service, and what it has yet to be told."""

    def __init__(self, service: str, emit: Emit, send: Callable[[Request], Failure | None] = post) -> None:
        self._service, self._emit, self._send = service, emit, send
        self._once = Once(emit)
        self._letters: deque[Letter] = deque()
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._works = False
        self._rests: dict[str, tuple[float, float]] = {}  # schedule id → until when, and how long the next time
        self._failing: set[str] = set()  # the ids of schedules; nothing stands for all of them
        self._failing_since = 0.0
        self._given_up = 0

    @property
    def is_full(self) -> bool:
        """Whether it should be put nothing more for now. Who waited for a service that fails would delay the others."""
        return len(self._letters) >= MOST and not self._failing

    def put(self, letter: Letter) -> None:
        """It is sent after those that were put before."""
        with self._changed:
            if len(self._letters) >= MOST and self._failing:
                self._drop(max(MOST // 10, 1))
            self._letters.append(letter)
            self._changed.notify()
            if not self._works:
                self._works = True
                threading.Thread(target=self._run, name=f"beat-monitor-{self._service}", daemon=True).start()

    def stop(self) -> None:
        """Nothing more is sent, but for what is on its way."""
        self._stopping.set()
        with self._changed:
            self._changed.notify()

    def _drop(self, count: int) -> None:
        """The oldest; many at a time, so that it is not said for each."""
        for letter in [self._letters.popleft() for _ in range(count)]:
            self._rests.pop(letter.schedule_id, None)
            letter.done()
        self._missed(count, f"too many wait for {self._service}")

    def _missed(self, count: int, why: str) -> None:
        self._emit(Event("monitor_missed", fields={"count": count, "why": why}))

    def _run(self) -> None:
        while letter := self._next():
            if self._deliver(letter):
                letter.done()

    def _next(self) -> Letter | None:
        """None when it is time to stop, or nothing has come for long: then the thread ends."""
        with self._changed:
            while not self._stopping.is_set():
                soonest_s = _IDLE_S
                for n, letter in enumerate(self._letters):
                    rest_s = self._rests.get(letter.schedule_id, (0.0,))[0] - time.monotonic()
                    if rest_s <= 0:
                        del self._letters[n]
                        return letter
                    soonest_s = min(soonest_s, rest_s)
                if not self._changed.wait(soonest_s) and not self._letters:
                    break
            self._works = False
            return None

    def _deliver(self, letter: Letter) -> bool:
        """Whether it was taken, or given up; not so when it has to wait, or it is time to stop."""
        pause_s = _FIRST_S
        while not self._stopping.is_set():
            failure = self._send(letter.request)
            if failure is None:
                self._well(letter.schedule_id)
                return True
            self._say(letter.schedule_id, failure)
            if failure.alone:
                pause_s = self._rests.get(letter.schedule_id, (0.0, _FIRST_S))[1]
            if failure.final or time.monotonic() + pause_s > letter.until:
                self._given_up += not failure.final
                self._rests.pop(letter.schedule_id, None)
                return True
            if failure.alone:
                self._put_back(letter, pause_s)
                return False
            self._stopping.wait(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_S)
        return False

    def _put_back(self, letter: Letter, pause_s: float) -> None:
        with self._changed:
            self._rests[letter.schedule_id] = time.monotonic() + pause_s, min(pause_s * 2, _LONGEST_S)
            self._letters.appendleft(letter)

    def _say(self, schedule_id: str, failure: Failure) -> None:
        """A service that is away is told of once; one that refuses a monitor, once for each."""
        event = Event("monitor_failed", schedule_id, {"service": self._service, "error": failure.words})
        if failure.final:
            # What only the body of an answer says may change with every ping: it is not said again for each.
            self._once.say(schedule_id if failure.alone else f"{schedule_id} {failure.words}", event)
            return
        subject = schedule_id if failure.alone else ""
        if not self._failing:
            self._failing_since = time.monotonic()
        if not self._failing or (not subject and subject not in self._failing):
            self._emit(event)
        self._failing.add(subject)

    def _well(self, schedule_id: str) -> None:
        self._once.forget(schedule_id)
        self._rests.pop(schedule_id, None)
        was_failing, self._failing = bool(self._failing), self._failing & self._rests.keys()
        if was_failing and not self._failing:
            seconds = round(time.monotonic() - self._failing_since, 1)
            self._emit(Event("monitor_back", fields={"service": self._service, "seconds": seconds}))
        if self._given_up and not self._failing:
            self._missed(self._given_up, f"{self._service} did not take them in time")
            self._given_up = 0
