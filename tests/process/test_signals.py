"""How a beat ends: soon, in order, and whatever Redis does meanwhile."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from beat.dev import embedded
from tests.resilience.proxy import Proxy
from tests.support.facts import in_time, wait_until
from tests.support.files import lay_out
from tests.support.schedulers import TASKS, Beat, Drain, exactly_once

if TYPE_CHECKING:
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis

BOTH = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
AWAY = "Redis does not work for us"
SOON_S = 4.5
"""Two, as is promised, and what a busy machine adds."""
SELDOM = """
from beat import periodic

@periodic(every="3s")
def tick(): ...
"""
ELSEWHERE = """
import pathlib, signal, threading, time

def take():
    while not pathlib.Path("now").exists():
        time.sleep(0.01)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

threading.Thread(target=take, daemon=True).start()
"""


@pytest.fixture
def here(home: Path) -> Path:
    return lay_out(home, {"tasks.py": TASKS})


def signalled(beat: Beat, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
    """The exit code, and how long that took."""
    start = time.monotonic()
    beat.process.send_signal(number)
    return beat.process.wait(20), time.monotonic() - start


def test_a_signal_that_the_kernel_hands_to_another_thread_ends_it_too(
    home: Path, server: PrivateRedis, redis: Any
) -> None:
    lay_out(home, {"tasks.py": TASKS + ELSEWHERE})
    with Beat(home, server.url) as beat:
        beat.says("registered")
        (home / "now").touch()
        assert beat.process.wait(30) == 0
    assert redis.zcard("beat:instances") == 0


@BOTH
def test_a_signal_ends_it_and_gives_everything_back(
    here: Path, server: PrivateRedis, redis: Any, number: signal.Signals
) -> None:
    with Drain(server.url) as drain, Beat(here, server.url) as beat:
        beat.says("fired tick")
        assert redis.keys("beat:instance:*")
        code, seconds = signalled(beat, number)
        assert code == 0
        in_time(seconds, SOON_S)
        exactly_once(redis, drain)
    assert redis.keys("beat:lock:*") + redis.keys("beat:instance:*") == []
    assert redis.zcard("beat:instances") == 0
    assert not redis.exists("beat:repairing")
    assert re.search(r" has stopped; \d+ ticks? fired\n$", beat.log)
    assert "Traceback" not in beat.log


@BOTH
def test_a_signal_ends_it_while_redis_does_not_answer(
    here: Path, server: PrivateRedis, redis: Any, number: signal.Signals
) -> None:
    with Proxy(server.url) as proxy, Beat(here, proxy.url) as beat:
        beat.says("fired tick")
        proxy.freeze()
        asked = len(proxy.recorded)
        time.sleep(1.1)  # the ticker is in the middle of a pass
        code, seconds = signalled(beat, number)
        assert len(proxy.recorded) == asked
    assert code == 0
    in_time(seconds, SOON_S)
    assert "Traceback" not in beat.log
    assert redis.exists("beat:schedule:tick")


def test_a_signal_ends_it_while_redis_is_away(here: Path) -> None:
    with embedded.start(here / "redis") as private, Beat(here, private.url) as beat:
        beat.says("fired tick")
        private.kill()
        beat.says(AWAY)
        code, seconds = signalled(beat)
    assert code == 0
    in_time(seconds, SOON_S)
    assert beat.log.count(AWAY) == 1
    assert "Traceback" not in beat.log


def test_a_signal_ends_it_when_redis_was_never_there(here: Path) -> None:
    with Beat(here, f"unix://{here}/nowhere.sock") as beat:
        beat.says(AWAY)
        code, seconds = signalled(beat)
    assert code == 0
    in_time(seconds, SOON_S)


def test_a_signal_ends_it_when_redis_never_answered(here: Path, server: PrivateRedis) -> None:
    with Proxy(server.url) as proxy:
        proxy.freeze()
        with Beat(here, proxy.url) as beat:
            wait_until(lambda: handles(beat.pid, signal.SIGTERM))
            code, seconds = signalled(beat)
    assert code == 0
    in_time(seconds, SOON_S)


def handles(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for the signal."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:  # noqa: PTH123 (not a file of anybody's)
        caught = next(line for line in file if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def test_a_second_signal_ends_it_at_once(here: Path, server: PrivateRedis, redis: Any) -> None:
    with Proxy(server.url) as proxy, Beat(here, proxy.url) as beat:
        beat.says("fired tick")
        proxy.freeze()
        time.sleep(1.1)  # the ticker is in the middle of a pass
        beat.process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            beat.process.wait(0.5)
        code, seconds = signalled(beat, signal.SIGINT)
    assert code == 130
    in_time(seconds, SOON_S)
    assert redis.exists("beat:schedule:tick")


def test_it_ends_as_the_first_process_of_a_container(here: Path, server: PrivateRedis, redis: Any) -> None:
    apart = [shutil.which("unshare") or "unshare", "--fork", "--pid", "--mount-proc", "--kill-child"]
    try:
        subprocess.run([*apart, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as e:
        pytest.skip(f"no process of this user may be the first of a namespace: {e}")
    command = [*apart, sys.executable, "-m", "beat", "run", "tasks"]
    environment = {**os.environ, "BEAT_REDIS_URL": server.url}
    with subprocess.Popen(command, cwd=here, env=environment, stderr=subprocess.DEVNULL) as outside:
        [name] = wait_until(lambda: redis.keys("beat:instance:*"))
        assert redis.hget(name, "pid") == "1"
        start = time.monotonic()
        os.kill(child_of(outside.pid), signal.SIGTERM)
        assert outside.wait(20) == 0
        in_time(time.monotonic() - start, SOON_S)
    assert redis.keys("beat:lock:*") + redis.keys("beat:instance:*") == []


def child_of(pid: int) -> int:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:  # noqa: PTH123 (not a file of anybody's)
        return int(file.read().split()[0])


def test_what_is_claimed_ahead_is_given_back_so_that_another_fires_it_on_time(
    here: Path, server: PrivateRedis, redis: Any
) -> None:
    lay_out(here, {"tasks.py": SELDOM})
    long = {"BEAT_LOCK_TTL": "1m", "BEAT_LOOKAHEAD": "3s"}
    with Beat(here, server.url, **long) as leaving:
        holder = wait_until(lambda: redis.get("beat:lock:tick"))
        assert f"-{leaving.pid}-" in holder
        with Beat(here, server.url, **long) as staying:
            staying.says("has started")
            wait_until(lambda: holder == redis.get("beat:lock:tick") and 1 < left(redis) < 2)
            tick = redis.hget("beat:schedule:tick", "next_run")
            assert signalled(leaving)[0] == 0
            staying.says(f"fired tick for {tick}")
            late = re.search(rf"fired tick for {tick}, (\d+) ms after", staying.log)
    assert late
    in_time(int(late[1]) / 1000, 3)  # a lock would have lasted for a minute


def left(redis: Redis) -> float:
    """How long it is until the next tick, by Redis' clock."""
    seconds, micros = redis.time()
    return 3 - (int(seconds) % 3 + int(micros) / 1e6)
