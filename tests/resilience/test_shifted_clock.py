"""The wall clock of a real Redis goes forward and back. Nothing that was written meanwhile stops a schedule."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis

from beat.storage.lifetimes import HEARTBEAT_MS
from beat.timing import clock
from tests.process.commands import called
from tests.resilience import shifted_clock
from tests.resilience.proxy import Proxy
from tests.resilience.shifted_clock import ShiftedRedis
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.rq_worker import SIMPLE, Steps, Worker
from tests.support.schedulers import Beat, seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(bool(shifted_clock.why_not()), reason=shifted_clock.why_not())

MINUTES, DAY = 600, 86_400
LONG = bool(os.environ.get("LONG_TESTS"))
STEPS = [MINUTES, DAY] if LONG else [DAY]
SOON = 12
"""Seconds within which a run that has ended is recorded, with room for a busy machine."""
TASKS = """
from beat import periodic

@periodic(every="1s")
def tick(): ...

@periodic(every="1s", overlap="skip")
def skips(): ...

@periodic(every="1s", overlap="wait")
def waits(): ...

@periodic(follows="tick")
def follower(): ...
"""
SCHEDULES = ("tick", "skips", "waits", "follower")
PLAIN = """
from beat import periodic

@periodic(every="1s")
def tick(): ...
"""


@pytest.fixture
def shifted(home: Path) -> Iterator[ShiftedRedis]:
    with ShiftedRedis(home) as server:
        yield server


@pytest.fixture
def redis(shifted: ShiftedRedis) -> Iterator[Any]:
    with Redis.from_url(shifted.url, decode_responses=True) as client:
        yield client


@pytest.fixture
def here(home: Path) -> Path:
    return lay_out(home, {"pyproject.toml": "", "tasks.py": TASKS, "plain.py": PLAIN})


def succeeded(redis: Any) -> dict[str, int]:
    """How many runs of each schedule are known to have succeeded."""
    return {each: int(redis.hget(f"beat:schedule:{each}", "success_count") or 0) for each in SCHEDULES}


def everything_goes_on(redis: Any, seconds: float = SOON) -> None:
    """Each schedule has two more runs whose success is recorded."""
    before = succeeded(redis)
    wait_until(
        lambda: all(number >= before[each] + 2 for each, number in succeeded(redis).items()),
        seconds,
        lambda: f"for two more than {before}: {succeeded(redis)}, watching: {redis.pttl('beat:watching')} ms",
    )


def looks(redis: Any) -> int:
    return int(redis.info("commandstats")["cmdstat_evalsha"]["calls"])


def looked(redis: Any, times: int) -> None:
    """Wait until schedulers have called so many more scripts."""
    before = looks(redis)
    wait_until(lambda: looks(redis) >= before + times)


@pytest.mark.parametrize("by", STEPS)
def test_runs_are_recorded_again_when_the_clock_has_gone_forward_and_back(
    here: Path, shifted: ShiftedRedis, redis: Any, by: int
) -> None:
    steps = Steps(here / "steps")
    with Beat(here, shifted.url) as beat, Worker(shifted.url, steps, options=SIMPLE):
        everything_goes_on(redis, 60)
        shifted.set(by)
        beat.says(f"Redis' clock jumped forward by {by} s")
        looked(redis, 10)
        shifted.set(0)
        everything_goes_on(redis)
        assert beat.end() == 0
    for each in SCHEDULES[:3]:
        enqueued = [
            json.loads(line)["tick"] for line in redis.lrange(f"beat:runs:{each}", 0, -1) if '"enqueued"' in line
        ]
        assert len(enqueued) == len(set(enqueued))


def test_a_scheduler_that_was_killed_ahead_keeps_nothing_from_the_next(
    here: Path, shifted: ShiftedRedis, redis: Any
) -> None:
    """As after a failover to a server whose clock is behind: its locks, and what it hid, were written by the other."""
    steps = Steps(here / "steps")
    with Worker(shifted.url, steps, options=SIMPLE):
        with Beat(here, shifted.url) as beat:
            everything_goes_on(redis, 60)
            shifted.set(DAY)
            beat.says("Redis' clock jumped forward")
            looked(redis, 10)
            beat.kill()
        now_ms = seconds_of(redis) * 1000
        for each in ("tick", "skips", "waits"):  # as if it had held them
            redis.set(f"beat:lock:{each}", "killed", px=10_000)
            redis.zadd("beat:due", {each: now_ms + 10_000})
        for key in ("watching", "repaired"):
            redis.set(f"beat:{key}", "killed", px=10_000)
        shifted.set(0)
        assert problems(here, shifted) >= {"ahead"}
        with Beat(here, shifted.url) as beat:
            everything_goes_on(redis, 10 + SOON)
            assert beat.end() == 0
    assert not problems(here, shifted) & {"ahead"}
    assert all(redis.pttl(key) <= HEARTBEAT_MS for key in redis.keys("beat:instance:*"))


def test_after_a_step_back_log_health_and_doctor_say_until_when_nothing_fires(
    here: Path, shifted: ShiftedRedis, redis: Any
) -> None:
    with Beat(here, shifted.url, module="plain") as beat:
        beat.says("fired tick")
        wait_until(lambda: (redis.hget("beat:meta", "time") or "") > "2020")  # all schedulers know which time is sound
        [name] = redis.keys("beat:instance:*")
        wait_until(lambda: redis.hget(name, "last_pass"))
        shifted.set(-MINUTES)
        beat.says(f"WARNING Redis' clock went back by {MINUTES} s: ticks that are decided are not fired again")
        until = redis.hget("beat:schedule:tick", "next_run")
        assert f"so nothing fires until {until}" in beat.log
        fired = redis.hget("beat:schedule:tick", "run_count")
        wait_until(
            lambda: clock.read(redis.hget(name, "last_pass")) <= clock.at(seconds_of(redis))
        )  # its next heartbeat
        assert told(here, shifted, "health") == (0, f"so nothing fires until {until}")
        code, said = told(here, shifted, "doctor")
        assert (code, until in said) == (1, True)
        with Beat(here, shifted.url, module="plain") as other:  # it has read no clock before
            other.says(f"so nothing fires until {until}")
        looked(redis, 10)
        assert redis.hget("beat:schedule:tick", "run_count") == fired, "no tick is repeated"
        shifted.set(0)
        wait_until(lambda: redis.hget("beat:schedule:tick", "next_run") > until)
        assert beat.end() == 0
    assert "clock" not in problems(here, shifted)


def test_a_hold_that_was_undone_does_not_come_back(here: Path, shifted: ShiftedRedis, redis: Any) -> None:
    """When the clock reaches the time of the jump, nothing is held."""
    by = 130  # the least jump that holds, with a margin
    with Beat(here, shifted.url, module="plain") as beat:
        beat.says("fired tick")
        shifted.set(by)
        beat.says(f"Redis' clock jumped forward by {by} s")
        shifted.set(0)
        before = int(redis.hget("beat:schedule:tick", "run_count"))
        wait_until(lambda: int(redis.hget("beat:schedule:tick", "run_count")) >= before + 2)
        assert redis.hmget("beat:meta", "hold_from", "hold_until") == [None, None]
        wait_until(lambda: redis.keys("beat:instance:*"))  # it expired when the clock was ahead
        assert told(here, shifted, "health")[1].startswith("ok: "), "no tick was decided ahead: nothing is said of it"
        assert beat.end() == 0


@pytest.mark.skipif(not LONG, reason="takes more than a minute: LONG_TESTS=1")
def test_after_a_step_that_stays_everything_goes_on_when_the_hold_has_ended(
    here: Path, shifted: ShiftedRedis, redis: Any
) -> None:
    with Beat(here, shifted.url) as beat, Worker(shifted.url, Steps(here / "steps"), options=SIMPLE):
        everything_goes_on(redis, 60)
        shifted.set(MINUTES)
        beat.says(f"Redis' clock jumped forward by {MINUTES} s")
        everything_goes_on(redis, 60 + SOON)
        assert beat.end() == 0


def test_after_a_failover_to_a_server_that_is_behind_runs_are_recorded(here: Path, home: Path) -> None:
    """Decided ticks stay decided. A manual run and the run that follows it are recorded at once."""
    port = str(free_port())
    with (
        ShiftedRedis(home / "a", "--port", port) as master,
        ShiftedRedis(home / "b", "--replicaof", f"127.0.0.1 {port}") as replica,
        Proxy(master.url) as proxy,
        Redis.from_url(replica.url, decode_responses=True) as redis,
    ):
        master.set(MINUTES)
        with Beat(here, proxy.url) as beat, Worker(proxy.url, Steps(here / "steps"), options=SIMPLE):
            everything_goes_on(redis, 60)
            wait_until(lambda: (redis.hget("beat:meta", "time") or "") > "2020")
            redis.replicaof("NO", "ONE")
            proxy.fail_over(replica.url)
            beat.says("Redis' clock went back by ")
            beat.says(", so nothing fires until ")
            before = succeeded(redis)
            assert called("trigger", "tick", cwd=here, BEAT_REDIS_URL=proxy.url).returncode == 0
            wait_until(
                lambda: all(succeeded(redis)[each] > before[each] for each in ("tick", "follower")),
                SOON,
                lambda: f"for more than {before}: {succeeded(redis)}, watching: {redis.pttl('beat:watching')} ms",
            )
            assert beat.end() == 0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def told(here: Path, shifted: ShiftedRedis, command: str) -> tuple[int, str]:
    """The exit code, and what follows from the last line that is about the clock; else the last line."""
    done = called(command, cwd=here, BEAT_REDIS_URL=shifted.url)
    lines = done.stdout.decode().splitlines()
    said = next((line for line in lines if "clock went back" in line), lines[-1])
    return done.returncode, said.rpartition("again, ")[2]


def problems(here: Path, shifted: ShiftedRedis) -> set[str]:
    """The checks in which the doctor finds a problem."""
    done = called("doctor", "--json", cwd=here, BEAT_REDIS_URL=shifted.url)
    found = json.loads(done.stdout)["findings"]
    return {each["check"] for each in found if each["level"] == "problem"}
