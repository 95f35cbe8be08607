"""The wall clock of a real Redis goes forward and back: whatever was written meanwhile, nothing stands still for it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis

from beat import clock
from tests.beats import Beat, seconds_of
from tests.facts import wait_until
from tests.faults import shifted_clock
from tests.faults.shifted_clock import ShiftedRedis
from tests.files import lay_out
from tests.process.commands import called
from tests.workers import SIMPLE, Steps, Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(bool(shifted_clock.why_not()), reason=shifted_clock.why_not())

MINUTES, DAY = 600, 86_400
STEPS = [MINUTES, DAY] if os.environ.get("LONG_TESTS") else [DAY]
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
