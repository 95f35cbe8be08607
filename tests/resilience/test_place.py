"""Groups, followers and broadcasts with real workers, while beats are killed, stopped and cut off.

What ran when is what the jobs themselves wrote down, by Redis' clock: never more of a group at once than may be. Each
tick has one verdict, each success is followed once, and of each broadcast tick all parts ran, once.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import pytest

from beat.storage import scripts
from beat.timing import clock
from tests.resilience import harm
from tests.resilience.outcomes.stage import only_ours
from tests.resilience.place_tasks import BY_TIME, GROUPED, QUEUES, ROOM, SHARDS
from tests.resilience.proxy import Proxy
from tests.resilience.test_commands import SCRIPTS, SHORT_LOCKS, Scene, killed_after, killed_before, reply_dropped
from tests.support.facts import wait_until
from tests.support.rq_worker import SIMPLE, Steps, Worker
from tests.support.schedulers import Beat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from tests.resilience.harm import Fault

WORKERS = ROOM + 2
"""More than may run at once: it is beat that lets no more in."""


class Log(Steps):
    """What the jobs wrote down."""

    @property
    def jobs(self) -> Counter[str]:
        """How often each began."""
        return Counter(step.job for step in self.all() if step.word.startswith("start"))

    def broadcasts(self) -> list[str]:
        """Those of which every second brings some, while a beat lives."""
        return [each for each in self.jobs if each.startswith("beat_parts_")]

    def are_over(self) -> bool:
        """Whether all that began have ended."""
        words = Counter(step.word.partition("@")[0] for step in self.all())
        return words["start"] == words["end"]

    def times(self, *ids: str) -> list[tuple[float, int]]:
        """When a run of these began (1) or ended (-1), in order; what ends makes room for what begins."""
        found = []
        for step in self.all():
            word, _, at = step.word.partition("@")
            if step.job.startswith(tuple(f"beat_{each}_" for each in ids)):
                found.append((float(at), 1 if word == "start" else -1))
        return sorted(found)


@pytest.fixture
def log(home: Path) -> Log:
    return Log(home / "steps.log")


@pytest.fixture
def scene(home: Path, server: PrivateRedis, redis: Redis, log: Log) -> Iterator[Scene]:
    for name in scripts.names():
        redis.script_load(scripts.script(name).text)
    started: dict[str, Beat] = {}
    one_at_a_time = threading.Lock()

    def beat(name: str, url: str) -> Beat:
        with one_at_a_time:
            if name not in started:
                told = {**only_ours(log), **SHORT_LOCKS}
                started[name] = Beat(home, url, module="tests.resilience.place_tasks", **told)
            return started[name]

    with contextlib.ExitStack() as stack:
        proxy = stack.enter_context(Proxy(server.url, SCRIPTS))
        for _ in range(WORKERS):
            stack.enter_context(Worker(server.url, log, *QUEUES, options=SIMPLE))
        yield Scene(proxy, cast("Any", log), lambda: beat("victim", proxy.url), lambda: beat("other", server.url))
        for each in started.values():
            each.__exit__()


def lines(redis: Redis, schedule_id: str, *types: str) -> list[dict[str, Any]]:
    """The ledger, oldest first."""
    found: Any = redis.lrange(f"beat:runs:{schedule_id}", 0, -1)
    return [line for line in map(json.loads, reversed(found)) if line["type"] in types]


def waiting(redis: Redis, schedule_id: str) -> list[list[str]]:
    found: Any = redis.zrange(f"beat:waiting:{schedule_id}", 0, -1)
    return [each.split(" ") for each in found]


def second(text: str) -> int:
    return int(clock.read(text).timestamp())


def one_verdict_each(redis: Redis, schedule_id: str) -> None:
    """Every tick from the first to the next is enqueued, skipped or waits."""
    enqueued = [second(line["tick"]) for line in lines(redis, schedule_id, "enqueued")]
    skips = lines(redis, schedule_id, "skipped")
    skipped = [each for line in skips for each in range(second(line["tick"]), second(line["last"]) + 1)]
    decided = sorted([*enqueued, *skipped, *(second(each[1]) for each in waiting(redis, schedule_id))])
    state: Any = redis.hgetall(f"beat:schedule:{schedule_id}")
    assert decided == list(range(decided[0], second(state["next_run"]))), schedule_id
    assert (int(state["run_count"]), int(state["skip_count"])) == (len(enqueued), len(skipped)), schedule_id


def each_success_is_followed_once(redis: Redis) -> None:
    succeeded = Counter(line["job"] for line in lines(redis, "extract", "succeeded"))
    followed = [line["after"] for line in lines(redis, "load", "enqueued")]
    assert Counter([*followed, *(each[3] for each in waiting(redis, "load"))]) == succeeded
    assert set(succeeded.values()) == {1}
    assert lines(redis, "load", "skipped") == []


def enqueued(redis: Redis) -> Counter[str]:
    """All jobs, each part of what was broadcast."""
    found = [line["job"] for each in (*GROUPED, "load") for line in lines(redis, each, "enqueued")]
    for line in lines(redis, "parts", "enqueued"):
        assert line["shards"] == len(SHARDS)
        found += [f"{line['job']}_s{n}" for n in range(len(SHARDS))]
    return Counter(found)


def everything_ran_once(redis: Redis, log: Log) -> None:
    """All that was enqueued, and nothing else."""
    assert log.jobs == enqueued(redis)
    assert set(log.jobs.values()) == {1}


def never_more_than_may(log: Log) -> None:
    at_once, most = 0, 0
    for _, change in log.times(*GROUPED):
        at_once += change
        most = max(most, at_once)
    assert most == ROOM, f"{most} at once: {log.times(*GROUPED)}"  # fewer would be a test that shows nothing


def nothing_is_left(redis: Redis) -> None:
    """Who stands in the group's line stands in that of its schedule; only what is open has room."""
    own = {" ".join(each) for schedule_id in GROUPED for each in waiting(redis, schedule_id)}
    assert {" ".join(each) for each in waiting(redis, "@room")} <= own
    open_jobs: Any = redis.zrange("beat:open", 0, -1)
    running: Any = redis.zrange("beat:running:@room", 0, -1)
    assert set(running) <= set(open_jobs)


