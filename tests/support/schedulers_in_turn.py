"""A beat, workers and a client in this process, on a real Redis: each does its part when it is told to."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from redis import Redis
from rq import Queue, SimpleWorker

from beat import Client
from beat.config import settings
from beat.engine.definition_cache import Book
from beat.engine.fact_reader import Inquiry
from beat.engine.health import Health
from beat.engine.pacing import Pace
from beat.engine.registrar import Sync
from beat.engine.run_tracker import Watcher
from beat.engine.ticker import Ticker
from beat.engine.waiting import Attendant
from beat.schedule.follows import Follows
from beat.schedule.schedule import Schedule
from beat.testing.immediate_store import ImmediateStore
from beat.timing import clock
from beat.timing.interval import Every

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.config.groups import Group
    from beat.dev.embedded import PrivateRedis
    from beat.engine.events import Event
    from beat.history.history import Fired
    from beat.storage.store import Store

NAME = "web-1"
DONE, BROKEN = "tests.support.job_functions.anything", "tests.support.job_functions.nothing_of_the_kind"


class Crew:
    """Schedules tick when `tick` lets them, run when `work` does, and are closed by `look`."""

    def __init__(self, store: Store, server: PrivateRedis, *schedules: Schedule, groups: Sequence[Group] = ()) -> None:
        self.store, self.url, self.events = store, server.url, list[Any]()
        self.client = Client(server.url, by="ann")
        self._desk, self._schedules = ImmediateStore(store.client, store.keys), schedules
        self._sync = Sync(self._desk, schedules, beat=NAME, emit=self.events.append, groups=groups)
        self._sync.announce()
        self._sync.register()
        book = Book(self._desk)
        watcher = Watcher(self._desk, name=NAME, emit=self.events.append)
        self._attendant = Attendant(self._desk, book, watcher, token=NAME, emit=self.events.append)
        pace = Pace.of(settings.load({}).settings)
        emit = self.events.append
        self._ticker = Ticker(self._desk, book, pace, token=NAME, emit=emit, health=Health(emit))
        self._ticker.attendant, self._ticker.holding.inquiry = self._attendant, Inquiry(self._desk)
        self._watcher = watcher

    def due(self, *ids: str) -> None:
        """These have a tick now, a second ago."""
        at = clock.at(clock.floor(self.store.time()) - 1)
        for each in ids:
            self.store.client.hset(
                self.store.keys.schedule(each), mapping={"next_run": clock.text(at), "due_at": clock.text(at)}
            )
            self.store.client.zadd(self.store.keys.due, {each: clock.to_ms(at)})

    def tick(self, *ids: str) -> None:
        """A pass, in which these are due."""
        self.due(*ids)
        self.attend()
        self._ticker.turn(threading.Event())

    def attend(self) -> None:
        """Who waits is seen to, whenever that was done last."""
        self._again()
        self._attendant.turn()

    def work(self, *queues: str) -> None:
        """A worker does what there is to do, and somebody takes note."""
        with Redis.from_url(self.url) as client:
            names = [Queue(name, connection=client) for name in queues or ("default",)]
            SimpleWorker(names, connection=client).work(burst=True)
        self.look()

    def look(self) -> None:
        """What has ended is closed."""
        going: Any = self.store.client.zrange(self.store.keys.open, 0, -1)
        for each in going:
            self.store.client.zadd(self.store.keys.open, {each: 0}, xx=True)
        self._watcher.look(100)

    def run(self, schedule_id: str) -> Fired:
        """A whole run that somebody asked for, of the queue `default`."""
        job = self.client.trigger(schedule_id).job_id
        self.work()
        found = self.client.get_run(job)
        assert found
        return found

    def told(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == name]

    def lines(self, schedule_id: str) -> list[str]:
        """The ledger, oldest first."""
        found: Any = self.store.client.lrange(self.store.keys.runs(schedule_id), 0, -1)
        return [each.decode() for each in found[::-1]]

    def _again(self) -> None:
        waiting: Any = self.store.client.zrange(self.store.keys.waiting_slots, 0, -1)
        for each in waiting:
            self.store.client.zadd(self.store.keys.waiting_slots, {each: 0})


def hourly(schedule_id: str, **given: Any) -> Schedule:
    """A schedule that ticks by itself only long after the test."""
    start = clock.at(2_000_000_000)
    options = {"func": DONE, "timing": Every(timedelta(hours=1), start=start), "start": start, **given}
    return Schedule(id=schedule_id, **options)


def follower(schedule_id: str = "load", parent: str = "extract", **given: Any) -> Schedule:
    return Schedule(**{"id": schedule_id, "func": DONE, "timing": Follows(parent), **given})
