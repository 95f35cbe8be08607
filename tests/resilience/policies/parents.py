"""Schedules that another one requires or follows: they run when the history says so, and succeed at once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from beat.engine import fire_items
from beat.jobs import job_template
from beat.timing import clock
from tests.support.job_functions import anything

if TYPE_CHECKING:
    from beat.schedule.registry import Registry
    from beat.storage.store import Store
    from beat.testing import ManualClock

NAMES = ("y", "z")
_LATER = datetime(2030, 1, 1, tzinfo=UTC)
"""They have no ticks before."""


def declare(registry: Registry) -> None:
    """All of them."""
    for name in NAMES:
        registry.register(anything, every="1d", start=_LATER, id=name)


class Parents:
    """Those of one registry. `successes`: by id, when each of them succeeds."""

    def __init__(self, store: Store, registry: Registry, successes: dict[str, list[datetime]]) -> None:
        self._store, self._registry, self._successes = store, registry, successes
        self.last: dict[str, datetime] = {}
        """By id, when it has last succeeded."""

    def succeed(self, manual: ManualClock, before: datetime, to: datetime) -> set[str]:
        """Everything that happens after one instant and up to another; who has succeeded."""
        found = sorted({(at, name) for name, times in self._successes.items() for at in times if before < at <= to})
        for at, name in found:
            manual.set(at)
            self._succeed(name, at)
        return {name for _, name in found}

    def _succeed(self, name: str, at: datetime) -> None:
        """Somebody asks for a run, and a worker does it: nobody has taken note of that yet."""
        schedule, job = self._registry.get(name), self._store.keys.asked(name, f"m{clock.to_ms(at)}")
        item = fire_items.manual(schedule.rev, schedule, job, keys=self._store.keys)
        [reply] = self._store.fire([item], token=name).replies
        assert reply.code == "OK", reply
        assert self._store.client.lrem(job_template.queue_key(schedule.queue), 1, job) == 1
        ended: Any = {"status": "finished", "started_at": clock.text(at), "ended_at": clock.text(at)}
        self._store.client.hset(job_template.job_key(job), mapping=ended)
        self.last[name] = at
