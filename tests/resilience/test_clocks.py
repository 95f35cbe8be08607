"""Clocks that are wrong: a beat's own, which nobody asks, and Redis' own, when it jumps."""

from __future__ import annotations

import statistics
import sys
import threading
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

import pytest
from redis import Redis

from beat.storage.clock_setback import DECIDED
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.process_pool import ROOT
from tests.support.schedulers import TASKS, Started

if TYPE_CHECKING:
    from pathlib import Path

    from beat.dev.embedded import PrivateRedis

HOUR = 3600
AHEAD = timedelta(days=1000).total_seconds()
# Python imports sitecustomize before anything else.
WRONG = """
import datetime, time

by, real, real_time, real_time_ns = {by}, datetime.datetime, time.time, time.time_ns
time.time = lambda: real_time() + by
time.time_ns = lambda: real_time_ns() + by * 10**9

class Kind(type):
    def __instancecheck__(cls, value):
        return isinstance(value, real)

class Wrong(real, metaclass=Kind):
    @classmethod
    def now(cls, tz=None):
        return real.now(tz) + datetime.timedelta(seconds=by)

datetime.datetime = Wrong
"""
# The one reading of Redis' clock in the scripts becomes a reading of a key, which a test can set.
SEAM = """
import dataclasses, functools
from beat.storage import scripts
from beat.storage.store import Store
from beat.timing import clock

written = scripts.script.__wrapped__

@functools.cache
def script(name):
    found = written(name)
    text = found.text.replace("redis.call('TIME')", "redis.call('LRANGE', 'clock', 0, 1)")
    return dataclasses.replace(found, text=text)

def now(store):
    seconds, micros = store.client.lrange("clock", 0, 1)
    return clock.from_ms(int(seconds) * 1000 + int(micros) // 1000)

scripts.script, Store.time = script, now
"""
SET = "redis.call('DEL', KEYS[1]) return redis.call('RPUSH', KEYS[1], ARGV[1], ARGV[2])"


class Clock:
    """Redis' clock as the beat of a test sees it; days ahead, so that no other is taken for it."""

    def __init__(self, url: str) -> None:
        self._by, self._url, self._ended = AHEAD, url, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def now(self) -> float:
        return time.time() + self._by

    def jump(self, seconds: float) -> None:
        self._by += seconds

    def _run(self) -> None:
        with Redis.from_url(self._url) as redis:
            while not self._ended.is_set():
                now = self.now()
                redis.eval(SET, 1, "clock", int(now), int(now % 1 * 1e6))
                self._ended.wait(0.005)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


@pytest.fixture
def here(home: Path) -> Path:
    return lay_out(home, {"tasks.py": TASKS})


def shimmed(here: Path, url: str, shim: str) -> Started:
    lay_out(here, {"shim/sitecustomize.py": shim})
    command = [sys.executable, "-m", "beat", "run", "tasks"]
    return Started(here, *command, BEAT_REDIS_URL=url, PYTHONPATH=f"{here / 'shim'}:{ROOT}")


def fired(redis: Any) -> list[int]:
    """The ticks that became jobs, in the order in which they did."""
    return [int(job.rpartition("_")[2]) for job in redis.lrange("rq:queue:default", 0, -1)]


def passes(redis: Any, clock: Clock, seconds: float) -> None:
    """Waits until the beat has looked for due ticks for so long."""
    end, calls = clock.now() + seconds, looks(redis)
    wait_until(lambda: clock.now() > end and looks(redis) >= calls + seconds)


def looks(redis: Any) -> int:
    return int(redis.info("commandstats")["cmdstat_evalsha"]["calls"])


# A beat's own clock


@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_a_beat_whose_clock_is_wrong_fires_on_time(here: Path, server: PrivateRedis, redis: Any, by: int) -> None:
    with shimmed(here, server.url, WRONG.format(by=by)) as beat:
        [name] = wait_until(lambda: redis.keys("beat:instance:*"))
        wait_until(lambda: int(redis.hget(name, "fired") or 0) >= 3, 20)
        assert abs(int(redis.hget(name, "clock_offset_ms")) - by * 1000) < 1000
        assert beat.end() == 0
    late = [lateness(redis, tick) for tick in fired(redis)]
    assert min(late) >= 0
    assert statistics.median(late) < 0.1


def lateness(redis: Any, tick: int) -> float:
    at = redis.hget(f"rq:job:beat_tick_{tick}", "enqueued_at")
    return datetime.fromisoformat(at).timestamp() - tick


# Redis' own


def test_a_jump_forward_holds_everything_until_it_has_lasted_a_minute(
    here: Path, server: PrivateRedis, redis: Any
) -> None:
    with Clock(server.url) as clock, shimmed(here, server.url, SEAM) as beat:
        wait_until(lambda: len(fired(redis)) >= 2)
        clock.jump(HOUR)
        beat.says("ERROR   Redis' clock jumped forward by 3600 s: nothing fires until that time has lasted 60 s")
        before = fired(redis)
        assert before[-1] < clock.now() - HOUR + 2
        passes(redis, clock, 3)
        assert fired(redis) == before
        clock.jump(61)
        after = clock.now()
        wait_until(lambda: fired(redis)[-1] > after)
        assert beat.end() == 0
    everything_has_its_verdict(redis)
    assert int(redis.hget("beat:schedule:tick", "skip_count")) > HOUR / 2
    assert beat.log.count("jumped forward") == 1
    assert "skipped" in beat.log


def test_a_beat_that_starts_after_a_jump_notices_it(here: Path, server: PrivateRedis, redis: Any) -> None:
    with Clock(server.url) as clock:
        with shimmed(here, server.url, SEAM) as first:
            first.says("fired tick")
            assert first.end() == 0
        before = fired(redis)
        clock.jump(HOUR)
        with shimmed(here, server.url, SEAM) as second:
            second.says("jumped forward by 3600 s")
            passes(redis, clock, 2)
            assert fired(redis) == before


@pytest.mark.parametrize("by", [30, HOUR])
def test_a_jump_backward_repeats_nothing_and_stops_nothing(
    here: Path, server: PrivateRedis, redis: Any, by: int
) -> None:
    with Clock(server.url) as clock, shimmed(here, server.url, SEAM) as beat:
        wait_until(lambda: len(fired(redis)) >= 2)
        wait_until(lambda: (redis.hget("beat:meta", "time") or "") > "2028")  # all beats know which time is sound
        clock.jump(-by)
        beat.says(f"WARNING Redis' clock went back by {by} s: {DECIDED}, so nothing fires until 20")
        before = fired(redis)
        passes(redis, clock, 3)
        assert fired(redis) == before
        clock.jump(by)
        if by == HOUR:  # put right: a time that was found sound before holds nobody
            beat.says("went forward by 3600 s, to a time that a beat has found sound")
        after = clock.now()
        wait_until(lambda: fired(redis)[-1] > after)
        assert beat.end() == 0
    everything_has_its_verdict(redis)


def everything_has_its_verdict(redis: Any) -> None:
    """No tick fired twice or out of order, and each since the first fired or was counted as skipped."""
    ticks, state = fired(redis), redis.hgetall("beat:schedule:tick")
    assert ticks == sorted(set(ticks))
    assert ticks[0] > time.time() + AHEAD - HOUR / 2
    assert len(ticks) + int(state["skip_count"]) == ticks[-1] - ticks[0] + 1
    assert len(ticks) == int(state["run_count"])