def stopped_for_longer_than_the_lock_lives(scene: Scene) -> Fault:
    fired: list[int] = []

    def number() -> int:
        return len(scene.drain.broadcasts())  # type: ignore[attr-defined]  # it is a Log here

    def stop() -> None:
        scene.victim().freeze()
        scene.other()
        fired.append(number())

    return harm.pause(stop, lambda: number() >= fired[0] + 3 * len(SHARDS), lambda: scene.victim().thaw())


CASES = [killed_before, killed_after, reply_dropped, stopped_for_longer_than_the_lock_lives]
STRUCK = ["evalsha fire", "evalsha close", "evalsha attend"]
EVERY = 1 if os.environ.get("LONG_TESTS") else 4  # `make survive` has all of them
PAIRS = [(struck, case) for n, struck in enumerate(STRUCK) for m, case in enumerate(CASES) if (m + n) % EVERY == 0]


@pytest.mark.parametrize(("struck", "case"), PAIRS, ids=[f"{each}-{case.__name__}" for each, case in PAIRS])
def test_what_shares_room_follows_and_is_broadcast_does_so_exactly_once(
    struck: str, case: Callable[[Any], Fault], scene: Scene, redis: Redis, log: Log
) -> None:
    victim = scene.victim()
    wait_until(lambda: any(each.startswith("beat_load_") for each in log.jobs), what=lambda: victim.log)
    rule = scene.proxy.plan(struck, case(scene))
    wait_until(lambda: rule.hits, what=lambda: f"{victim.process.poll()} {victim.log}")
    other = scene.other()
    assert rule.done.wait(60), other.log
    other.says("registered")
    seen = len(lines(redis, "load", "enqueued"))
    wait_until(lambda: len(lines(redis, "load", "enqueued")) >= seen + 2, 60, what=lambda: other.log)
    if victim.process.poll() is None:
        assert victim.end() == 0
    assert other.end() == 0
    wait_until(lambda: log.jobs.total() >= enqueued(redis).total() and log.are_over())
    for each in BY_TIME:
        one_verdict_each(redis, each)
    each_success_is_followed_once(redis)
    everything_ran_once(redis, log)
    never_more_than_may(log)
    nothing_is_left(redis)
