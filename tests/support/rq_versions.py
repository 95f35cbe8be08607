"""Versions of an application, as far as they register and retire: what deploys are made of, without processes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from beat.engine.conflicts import Neighbours
from beat.engine.registrar import ANNOUNCED_MS, Sync
from beat.engine.retirement import Retirement
from beat.schedule.schedule import Schedule
from beat.timing import clock
from beat.timing.interval import Every

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from beat.engine.events import Event
    from beat.storage.store import Store

LONG = timedelta(minutes=15)


def schedule(schedule_id: str, **given: Any) -> Schedule:
    return Schedule(**{"id": schedule_id, "func": "app.tasks.x", "timing": Every("1h"), **given})


class Code:
    """The scheduler of one version, on a host of its own if it is named."""

    def __init__(
        self,
        store: Store,
        *schedules: Schedule,
        app: str = "default",
        after: timedelta = LONG,
        modules: Container[str] | None = None,
        age: timedelta = timedelta(0),
        functions: Iterable[str] = (),
        **about: str,
    ) -> None:
        self.events: list[Event] = []
        host = about.get("host", "")
        told: Any = {"app": app, "host": host, "modules": modules, "functions": functions}
        self.sync = Sync(store, schedules, beat="tests", emit=self.events.append, **told)
        self._store, self._started = store, store.time() - age
        self._about = {"app": app, "tz": "UTC", "host": "tests", "digest": self.sync.digest, **about}
        self._retirement = Retirement(store, beat="tests", app=app, after=after, emit=self.events.append)
        self.neighbours = Neighbours(store, self.sync, self.events.append)

    def start(self) -> Code:
        self.sync.announce()
        self.sync.register()
        return self

    def heartbeat(self) -> str:
        """As the housekeeper does it, when another registry has come or gone; returns what Redis said."""
        name, digest, lasts = self.sync.digest or "none", self.sync.digest, ANNOUNCED_MS
        about = {**self._about, "started_at": clock.text(self._started)}
        reply = self._store.heartbeat(
            about, name=name, ttl=lasts, digest=digest, announced_ttl=lasts, judged=1, mark="boot 1 1"
        )
        if reply.code == "LOST":
            self.sync.announce()
            self.sync.register(reseed=True)
        else:
            self.sync.register(self.sync.schedules)
            self.neighbours.turn(reply.words)
            if not self.neighbours.unrelated:
                self._retirement.turn(self.sync, at_once=True)
        return reply.code

    def end(self) -> None:
        """It is gone, and what it announced has lapsed."""
        self._store.client.delete(self._store.keys.announced(self.sync.digest))
        self._store.client.zrem(self._store.keys.announcements, self.sync.digest)
        self._store.client.delete(self._store.keys.instance(self.sync.digest or "none"))
        self._store.client.zrem(self._store.keys.instances, self.sync.digest or "none")

    def told(self) -> list[tuple[str, str]]:
        return [(event.name, event.schedule_id) for event in self.events if event.name != "registered"]
