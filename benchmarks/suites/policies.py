"""Measure the cost of policies: one pass over many schedules that are all due, some of them with policies.

*Policies of time*: a tenth of the schedules skip because their previous run is in progress, and a tenth wait for it. A
tenth have jitter (a few milliseconds, so that it delays no figure), an end, `max_runs` and excluded days. *Policies of
place*: a tenth are in one of 50 groups. A tenth are routed to one of three queues in four ways, half of them with a
slow lane. A twentieth each require one other schedule. *Plain* has no policies.

A pass lasts from the due instant until every schedule has moved on to its next tick. The three kinds take turns. The
machine influences a single pass as much as beat does, so all schedules are made due six times in each turn. The
benchmark removes what the previous pass left behind.
"""

from __future__ import annotations

import json
import math
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from beat.policies import jitter_and_capacity
from beat.timing import clock
from benchmarks.due import KEYS, fall_due, forget_runs
from benchmarks.figures import Figure
from benchmarks.firing import AHEAD_S, EACH_S, STARTS_S, TooLate
from benchmarks.stage import Beat, stage, until_registered, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.figures import Say, Scale
    from benchmarks.stage import Stage

TITLE = "What policies cost"
SUITE = "policies"
SCHEDULES = 10_000
ROUNDS, TIMES, AGAIN_S, TRIES = 5, 6, 4, 4
PLAIN, TIME, PLACE = "beat, plain", "beat", "beat, place"
QUEUES = ("q0", "q1", "q2")
QUEUE_KEYS = [f"rq:queue:{queue}" for queue in QUEUES]
IDS = [f"s{n:06d}" for n in range(SCHEDULES)]
BUSY, JITTERED = [each for each in IDS if each[-1] in "01"], [each for each in IDS if each[-1] == "2"]
JITTER_MS = 5
TASKS = """
from datetime import datetime, timedelta, timezone
from beat import group, register

def work(): ...

def of_time(n):
    bounds = dict(end=start + timedelta(days=30), max_runs=100, exclude=["2020-12-25"], jitter="{jitter_ms}ms")
    return {{0: dict(overlap="skip"), 1: dict(overlap="wait"), 2: bounds}}.get(n % 10, {{}})

def of_place(n):
    crowd, way = f"g{{n // 20 % 50}}", ("round_robin", "shortest", "hash", "failover")[n // 20 % 4]
    routed, requires = dict(queues={queues}, route=way), dict(requires=f"s{{n + 1:06d}}")
    lane = dict(slow_queue="q9")
    return {{0: dict(group=crowd), 1: dict(group=crowd), 2: routed, 3: routed | lane, 4: requires}}.get(n % 20, {{}})

start = datetime.fromtimestamp({start}, timezone.utc)
for n in range(50):
    group(f"g{{n}}", max_running=1000)
for n in range({schedules}):
    given = {given}
    if "queues" not in given:
        given["queue"] = "q0"
    register(work, every="1h", start=start, id=f"s{{n:06d}}", **given)
"""
_GIVEN = {PLAIN: "{}", TIME: "of_time(n)", PLACE: "of_place(n)"}


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    taken: dict[str, list[float]] = {who: [] for who in _GIVEN}
    with stage() as made:
        rounds, times = scale.pick((ROUNDS, TIMES), (1, 1))
        for turn in range(rounds):
            for who, seconds in taken.items():
                say(f"{who}: {SCHEDULES:,} schedules, round {turn + 1}")
                seconds.extend(passed(made, who, times))
    for who, seconds in taken.items():
        yield Figure(SUITE, "pass", tuple(seconds), "s", who, {"schedules": SCHEDULES})


def passed(made: Stage, who: str, times: int) -> list[float]:
    """Return the seconds of each pass: from the due instant until all schedules have moved on."""
    each_s = EACH_S
    for _ in range(TRIES):
        try:
            return _passed(made, who, times, each_s=each_s)
        except TooLate:
            each_s *= 1.5
    raise TimeoutError(f"{SCHEDULES:,} schedules were not registered in time, {TRIES} times")


