"""Measure, with many open runs, how soon an outcome is in the ledger, and what tracking the runs costs.

A real scheduler fires all runs, by catching up with many overdue ticks. The benchmark then simulates workers: it starts
a thousand of the runs and ends them at random instants, with the same writes as RQ. So the figures measure beat alone,
and not a thousand workers on two cores. All other open runs wait in the queue.

- *outcome known*: from the end that the job's hash names to the line in the ledger, by Redis' clock.
- *for looking*: the cost while no run ends, minus the cost of the same scheduler before any run was open. The cost of
  Redis is the time of its scripts. beat checks a backlog less often the longer it waits. *fresh* is the cost right
  after the runs were fired; the other figure is the cost once the checks are as rare as they get.
- *while they end*: the same cost, over the time in which the thousand runs end.
"""

from __future__ import annotations

import json
import random
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from rq.job import Job

from beat.timing import clock
from benchmarks.due import KEYS, fall_due
from benchmarks.figures import Figure
from benchmarks.processor import cpu_s
from benchmarks.readings import percentile
from benchmarks.stage import Beat, stage, until_registered, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from benchmarks.figures import Say, Scale
    from benchmarks.stage import Stage

TITLE = "Outcomes of open runs"
SUITE = "outcomes"
ENDING = 1_000
SCHEDULES = 100
PERIOD_S = 600
MISFIRE_AFTER = "7d"
"""The maximum age of a missed tick that may still fire, long enough for a thousand periods."""
MOST_WAIT_S = 100
"""After this wait, beat checks a backlog as rarely as it ever will (beat/storage/scripts/observe.lua)."""
TASKS = """
from datetime import datetime, timezone
from beat import register

def work(): ...

for n in range({schedules}):  # the ids of jobs end in their second, by which beat spreads its looks
    start = datetime.fromtimestamp({first} + n % 10, timezone.utc)
    register(work, every="{period_s}s", start=start, id=f"s{{n:06d}}", queue="q0")
"""
SETTLED = 10_000
"""The least number of runs for which the suite waits until checks become rare."""


class Cost(NamedTuple):
    """Milliseconds per second."""

    redis: float
    cpu: float

    def beyond(self, other: Cost) -> Cost:
        """Return by how much this cost exceeds the other."""
        return Cost(max(0.0, self.redis - other.redis), max(0.0, self.cpu - other.cpu))


