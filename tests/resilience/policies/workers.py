"""Workers in a book: they take jobs and end them as RQ's do, by what they write into Redis, when the clock says so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from beat.jobs import job_template
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from redis import Redis

QUEUE = "default"
DEATHS = ("killed", "deleted", "taken")
"""Its worker is killed: RQ's hash says `started` for ever. Its hash is deleted. Taken from the queue, never begun."""


@dataclass(frozen=True)
class Plan:
    """What is to become of a run, in seconds."""

    waits: float = 0
    """In the queue."""
    lasts: float = 0
    """From when a worker takes it."""
    fate: str = "finished"
    """Or failed, or one of DEATHS."""
    deaf: bool = False
    """Whether its worker does not listen when it is told to stop it."""


@dataclass
class Run:
    """A job that was enqueued."""

    job: str
    tick: datetime
    plan: Plan
    enqueued: datetime
    queue: str = QUEUE
    stage: str = "queued"
    """Then started, then ended; or dead, when it never ends by itself."""

    @property
    def starts(self) -> datetime:
        return self.enqueued + timedelta(seconds=self.plan.waits)

    @property
    def ends(self) -> datetime:
        return self.starts + timedelta(seconds=self.plan.lasts)


class Workers:
    """As many as are needed: the n-th job is run by the n-th plan, over and over."""

    def __init__(
        self, redis: Redis, plans: list[Plan], queues: Sequence[str], tick_of: Callable[[str], datetime]
    ) -> None:
        self._redis, self._plans, self._queues, self._tick_of = redis, plans, queues, tick_of
        self._told: set[str] = set()
        self.runs: dict[str, Run] = {}
        """In the order in which they came into the queue."""

    def notice(self, now: datetime) -> None:
        """Sees what was taken out of the queues, and what has come into them: nothing may come twice."""
        queue = {
            text(job): queue
            for queue in self._queues
            for job in self._redis.lrange(job_template.queue_key(queue), 0, -1)
        }
        for run in self.runs.values():
            if run.stage == "queued" and run.job not in queue:
                assert self._redis.hget(job_template.job_key(run.job), "status") == b"canceled"
                run.stage = "ended"
        for job in queue if len(self._queues) == 1 else sorted(queue, key=self._tick_of):
            if job not in self.runs:
                plan = self._plans[len(self.runs) % len(self._plans)]
                self.runs[job] = Run(job, self._tick_of(job), plan, now, queue[job])
            assert self.runs[job].stage == "queued", f"{job} came into the queue twice"

    def work(self, now: datetime) -> None:
        """All that happens up to now."""
        for run in self.runs.values():
            if run.stage == "queued" and run.starts <= now:
                self._take(run)
            if run.stage == "started" and run.ends <= now:
                self._end(run, run.plan.fate, run.ends)
            if run.stage == "started" and run.job in self._told:
                self._end(run, "stopped", now)

    def stop(self, _: Redis, job: str, worker: str) -> None:
        """RQ's command: a worker that is alive, has this job and listens will stop it."""
        if worker == "alive" and not self.runs[job].plan.deaf:
            self._told.add(job)

    def hurry(self, now: datetime) -> None:
        """From now on every run ends at once."""
        self._plans = [Plan()]
        for run in self.runs.values():
            if run.stage in {"queued", "started"}:
                run.plan, run.enqueued = Plan(), min(run.enqueued, now)

    def _take(self, run: Run) -> None:
        key = job_template.job_key(run.job)
        assert self._redis.lrem(job_template.queue_key(run.queue), 1, run.job) == 1, f"{run.job} is not in the queue"
        dies = run.plan.fate in DEATHS
        run.stage = "dead" if dies else "started"
        if run.plan.fate == "deleted":
            self._redis.delete(key)
        if run.plan.fate in {"deleted", "taken"}:
            return
        name = "dead" if dies else "alive"
        begun: Any = {"status": "started", "started_at": clock.text(run.starts), "worker_name": name}
        self._redis.hset(key, mapping=begun)
        if not dies:  # a sign of life
            self._redis.zadd(job_template.EXECUTIONS_PREFIX + run.job, {"1": 0})
            self._redis.hset(f"{job_template.EXECUTION_PREFIX}{run.job}:1", "last_heartbeat", run.ends.timestamp())

    def _end(self, run: Run, status: str, at: datetime) -> None:
        run.stage = "ended"
        self._redis.hset(job_template.job_key(run.job), mapping={"status": status, "ended_at": clock.text(at)})
        self._redis.delete(job_template.EXECUTIONS_PREFIX + run.job, f"{job_template.EXECUTION_PREFIX}{run.job}:1")


def text(value: Any) -> str:
    """What Redis answered."""
    return str(value.decode(errors="replace"))