def _passed(made: Stage, who: str, times: int, *, each_s: float) -> list[float]:
    home = made.clean()
    start = math.ceil(made.now() + STARTS_S + AHEAD_S + 1.6 * SCHEDULES * each_s)
    words = TASKS.format(start=start, given=_GIVEN[who], schedules=SCHEDULES, queues=list(QUEUES), jitter_ms=JITTER_MS)
    (home / "tasks.py").write_text(words, encoding="utf-8")
    taken: list[float] = []
    with Beat(home, made.url) as beat:
        until_registered(made, beat, SCHEDULES)
        while True:
            taken.append(one_pass(made, who, start))
            if len(taken) == times:
                return taken
            start = again(made, who)


def one_pass(made: Stage, who: str, due: int) -> float:
    """Return the seconds from the due instant until all schedules have moved on."""
    busy = BUSY if who == TIME else []  # they skip, they wait
    occupy(made, busy)
    if who == PLACE:
        remember(made, clock.text(clock.at(due - 1)))
    if made.now() > due - AHEAD_S:
        raise TooLate
    time.sleep(due - AHEAD_S + 0.1 - made.now())  # who asks earlier only keeps Redis busy
    later = (due + 1800) * 1000
    wait_for(lambda: made.redis.zcount(KEYS.due, later, "+inf") == SCHEDULES, 120, pause=0.005)
    taken = made.now() - due
    check(made, who, len(busy))
    return taken


def again(made: Stage, who: str) -> int:
    """Remove what the last pass left, make all schedules due again with their jitter, and return the due instant."""
    made.redis.delete(KEYS.waiting_slots, *QUEUE_KEYS, *map(KEYS.waiting, BUSY))
    forget_runs(made.redis)
    due = math.ceil(made.now() + AGAIN_S)
    fall_due(made.redis, IDS, due)
    with made.redis.pipeline(transaction=False) as pipe:
        for each in JITTERED if who == TIME else ():
            schedule: Any = SimpleNamespace(id=each, jitter=timedelta(milliseconds=JITTER_MS))
            at = jitter_and_capacity.due(schedule, clock.at(due))
            pipe.hset(KEYS.schedule(each), "due_at", clock.text(at))
            pipe.zadd(KEYS.due, {each: clock.to_ms(at)})
        pipe.execute()
    return due


def occupy(made: Stage, ids: Sequence[str]) -> None:
    """Write a run in progress for each schedule, which no scheduler will check during the pass."""
    later = int(made.now() * 1000) + 600_000
    with made.redis.pipeline(transaction=False) as pipe:
        for each in ids:
            job = f"busy_{each}"
            pipe.zadd(f"beat:running:{each}", {job: later})
            pipe.zadd("beat:open", {job: later})
            pipe.hset("beat:records", job, json.dumps({"schedule": each}))
            pipe.hset(f"rq:job:{job}", "status", "started")
        pipe.execute()


def remember(made: Stage, succeeded: str) -> None:
    """Write the past: successes of required schedules, and the use of queues."""
    with made.redis.pipeline(transaction=False) as pipe:
        for n in range(0, SCHEDULES, 20):
            pipe.hset(f"beat:schedule:s{n + 5:06d}", "last_success", succeeded)
            if n // 20 % 4 == 0:
                for routed in (n + 2, n + 3):
                    pipe.hset(f"beat:schedule:s{routed:06d}", "uses", json.dumps([[queue, 7] for queue in QUEUES]))
        pipe.execute()


def check(made: Stage, who: str, busy: int) -> None:
    """Raise AssertionError unless the pass fired and queued exactly what it should."""
    fired, *routed = map(made.redis.llen, QUEUE_KEYS)
    waiting = made.redis.zcard("beat:waiting")
    if (fired + sum(routed), waiting) != (SCHEDULES - busy, busy // 2) or all(routed) != (who == PLACE):
        raise AssertionError(f"{fired:,} and {routed} fired and {waiting:,} wait, of {SCHEDULES:,} with {busy:,} busy")
