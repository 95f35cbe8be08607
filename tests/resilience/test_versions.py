"""Deploys: two versions of a definition side by side, rollbacks, and ticks that fall due in between."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import TYPE_CHECKING, Any, Self

import pytest
from redis import Redis

from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.schedulers import Beat, Drain, exactly_once, seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from beat.dev.embedded import PrivateRedis

VERSION = """
from beat import periodic

@periodic(every="1s", job_timeout={timeout})
def tick(): ...
"""
YEARLY = """
from beat import periodic

@periodic("0 0 1 {month} *")
def yearly(): ...

@periodic(every="1s")
def tick(): ...
"""
TIMEOUTS = {"old": 100, "new": 200}
SETTINGS = {"BEAT_LOCK_TTL": "1500ms", "BEAT_MISFIRE_AFTER": "5m"}


class Revs:
    """Watches the rev of `tick`, and notes every change."""

    def __init__(self, url: str) -> None:
        self.seen: list[str] = []
        self._url, self._ended = url, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        with Redis.from_url(self._url, decode_responses=True) as redis:
            while not self._ended.wait(0.005):
                rev: Any = redis.hget("beat:schedule:tick", "rev")
                if rev and self.seen[-1:] != [rev]:
                    self.seen.append(rev)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


class Fleet:
    """Beats of the versions old and new, all ended with the block."""

    def __init__(self, home: Path, url: str) -> None:
        self._home, self._url, self._stack = home, url, contextlib.ExitStack()
        for version, timeout in TIMEOUTS.items():
            lay_out(home, {f"{version}/tasks.py": VERSION.format(timeout=timeout)})

    def start(self, version: str) -> Beat:
        return self._stack.enter_context(Beat(self._home / version, self._url, **SETTINGS))

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def fleet(home: Path, server: PrivateRedis) -> Iterator[Fleet]:
    with contextlib.closing(Fleet(home, server.url)) as made:
        yield made


def job_timeout(redis: Any) -> int:
    """Of the jobs that are fired from now on."""
    return int(redis.hget("beat:template:tick", "timeout"))


def test_two_versions_side_by_side_do_not_fight(fleet: Fleet, server: PrivateRedis, redis: Any) -> None:
    dice = random.Random(1)  # noqa: S311 (the same dice every time)
    with Drain(server.url) as drain, Revs(server.url) as revs:
        running = {"old": fleet.start("old")}
        running["old"].says("fired tick")
        running["new"] = fleet.start("new")
        running["new"].says("registered")
        end = time.monotonic() + 8
        while time.monotonic() < end:
            version = dice.choice(["old", "old", "new"])
            if dice.random() < 0.5:
                running[version].kill()
            else:
                assert running[version].end() == 0
            running[version] = fleet.start(version)
            running[version].says("registered")
            if dice.random() < 0.5:
                newest = seconds_of(redis) + 1
                wait_until(lambda: newest in drain.ticks("tick"))  # noqa: B023 (called at once)
        assert [beat.end() for beat in running.values()] == [0, 0]
        exactly_once(redis, drain, least=5)
    old, new = revs.seen
    assert old != new
    assert redis.hget("beat:schedule:tick", "revs") == f"{new} {old}"
    assert job_timeout(redis) == TIMEOUTS["new"]


def test_a_rollback_is_adopted_when_no_beat_of_the_new_version_lives(
    fleet: Fleet, server: PrivateRedis, redis: Any
) -> None:
    with Drain(server.url) as drain, Revs(server.url) as revs:
        old = fleet.start("old")
        old.says("fired tick")
        new = fleet.start("new")
        new.says("tick: the definition was replaced")
        assert [old.end(), new.end()] == [0, 0]
        old = fleet.start("old")
        old.says("tick: a live beat has a newer definition, which stays")
        wait_until(lambda: len(revs.seen) > 2, 45)
        old.says("tick: the definition was replaced")
        assert old.end() == 0
        exactly_once(redis, drain)
    assert revs.seen == [revs.seen[0], revs.seen[1], revs.seen[0]]
    assert job_timeout(redis) == TIMEOUTS["old"]


def test_ticks_that_fall_due_during_a_deploy_fire_after_it(fleet: Fleet, server: PrivateRedis, redis: Any) -> None:
    with Drain(server.url) as drain:
        old = fleet.start("old")
        old.says("fired tick")
        assert old.end() == 0
        stopped = seconds_of(redis)
        wait_until(lambda: seconds_of(redis) > stopped + 3)
        new = fleet.start("new")
        wait_until(lambda: stopped + 3 in drain.ticks("tick"))
        assert new.end() == 0
        exactly_once(redis, drain, least=4)
    assert job_timeout(redis) == TIMEOUTS["new"]
    assert "moved" not in new.log


@pytest.mark.parametrize(("first", "second"), [(1, 7), (7, 1)])
def test_a_changed_timing_never_fires_at_once(
    home: Path, server: PrivateRedis, redis: Any, first: int, second: int
) -> None:
    lay_out(home, {"old/tasks.py": YEARLY.format(month=first), "new/tasks.py": YEARLY.format(month=second)})
    with Beat(home / "old", server.url) as old:
        old.says("fired tick")
        assert redis.hget("beat:schedule:yearly", "next_run")[5:7] == f"{first:02}"
        assert old.end() == 0
    with Beat(home / "new", server.url) as new:
        new.says("yearly: the next tick moved")
        wait_until(lambda: new.log.count("fired tick") >= 2)
        assert "fired yearly" not in new.log
    state = redis.hgetall("beat:schedule:yearly")
    assert state["next_run"][5:] == f"{second:02}-01T00:00:00Z"
    assert (state["run_count"], state["skip_count"], state["state"]) == ("0", "0", "active")
    told = [event["type"] for _, event in redis.xrange("beat:events") if event["schedule"] == "yearly"]
    assert told == ["registered", "moved"]
