"""With many runs open, how soon the end of one is in the ledger, and what looking for it costs.

A real beat fires all of the runs: schedules with many overdue ticks, which it catches up with. Then workers are played:
a thousand of the runs are started, and end at random instants, written as RQ writes it, so that the figures are beat's
alone and not those of a thousand workers on two cores. What else is open waits in its queue.

- *outcome known*: from the end that the job's hash names to the line of the ledger, by Redis' clock.
- *for looking*: while nothing ends, beyond what the same beat cost before anything was open; of Redis what the scripts
  took. A backlog is looked at less often the longer it waits: *fresh* is right after it was fired, the other once it
  has waited for as long as it changes anything.
- *while they end*: the same, over the time in which the thousand end.
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
"""As late as a tick may be that still fires: a thousand periods fit into it."""
MOST_WAIT_S = 100
"""A backlog that has waited for so long is looked at as seldom as it ever will be: beat/storage/scripts/observe.lua."""
TASKS = """
from datetime import datetime, timezone
from beat import register

def work(): ...

for n in range({schedules}):  # the ids of jobs end in their second, by which beat spreads its looks
    start = datetime.fromtimestamp({first} + n % 10, timezone.utc)
    register(work, every="{period_s}s", start=start, id=f"s{{n:06d}}", queue="q0")
"""
SETTLED = 10_000
"""So many make a backlog that is worth waiting for."""


class Cost(NamedTuple):
    """Milliseconds in each second."""

    redis: float
    cpu: float

    def beyond(self, other: Cost) -> Cost:
        """What it is more."""
        return Cost(max(0.0, self.redis - other.redis), max(0.0, self.cpu - other.cpu))


class Meter:
    """Counts what the scripts cost Redis, and the beat its processor, from when it was made."""

    def __init__(self, made: Stage, beat: Beat) -> None:
        self._made, self._beat = made, beat
        self._began = time.monotonic(), made.busy_us() / 1000, cpu_s(beat.process.pid) * 1000

    def read(self) -> Cost:
        """So far."""
        began, redis_ms, cpu_ms = self._began
        seconds = time.monotonic() - began
        redis_ms, cpu_ms = self._made.busy_us() / 1000 - redis_ms, cpu_s(self._beat.process.pid) * 1000 - cpu_ms
        return Cost(redis_ms / seconds, cpu_ms / seconds)


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    """Each number of open runs on an empty Redis."""
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
    """A beat, and the runs that it is to fire."""

    made: Stage
    beat: Beat
    runs: int
    first: int
    """The tick to begin with, in seconds since the epoch."""

    def fire(self) -> None:
        """Lets all of the ticks be due."""
        for second in range(10):
            ids = [f"s{n:06d}" for n in range(second, SCHEDULES, 10)]
            fall_due(self.made.redis, ids, self.first + second)
        wait_for(lambda: self.made.redis.zcard(KEYS.open) == self.runs, 300)

    def over(self, seconds: float) -> Cost:
        """What the beat costs, from now on for so long."""
        meter = Meter(self.made, self.beat)
        time.sleep(seconds)
        return meter.read()


def measure(act: Act, scale: Scale, say: Say) -> Iterator[Figure]:
    """All about one number of open runs."""
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
    """Of Redis and of the beat."""
    yield Figure(SUITE, f"Redis time {when}", (cost.redis,), "ms/s", at={"open runs": runs})
    yield Figure(SUITE, f"beat CPU {when}", (cost.cpu,), "ms/s", at={"open runs": runs})


def start(redis: Any) -> list[str]:
    """Workers that show life take the oldest from the queue."""
    ids: list[str] = redis.lpop("rq:queue:q0", ENDING)
    with redis.pipeline(transaction=False) as pipe:
        for job in ids:
            pipe.hset(Job.key_for(job), mapping={"status": "started", "started_at": stamp(), "worker_name": "w"})
            pipe.zadd(f"rq:executions:{job}", {"x": time.time() + 1000})
            pipe.hset(f"rq:execution:{job}:x", "last_heartbeat", time.time() + 1000)
        pipe.execute()
    return ids


def end(redis: Any, ids: Sequence[str], seconds: float) -> None:
    """Each at an instant of its own, all within so many seconds."""
    began = time.monotonic()
    for at, job in sorted((random.uniform(0, seconds), job) for job in ids):  # noqa: S311 (no secret)
        time.sleep(max(0.0, began + at - time.monotonic()))
        with redis.pipeline() as pipe:  # as RQ does, in one step
            pipe.hset(Job.key_for(job), mapping={"status": "finished", "ended_at": stamp()})
            pipe.xadd(f"rq:results:{job}", {"type": 1, "worker_name": "w"})
            pipe.delete(f"rq:execution:{job}:x")
            pipe.execute()


def lags_ms(events: Iterable[dict[str, str]]) -> list[float]:
    """From the end of each run to its line in the ledger."""
    lines = (json.loads(event["entry"]) for event in events if event["type"] == "succeeded")
    return [(clock.read(line["at"]) - clock.read(line["ended"])).total_seconds() * 1000 for line in lines]


def stamp() -> str:
    """As RQ writes it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
