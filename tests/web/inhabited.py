"""An installation with something in it: schedules of all kinds, a past, operators who were there, and a live beat."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from beat.schedule.schedule import Schedule
from beat.timing import clock
from beat.timing.cron import Cron
from tests.support.schedulers_in_turn import DONE, NAME, Crew, follower, hourly

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

FAIL = "tests.support.job_functions.fail"
SECRET = "hunter2"  # noqa: S105 (what nobody may see)


_kept: dict[bytes, tuple[bytes, int]] = {}
"""What Redis held when all of that had happened: it takes a second, and is laid out again for each test."""


def inhabited(store: Store, server: PrivateRedis) -> Crew:
    """`report` and what follows it, `fragile` that fails, `nightly` in Berlin, `held` and `moved` by an operator."""
    redis: Any = store.client
    for key, (value, ms) in _kept.items():
        redis.restore(key, max(ms, 0), value)
    crew = Crew(store, server, *_schedules())
    if not _kept:
        crew.tick("report", "fragile")
        crew.work()
        crew.client.pause("held", "2h", "the disk is full")
        crew.client.reschedule("moved", "0 10 * * *")
        crew.client.trigger("single")
        _kept.update({key: (value, redis.pttl(key)) for key in redis.scan_iter() if (value := redis.dump(key))})
    alive(store)
    return crew


def _schedules() -> list[Schedule]:
    return [
        hourly("report", kwargs={"copies": 2, "api_token": SECRET}, description="<b>Takes</b> its time"),
        hourly("fragile", func=FAIL),
        hourly("held"),
        hourly("single", overlap="skip", queue="slow"),
        Schedule(id="nightly", func=DONE, timing=Cron("30 2 * * *", "Europe/Berlin"), tz="Europe/Berlin"),
        Schedule(id="moved", func=DONE, timing=Cron("0 9 * * mon-fri")),
        follower("load", "report"),
    ]


def alive(store: Store, name: str = NAME, ago: float = 1) -> None:
    """A beat that passed so many seconds ago."""
    now = store.time()
    passed = clock.text(now - timedelta(seconds=ago))
    fields = {"host": "h1", "pid": "42", "version": "1.0", "last_pass": passed, "seen_at": clock.text(now)}
    fields |= {"started_at": passed, "clock_offset_ms": "3", "schedules": "7", "fired": "2", "app": "default"}
    store.heartbeat(
        {**fields, "tzdata": "2026a"}, name=name, ttl=20_000, digest="d1", announced_ttl=60_000, judged=0, mark=""
    )
