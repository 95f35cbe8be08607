"""Keep an installation in order beside the ticker, in a thread of its own.

Twice a second it checks the runs and the waiting ticks. Every five seconds it sends a heartbeat, renews the
announcement and checks the queues for workers. Every minute one scheduler repairs the indexes. Schedules that were
flushed from Redis are registered again, and that is logged as an error.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import TYPE_CHECKING

from beat._version import __version__
from beat.engine.events import Event
from beat.engine.health import Once
from beat.engine.replies import misplaced
from beat.storage import connection
from beat.storage.backoff import Patience, cause
from beat.storage.clock_setback import BACKWARD_MS
from beat.storage.lifetimes import ANNOUNCED_MS, HEARTBEAT_MS, REPAIRED_MS, REPAIRING_MS
from beat.storage.lock import Lock
from beat.storage.messages import Reply
from beat.timing import clock, zones

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from beat.engine.clock_guard import Mark
    from beat.engine.conflicts import Neighbours
    from beat.engine.events import Emit
    from beat.engine.health import Health
    from beat.engine.registrar import Sync
    from beat.engine.retirement import Retirement
    from beat.engine.run_tracker import Watcher
    from beat.engine.ticker import Ticker
    from beat.engine.unserved_queues import Lookout
    from beat.engine.waiting import Attendant
    from beat.storage.store import Store


WATCH_S = 0.5
HEARTBEAT_S = 5
LINGER_MS = 10_000
"""How long an announcement outlives its scheduler, so that a restart does not look like a rollback."""
REPAIR_S = 60
ANNOUNCE_S = 86_400
"""How often all is announced again; functions that no scheduler announces for a month are forgotten."""


class Housekeeper:
    """The housekeeping of one scheduler."""

    def __init__(
        self,
        store: Store,
        sync: Sync,
        watcher: Watcher,
        attendant: Attendant,
        *,
        name: str,
        about: Callable[[], Mapping[str, str]],
        judged: Callable[[], Mark | None],
        emit: Emit,
        health: Health,
        retirement: Retirement | None = None,
        lookout: Lookout | None = None,
        neighbours: Neighbours | None = None,
    ) -> None:
        self._store, self._sync, self._name = store, sync, name
        self._retirement, self._lookout, self._neighbours = retirement, lookout, neighbours
        self._watcher, self._attendant = watcher, attendant
        self.awake_at = time.monotonic()
        """When the current step began, by the monotonic clock."""
        self._about, self._judged = about, judged
        self._sound: Mark | None = None
        self._gone_back = False
        self._live: str | None = None
        self._emit, self._health = emit, health
        self._once = Once(emit)
        self._repaired_at: float | None = None
        self._insists = False
        self._beat_at = -float(HEARTBEAT_S)
        self._announced_at = time.monotonic()

    def run(self, stopping: threading.Event) -> None:
        """Run the housekeeping until `stopping` is set; no error ends the loop."""
        patience = Patience()
        while not stopping.is_set():
            self.awake_at = time.monotonic()
            try:
                if time.monotonic() - self._beat_at >= HEARTBEAT_S or self._has_gone_back():
                    self.turn(stopping)
                self._watcher.turn()
                self._attendant.turn()
            except connection.Errors as e:
                self._health.failed("housekeeper", e)
                patience.wait(stopping)
            except Exception as e:  # noqa: BLE001 (a bug here must not end the heartbeat)
                self._emit(Event("failed", fields={"error": cause(e), "exception": e}))
                patience.wait(stopping)
            else:
                self._health.worked("housekeeper")
                patience.reset()
                stopping.wait(WATCH_S)

    def turn(self, stopping: threading.Event) -> None:
        """Send a heartbeat, then do what else is due: announce, register, repair, check queues."""
        self._beat()
        self._beat_at = time.monotonic()
        if self._beat_at - self._announced_at >= ANNOUNCE_S:
            self._sync.announce()
            self._announced_at = self._beat_at
        if self._sync.older:
            self._sync.register(list(self._sync.older))
        gone_back = self._has_gone_back()
        if gone_back or self._repaired_at is None or time.monotonic() - self._repaired_at >= REPAIR_S:
            is_settled = self.repair(stopping, at_once=gone_back)
            self._gone_back = False
            self._repaired_at = time.monotonic() if is_settled else None
        if self._lookout:
            self._lookout.turn()

    def _has_gone_back(self) -> bool:
        """Return whether Redis' clock has gone back since the last repair; then scores may lie too far ahead."""
        before, self._sound = self._sound, self._judged()
        if before and self._sound and before.redis_ms - self._sound.redis_ms > BACKWARD_MS:
            self._gone_back = True
        return self._gone_back

    def repair(self, stopping: threading.Event, *, at_once: bool = False) -> bool:
        """Repair all schedules and indexes, unless another scheduler is doing so.

        Except for the first time, and unless `at_once`, it also does nothing if one has just done so. Returns False if
        it must try again soon, because the lock outlasts its limit and its holder may be long dead.
        """
        first = self._repaired_at is None
        due = Lock(self._store.client, self._store.keys.repaired, REPAIRED_MS).acquire()
        lock = Lock(self._store.client, self._store.keys.repairing, REPAIRING_MS)
        if not (due or first or at_once):
            return True
        if not lock.acquire():
            self._insists = self._insists or lock.was_cut
            return not self._insists
        self._insists = False
        if strange := self._store.strange():
            self._once.say("", misplaced(Reply("BADTYPE", "; ".join(strange))))
        else:
            self._once.forget("")
            if not first:  # when a scheduler starts, it has just registered everything
                self._sync.register(reseed=True)
            self._repair_pages(stopping, lock)
        lock.release()
        return True

    def _repair_pages(self, stopping: threading.Event, lock: Lock) -> None:
        indexed = 0
        for page in self._store.ids():
            self.awake_at = time.monotonic()
            replies = self._store.repair(page)
            indexed += sum(reply.code in {"INDEXED", "GONE"} for reply in replies)
            for schedule_id, reply in zip(page, replies, strict=True):
                if reply.code in {"BROKEN", "BADTYPE"}:
                    fields = {"code": reply.code, "error": reply.words}
                    self._once.say(schedule_id, Event("broken", schedule_id, fields))
                elif reply.code == "MENDED":
                    self._once.forget(schedule_id)
                    self._emit(Event("mended", schedule_id))
            if stopping.is_set() or not lock.extend():
                break
            self._watcher.turn()
        if indexed:
            self._emit(Event("repaired", fields={"count": indexed}))

    def leave(self) -> None:
        """Send a last heartbeat, which stores the time for the next scheduler, and then remove the heartbeat."""
        with contextlib.suppress(*connection.Errors):  # heartbeats expire by themselves
            self._heartbeat()
            self._store.leave(name=self._name, digest=self._sync.digest, linger=LINGER_MS)

    def _beat(self) -> None:
        reply = self._heartbeat()
        if reply.code == "LOST":
            self._sync.announce()
            self._sync.register(reseed=True)
        elif reply.code != "OK":
            self._once.say("", misplaced(reply))
        else:
            changed, first = self._live != reply.words, self._live is None  # a version came or went
            self._live = reply.words
            if changed and not first:  # before the first heartbeat everything was registered
                self._sync.register(self._sync.schedules)
            if self._neighbours:
                self._neighbours.turn(reply.words)
            if self._retirement and not (self._neighbours and self._neighbours.unrelated):
                self._retirement.turn(self._sync, at_once=changed)

    def _heartbeat(self) -> Reply:
        sound = self._judged()
        return self._store.heartbeat(
            self._about(),
            name=self._name,
            ttl=HEARTBEAT_MS,
            digest=self._sync.digest,
            announced_ttl=ANNOUNCED_MS,
            judged=sound.redis_ms if sound else 0,
            mark=str(sound or ""),
        )


def process() -> dict[str, str]:
    """Return the heartbeat fields that describe this process."""
    return {
        "host": socket.gethostname(),
        "pid": str(os.getpid()),
        "version": __version__,
        "tzdata": zones.version(),
        "started_at": clock.text(clock.now().replace(microsecond=0)),
    }


def passed(ticker: Ticker) -> dict[str, str]:
    """Return the heartbeat fields of the ticker; none before its first cycle, which reads Redis' clock first."""
    if not ticker.passed_ms:
        return {}
    return {
        "last_pass": clock.text(clock.from_ms(int(ticker.passed_ms))),
        "clock_offset_ms": str(round(clock.to_ms(clock.now()) - ticker.clock.now_ms())),
    }
