"""Every command that a beat sends, struck in four ways: after each, every tick has become one job, and is one line.

The list of commands is held against a recording of a live beat, from its start to its end: a command that is not on it
fails the suite.
"""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from beat.storage import scripts
from tests.resilience import harm
from tests.resilience.proxy import Proxy
from tests.support.facts import wait_until
from tests.support.schedulers import TASKS, Beat, Drain, exactly_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from tests.resilience.harm import Fault

SCRIPTS = {scripts.script(name).sha: name for name in scripts.names()}
STARTING = ["CLIENT SETINFO", "PING", "INFO", "TIME", "HMGET", "EXISTS", "XGROUP DESTROY"]
OTHERS = {
    "glance", "may", "fold", "tally", "survey", "retire", "take", "withdraw", "pause", "defer", "remove", "decide",
    "hand",
}  # fmt: skip
"""By `beat doctor`, `beat list`, readers, metrics, a policy, operators, alerts."""
SENT = [name for name in scripts.names() if name not in OTHERS]
WORKING = [f"evalsha {name}" for name in SENT]
UNLOADED = ["eval claim", "eval fire", "eval register"]  # when Redis does not know the scripts, as after a restart
CLOCK = ["HGET", "ZRANGE"]  # whether Redis' clock went back
REPAIRING = ["SSCAN", "TYPE", "ZSCAN", "SMISMEMBER", "SCARD"]
SEARCHING = ["HLEN", "ZCARD", "HSCAN", "ZADD", "LRANGE"]
WRITING = {"evalsha claim", "evalsha fire", "evalsha close"}
ENDING = ["MULTI", "DEL", "ZREM", "PEXPIRE", "EXEC"]
COMMANDS = [*STARTING, *CLOCK, *WORKING, *REPAIRING, *SEARCHING, *ENDING]
OFTEN = """
from datetime import timedelta
from beat.engine import housekeeper, run_tracker

run_tracker.SEARCH_S, run_tracker.SEARCH_MS, run_tracker.AGE = 1, 900, timedelta(0)
housekeeper.HEARTBEAT_S = 1
"""
"""Jobs that vanished from their queue are looked for at once, not after twenty seconds; who works there, soon."""
PARKED = "rq:queue:parked"
SHORT_LOCKS = {"BEAT_LOCK_TTL": "1s", "BEAT_LOOKAHEAD": "500ms", "BEAT_MISFIRE_AFTER": "1m"}


class Scene(NamedTuple):
    """A beat that talks to Redis through a proxy, another that does not, and somebody who takes the jobs."""

    proxy: Proxy
    drain: Drain
    victim: Callable[[], Beat]
    other: Callable[[], Beat]


@pytest.fixture
def scene(home: Path, server: PrivateRedis, redis: Redis) -> Iterator[Scene]:
    (home / "tasks.py").write_text(TASKS + OFTEN)
    # A run that waits: somebody looks for it, and finds that the index does not know it.
    redis.rpush(PARKED, "parked")
    redis.hset("rq:job:parked", mapping={"status": "queued", "origin": "parked"})
    redis.hset("beat:records", "parked", json.dumps({"schedule": "tick", "queue": PARKED, "enqueued": "2026"}))
    redis.zadd("beat:fanout", {"nothing 2026-11-16T09:00:00.000Z parked": 1})  # a success is still to be handed on
    redis.script_flush()
    for name in scripts.names():
        redis.script_load(scripts.script(name).text)
    started: dict[str, Beat] = {}
    one_at_a_time = threading.Lock()  # the test and the proxy's threads both ask

    def beat(name: str, url: str) -> Beat:
        with one_at_a_time:
            if name not in started:
                started[name] = Beat(home, url, **SHORT_LOCKS)
            return started[name]

    with Proxy(server.url, SCRIPTS) as proxy, Drain(server.url) as drain:
        yield Scene(proxy, drain, lambda: beat("victim", proxy.url), lambda: beat("other", server.url))
        for each in started.values():
            each.__exit__()


def killed_before(scene: Scene) -> Fault:
    return harm.before(lambda: scene.victim().kill())


def killed_after(scene: Scene) -> Fault:
    return harm.after(lambda: scene.victim().kill())


def reply_dropped(scene: Scene) -> Fault:  # noqa: ARG001 (all cases are made alike)
    return harm.drop_reply()


def stopped_for_longer_than_the_lock_lives(scene: Scene) -> Fault:
    def stop() -> None:
        scene.victim().freeze()
        scene.other()

    def has_gone_on() -> bool:
        return len(scene.drain.jobs) >= seen + 2

    seen = len(scene.drain.jobs)
    return harm.pause(stop, has_gone_on, lambda: scene.victim().thaw())


CASES = [killed_before, killed_after, reply_dropped, stopped_for_longer_than_the_lock_lives]


def each_has_its_line(redis: Redis, drain: Drain) -> None:
    """In the ledger, numbered without a gap; and each run is open, for nobody has run any."""
    found: Any = redis.lrange("beat:runs:tick", 0, -1)
    lines = [line for line in map(json.loads, reversed(found)) if line["type"] == "enqueued"]
    assert [line["job"] for line in lines] == [f"beat_tick_{tick}" for tick in drain.ticks("tick")]
    assert [line["n"] for line in lines] == list(range(1, len(lines) + 1))
    parked = {"parked"}  # which the index may know by now, or not
    found_open, remembered = set(redis.zrange("beat:open", 0, -1)), set(redis.hkeys("beat:records"))
    assert {line["job"] for line in lines} == found_open - parked == remembered - parked


def test_every_command_of_a_beat_has_its_four_cases(scene: Scene, redis: Redis) -> None:
    victim = scene.victim()
    wait_until(lambda: len(scene.drain.jobs) >= 2)
    wait_until(lambda: {"evalsha release", "evalsha close", "evalsha staff", *SEARCHING} <= scene.proxy.names())
    assert victim.end() == 0
    exactly_once(redis, scene.drain)
    each_has_its_line(redis, scene.drain)
    assert scene.proxy.names() == set(COMMANDS)


EVERY = 1 if os.environ.get("LONG_TESTS") else 4  # `make survive` has all of them
STRIKES = [
    pytest.param(command, case, id=f"{command}-{case.__name__}")
    for n, command in enumerate([*COMMANDS, *UNLOADED])
    for m, case in enumerate(CASES)
    if (n + m) % EVERY == 0 or command in WRITING
]
"""Each command is struck in one of the four ways, those that give verdicts and outcomes in all."""


@pytest.mark.parametrize(("command", "case"), STRIKES)
def test_every_tick_becomes_one_job(command: str, case: Callable[[Scene], Fault], scene: Scene, redis: Redis) -> None:
    if command in UNLOADED:
        redis.script_flush()
    rule = scene.proxy.plan(command, case(scene))
    victim = scene.victim()
    if command in ENDING:
        wait_until(lambda: scene.drain.jobs, what=lambda: victim.log)
        victim.process.terminate()
    wait_until(lambda: rule.hits, what=lambda: f"{victim.process.poll()} {victim.log}")
    other = scene.other()
    assert rule.done.wait(30)
    seen = len(scene.drain.jobs)
    other.says("registered")
    wait_until(lambda: len(scene.drain.jobs) >= seen + 2, what=lambda: other.log)
    if command in ENDING:
        victim.process.wait(30)
    elif victim.process.poll() is None:
        assert victim.end() == 0
    assert other.end() == 0
    exactly_once(redis, scene.drain, least=2)
    each_has_its_line(redis, scene.drain)