class Meter:
    """Measure the time of Redis' scripts and the scheduler's processor time since this meter was created."""

    def __init__(self, made: Stage, beat: Beat) -> None:
        self._made, self._beat = made, beat
        self._began = time.monotonic(), made.busy_us() / 1000, cpu_s(beat.process.pid) * 1000

    def read(self) -> Cost:
        """Return the cost per second so far."""
        began, redis_ms, cpu_ms = self._began
        seconds = time.monotonic() - began
        redis_ms, cpu_ms = self._made.busy_us() / 1000 - redis_ms, cpu_s(self._beat.process.pid) * 1000 - cpu_ms
        return Cost(redis_ms / seconds, cpu_ms / seconds)


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    """Measure each number of open runs on an empty Redis."""
    for runs in scale.pick((1_000, 100_000), (1_000,)):
        with stage() as made:
            home = made.clean()
            first = int(made.now()) - 10 - (runs // SCHEDULES - 1) * PERIOD_S  # so that no other tick comes for long
            text = TASKS.format(schedules=SCHEDULES, first=first, period_s=PERIOD_S)
            (home / "tasks.py").write_text(text, encoding="utf-8")
            with Beat(home, made.url, env={"BEAT_MISFIRE_AFTER": MISFIRE_AFTER}) as beat:
                until_registered(made, beat, SCHEDULES)
                wait_for(lambda: made.redis.exists(KEYS.repaired) and not made.redis.exists(KEYS.repairing), 60)
                yield from measure(Act(made, beat, runs, first), scale, say)


class Act(NamedTuple):
    """A scheduler, and the number of runs that it will fire."""

    made: Stage
    beat: Beat
    runs: int
    first: int
    """The tick to begin with, in seconds since the epoch."""

    def fire(self) -> None:
        """Make all ticks due, and wait until they have fired."""
        for second in range(10):
            ids = [f"s{n:06d}" for n in range(second, SCHEDULES, 10)]
            fall_due(self.made.redis, ids, self.first + second)
        wait_for(lambda: self.made.redis.zcard(KEYS.open) == self.runs, 300)

    def over(self, seconds: float) -> Cost:
        """Return what the scheduler costs over the next `seconds`."""
        meter = Meter(self.made, self.beat)
        time.sleep(seconds)
        return meter.read()


def measure(act: Act, scale: Scale, say: Say) -> Iterator[Figure]:
    """Yield all figures for one number of open runs."""
    window_s, ends_s = (2.0, 4.0) if scale.quick else (5.0, 20.0)
    redis, runs, idle = act.made.redis, act.runs, act.over(window_s / 2)
    say(f"{runs:,} runs are fired")
    began = time.monotonic()
    act.fire()
    ids = start(redis)
    if runs >= SETTLED:
        yield from costs("for looking, fresh", runs, act.over(window_s).beyond(idle))
        say(f"{runs:,} runs wait until they are looked at seldom")
        time.sleep(max(0.0, began + MOST_WAIT_S - time.monotonic()))
    say(f"{runs:,} runs are open")
    yield from costs("for looking", runs, act.over(window_s).beyond(idle))
    say(f"{ENDING:,} of {runs:,} runs end")
    meter = Meter(act.made, act.beat)
    end(redis, ids, ends_s)
    wait_for(lambda: redis.zcard(KEYS.open) == runs - ENDING, 120)
    yield from costs("while they end", runs, meter.read().beyond(idle))
    known = lags_ms(entry for _, entry in redis.xrevrange(KEYS.events, count=5 * ENDING))
    if len(known) != ENDING:
        raise RuntimeError(f"{len(known)} of {ENDING} ends are known")
    for percent in (50, 99):
        found = (percentile(known, percent),)
        yield Figure(SUITE, f"outcome known p{percent}", found, "ms", at={"open runs": runs})


def costs(when: str, runs: int, cost: Cost) -> Iterator[Figure]:
    """Yield the figures of Redis and of the scheduler."""
    yield Figure(SUITE, f"Redis time {when}", (cost.redis,), "ms/s", at={"open runs": runs})
    yield Figure(SUITE, f"beat CPU {when}", (cost.cpu,), "ms/s", at={"open runs": runs})


def start(redis: Any) -> list[str]:
    """Start the oldest jobs of the queue, as live workers with heartbeats would, and return their ids."""
    ids: list[str] = redis.lpop("rq:queue:q0", ENDING)
    with redis.pipeline(transaction=False) as pipe:
        for job in ids:
            pipe.hset(Job.key_for(job), mapping={"status": "started", "started_at": stamp(), "worker_name": "w"})
            pipe.zadd(f"rq:executions:{job}", {"x": time.time() + 1000})
            pipe.hset(f"rq:execution:{job}:x", "last_heartbeat", time.time() + 1000)
        pipe.execute()
    return ids


def end(redis: Any, ids: Sequence[str], seconds: float) -> None:
    """End each job at a random instant within the next `seconds`."""
    began = time.monotonic()
    for at, job in sorted((random.uniform(0, seconds), job) for job in ids):  # noqa: S311 (no secret)
        time.sleep(max(0.0, began + at - time.monotonic()))
        with redis.pipeline() as pipe:  # as RQ does, in one step
            pipe.hset(Job.key_for(job), mapping={"status": "finished", "ended_at": stamp()})
            pipe.xadd(f"rq:results:{job}", {"type": 1, "worker_name": "w"})
            pipe.delete(f"rq:execution:{job}:x")
            pipe.execute()


def lags_ms(events: Iterable[dict[str, str]]) -> list[float]:
    """Return the ms from the end of each run to its line in the ledger."""
    lines = (json.loads(event["entry"]) for event in events if event["type"] == "succeeded")
    return [(clock.read(line["at"]) - clock.read(line["ended"])).total_seconds() * 1000 for line in lines]


def stamp() -> str:
    """Return the current time in RQ's format."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
