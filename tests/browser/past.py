"""A past for pictures: days of verdicts and outcomes, by the real scripts on a real Redis with a clock set by hand."""

from __future__ import annotations

import heapq
import random
import zlib
from base64 import b64encode
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from redis import ConnectionPool

from beat.engine.run_tracker import Watcher
from beat.jobs import job_template
from beat.storage.keys import Keys
from beat.storage.store import Store
from beat.testing import ManualBeat, ManualClock
from beat.testing.fake_redis import Clocked
from beat.timing import clock

if TYPE_CHECKING:
    from datetime import datetime

    from beat.schedule.registry import Registry
    from beat.testing import Fired

TAKES = {
    "cache_warm": 0.4, "invoice_emails": 41, "inventory_sync": 420, "exchange_rates": 3, "search_reindex": 1900,
    "nightly_backup": 2700, "verify_backup": 240, "sales_report": 75, "session_cleanup": 12, "newsletter": 20,
}  # fmt: skip
"""Seconds, of a usual run."""
TROUBLE = """Traceback (most recent call last):
  File "shop/rates.py", line 31, in exchange_rates
    answer.raise_for_status()
  File "shop/http.py", line 88, in raise_for_status
    raise ConnectionError(f"{self.host}: {self.status} {self.reason}")
ConnectionError: rates.example.com: 503 Service Unavailable
"""


class End(NamedTuple):
    """A run that is going to end."""

    at: datetime
    job: str
    started: datetime
    failed: bool


class Past:
    """Workers that take their time, beside a manual beat on a real Redis."""

    def __init__(self, redis: Any, until: datetime) -> None:
        self._redis, self._until = redis, until
        self._chance = random.Random(7)  # noqa: S311 (no secret: the same pictures each time)
        self.ends: list[End] = []

    def begin(self, fired: Fired, now: datetime) -> None:
        """A worker takes it from its queue."""
        job = fired.job_id
        self._redis.lrem(job_template.queue_key(fired.queue), 1, job)
        started, failed = now + timedelta(seconds=self._chance.uniform(0.02, 2)), self._fails(fired.schedule_id, now)
        takes = 3 if failed else TAKES.get(fired.schedule_id, 5) * self._chance.lognormvariate(0, 0.25)
        end = End(started + timedelta(seconds=takes), job, started, failed)
        own = {
            "status": "started",
            "started_at": clock.text(started),
            "worker_name": f"worker-{len(self.ends) % 3 + 1}",
        }
        self._redis.hset(job_template.job_key(job), mapping=own)
        self._redis.zadd(job_template.EXECUTIONS_PREFIX + job, {"1": 0})
        self._redis.hset(f"{job_template.EXECUTION_PREFIX}{job}:1", "last_heartbeat", end.at.timestamp())
        heapq.heappush(self.ends, end)

    def end(self, run: End) -> None:
        """It ends, as RQ writes that down."""
        status = "failed" if run.failed else "finished"
        self._redis.hset(job_template.job_key(run.job), mapping={"status": status, "ended_at": clock.text(run.at)})
        told: dict[str, Any] = {"type": 2 if run.failed else 1}
        if run.failed:
            told |= {"exc_string": b64encode(zlib.compress(TROUBLE.encode())).decode()}
        self._redis.xadd(f"rq:results:{run.job}", told, id=f"{clock.to_ms(run.at)}-0")

    def _fails(self, name: str, now: datetime) -> bool:
        if name == "exchange_rates" and self._until - now < timedelta(hours=5):
            return True
        return self._chance.random() < {"exchange_rates": 0.06, "inventory_sync": 0.03}.get(name, 0.004)


def play(url: str, registry: Registry, lasts: timedelta) -> None:
    """What these schedules did for so long, until now."""
    until = clock.now()
    with ConnectionPool.from_url(url) as pool:
        with patch("beat.testing.manual_scheduler.ClockedRedis", lambda manual: Clocked(manual, connection_pool=pool)):
            beat = ManualBeat(ManualClock(until - lasts), registry=registry)
        redis: Any = beat.redis
        store, past = Store(redis, Keys()), Past(redis, until)
        watcher = Watcher(store, name="past", emit=lambda _: None)
        while (at := _next(redis, store, past)) < until:
            beat.clock.set(max(at, beat.clock.now))
            while past.ends and past.ends[0].at <= beat.clock.now:
                run = heapq.heappop(past.ends)
                past.end(run)
                redis.zadd(store.keys.open, {run.job: 0}, xx=True)
                redis.delete(store.keys.watching)
                watcher.turn()
            for fired in beat.tick():
                past.begin(fired, beat.clock.now)


def _next(redis: Any, store: Store, past: Past) -> datetime:
    """When something is due, or ends."""
    first = redis.zrange(store.keys.due, 0, 0, withscores=True)
    due = clock.from_ms(int(first[0][1]))
    return min(due, past.ends[0].at) if past.ends else due
