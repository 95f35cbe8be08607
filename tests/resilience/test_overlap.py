"""Ticks that wait for one another, while beats are killed, stopped and cut off: each has one verdict, and one runs.

The worker is a thread that does to RQ's records what a worker does, and writes down how many it ran at once.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from beat.storage import scripts
from beat.timing import clock
from tests.resilience.proxy import Proxy
from tests.resilience.test_commands import CASES, SCRIPTS, SHORT_LOCKS, Scene
from tests.support.facts import wait_until
from tests.support.schedulers import Beat, Drain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from tests.resilience.harm import Fault

TASKS = """
from beat import periodic

@periodic(every="1s", overlap="{overlap}")
def tick(): ...
"""
QUEUE = "rq:queue:default"
STRUCK = [
    ("wait", "evalsha attend"),
    ("wait", "evalsha fire"),
    ("wait", "evalsha close"),
    ("replace", "evalsha withdraw"),
    ("skip", "evalsha close"),
]


class SlowWorker(Drain):
    """Takes a job, is busy with it for longer than the schedule's period, and ends it; `jobs` were run so often."""

    def __init__(self, url: str, *, takes: float, runs: float) -> None:
        super().__init__(url, "default")
        self._takes, self._runs = takes, runs

    def _take(self, client: Redis) -> None:
        time.sleep(self._takes)
        job: Any = client.lpop(QUEUE)
        if job:
            self.jobs[job] += 1
            key = f"rq:job:{job}"
            client.hset(key, mapping={"status": "started", "started_at": clock.text(clock.now())})
            time.sleep(self._runs)
            client.hset(key, mapping={"status": "finished", "ended_at": clock.text(clock.now())})


@pytest.fixture
def scene(request: Any, home: Path, server: PrivateRedis, redis: Redis) -> Iterator[Scene]:
    overlap = request.node.callspec.params["struck"][0]
    (home / "tasks.py").write_text(TASKS.format(overlap=overlap))
    for name in scripts.names():
        redis.script_load(scripts.script(name).text)
    started: dict[str, Beat] = {}
    one_at_a_time = threading.Lock()

    def beat(name: str, url: str) -> Beat:
        with one_at_a_time:
            if name not in started:
                started[name] = Beat(home, url, **SHORT_LOCKS)
            return started[name]

    pace = {"takes": 1.5, "runs": 0.1} if overlap == "replace" else {"takes": 0.02, "runs": 1.3}
    with Proxy(server.url, SCRIPTS) as proxy, SlowWorker(server.url, **pace) as worker:
        yield Scene(proxy, worker, lambda: beat("victim", proxy.url), lambda: beat("other", server.url))
        for each in started.values():
            each.__exit__()


def lines(redis: Redis) -> list[dict[str, Any]]:
    """The ledger, oldest first."""
    found: Any = redis.lrange("beat:runs:tick", 0, -1)
    return [json.loads(each) for each in reversed(found)]


def seconds(line: dict[str, Any]) -> range:
    first, last = (int(clock.read(line[name]).timestamp()) for name in ("tick", "last"))
    return range(first, last + 1)


def one_verdict_each(redis: Redis, worker: Drain) -> None:
    """No beat runs any more: every tick up to the next has one verdict, or waits; each job was run at most once."""
    told = lines(redis)
    enqueued = [int(clock.read(line["tick"]).timestamp()) for line in told if line["type"] == "enqueued"]
    skipped = [second for line in told if line["type"] == "skipped" for second in seconds(line)]
    found: Any = redis.zrange("beat:waiting:tick", 0, -1)
    waiting = [int(clock.read(each.split(" ")[1]).timestamp()) for each in found]
    state: Any = redis.hgetall("beat:schedule:tick")
    following = int(clock.read(state["next_run"]).timestamp())
    decided = sorted([*enqueued, *skipped, *waiting])
    assert decided == list(range(decided[0], following)), told
    assert enqueued == sorted(enqueued)
    assert (int(state["run_count"]), int(state["skip_count"])) == (len(enqueued), len(skipped))
    assert max(worker.jobs.values()) == 1
    assert {int(job.rpartition("_")[2]) for job in worker.jobs} <= set(enqueued)


def never_two_at_once(redis: Redis) -> None:
    """Between a job and the next one, the first has ended."""
    open_jobs: set[str] = set()
    for line in lines(redis):
        if line["type"] == "enqueued":
            assert not open_jobs, f"{line['job']} was enqueued while {open_jobs} went on"
            open_jobs.add(line["job"])
        elif line["type"] in {"succeeded", "failed", "stopped", "lost"}:
            open_jobs.discard(line["job"])


EVERY = 1 if os.environ.get("LONG_TESTS") else 2  # `make survive` has all of them
PAIRS = [(struck, case) for n, struck in enumerate(STRUCK) for m, case in enumerate(CASES) if (n + m) % EVERY == 0]


@pytest.mark.parametrize(("struck", "case"), PAIRS, ids=[f"{' '.join(each)}-{case.__name__}" for each, case in PAIRS])
def test_every_tick_has_one_verdict_and_one_runs(
    struck: tuple[str, str], case: Callable[[Any], Fault], scene: Scene, redis: Redis
) -> None:
    rule = scene.proxy.plan(struck[1], case(scene))
    victim = scene.victim()
    wait_until(lambda: rule.hits, what=lambda: f"{victim.process.poll()} {victim.log}")
    other = scene.other()
    assert rule.done.wait(60), other.log
    other.says("registered")
    seen = len(scene.drain.jobs)
    wait_until(lambda: len(scene.drain.jobs) >= seen + 2, 60, what=lambda: other.log)
    if victim.process.poll() is None:
        assert victim.end() == 0
    assert other.end() == 0
    one_verdict_each(redis, scene.drain)
    never_two_at_once(redis)
