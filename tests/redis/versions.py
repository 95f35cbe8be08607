"""Versions of an application, as far as they register and retire: what deploys are made of, without processes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from beat.every import Every
from beat.retirement import Retirement
from beat.schedule import Schedule
from beat.sync import ANNOUNCED_MS, Sync

if TYPE_CHECKING:
    from beat.event import Event
    from beat.store import Store

LONG = timedelta(minutes=15)


def schedule(schedule_id: str, renamed_from: str | None = None, **given: Any) -> Schedule:
    return Schedule(
        **{"id": schedule_id, "func": "app.tasks.x", "timing": Every("1h"), "renamed_from": renamed_from, **given}
    )


class Code:
    """The beat of one version."""

    def __init__(self, store: Store, *schedules: Schedule, app: str = "default", after: timedelta = LONG) -> None:
        self.events: list[Event] = []
        self.sync = Sync(store, schedules, beat="tests", emit=self.events.append, app=app)
        self._store = store
        self._retirement = Retirement(store, beat="tests", app=app, after=after, emit=self.events.append)

    def start(self) -> Code:
        self.sync.announce()
        self.sync.register()
        return self

    def heartbeat(self) -> None:
        """As the housekeeper does it, when another registry has come or gone."""
        name, digest, lasts = self.sync.digest or "none", self.sync.digest, ANNOUNCED_MS
        reply = self._store.heartbeat(
            {}, name=name, ttl=lasts, digest=digest, announced_ttl=lasts, judged=1, mark="boot 1 1"
        )
        if reply.code == "LOST":
            self.sync.announce()
            self.sync.register(reseed=True)
        else:
            self.sync.register(self.sync.schedules)
            self._retirement.turn(self.sync, at_once=True)

    def end(self) -> None:
        """It is gone, and what it announced has lapsed."""
        self._store.client.delete(self._store.keys.announced(self.sync.digest))
        self._store.client.zrem(self._store.keys.announcements, self.sync.digest)

    def told(self) -> list[tuple[str, str]]:
        return [(event.name, event.schedule_id) for event in self.events if event.name != "registered"]
