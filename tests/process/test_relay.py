"""examples/relay.py as a process: killed at any moment it relays every event at least once, and says what it missed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from redis import Redis

from beat.dev import embedded
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.dev.embedded import PrivateRedis

RELAY = Path(__file__).parent.parent.parent / "examples/relay.py"
KEY = "beat:events"


class Pipe:
    """`… | your-program`: what every relay of a test wrote. A short write into a pipe is whole, whoever is killed."""

    def __init__(self) -> None:
        self._end, self.entry = os.pipe()
        os.set_blocking(self._end, False)
        self._came = b""

    @property
    def lines(self) -> list[dict[str, Any]]:
        with contextlib.suppress(BlockingIOError):
            while more := os.read(self._end, 65536):
                self._came += more
        return [json.loads(line) for line in self._came.splitlines()]

    def close(self) -> None:
        os.close(self._end)
        os.close(self.entry)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    with contextlib.closing(Pipe()) as pipe:
        yield pipe


class Relay:
    """`python examples/relay.py | …`."""

    def __init__(self, home: Path, url: str, pipe: Pipe, *arguments: str) -> None:
        self._pipe, self._err = pipe, home / "relay.err"
        environ = {name: value for name, value in os.environ.items() if not name.startswith("BEAT_")}
        with self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, RELAY, *arguments],
                env={**environ, "BEAT_REDIS_URL": url, "PYTHONUNBUFFERED": "1"},
                stdout=pipe.entry,
                stderr=err,
            )

    @property
    def errors(self) -> str:
        return self._err.read_text(encoding="utf-8")

    def relays(self, count: int) -> None:
        """Waits until there are so many lines."""
        pipe = self._pipe
        wait_until(lambda: len(pipe.lines) >= count, 60, lambda: f"for {count}, not {len(pipe.lines)}: {self.errors}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def tell(redis: Any, first: int, count: int) -> None:
    with redis.pipeline(transaction=False) as pipe:
        for n in range(first, first + count):
            pipe.xadd(KEY, {"type": "enqueued", "schedule": "a", "job": f"j{n}", "by": "b", "entry": "{}"})
        pipe.execute()


def test_killed_at_any_moment_it_relays_every_event_at_least_once(
    home: Path, server: PrivateRedis, redis: Any, pipe: Pipe
) -> None:
    dice = random.Random(1)  # noqa: S311 (the same dice every time)
    for n in range(4):
        tell(redis, n * 400, 400)
        with Relay(home, server.url, pipe) as relay:
            relay.relays(len(pipe.lines) + dice.randrange(1, 350))  # and then kill -9
    with Relay(home, server.url, pipe) as relay:
        everything = {f"j{n}" for n in range(1600)}
        wait_until(lambda: everything <= {line["job"] for line in pipe.lines}, 60, lambda: relay.errors)
        wait_until(lambda: redis.xpending(KEY, "relay")["pending"] == 0)
        jobs = [line["job"] for line in pipe.lines]
    assert {*jobs} == everything
    assert len(jobs) <= 1600 + 4, "more than what was in hand came twice"
    assert list(dict.fromkeys(jobs)) == [f"j{n}" for n in range(1600)]


def test_it_says_how_many_it_missed(home: Path, server: PrivateRedis, redis: Any, pipe: Pipe) -> None:
    tell(redis, 0, 3)
    with Relay(home, server.url, pipe) as relay:
        relay.relays(3)
    last = redis.xrevrange(KEY, count=1)[0][0]
    tell(redis, 3, 500)
    redis.xtrim(KEY, maxlen=2, approximate=False)
    with Relay(home, server.url, pipe) as relay:
        wait_until(lambda: pipe.lines[-1].get("job") == "j502", 30, lambda: relay.errors)
        told = [line for line in pipe.lines if line["type"] == "missed"]
    missed = {"type": "missed", "count": 498, "after": last, "before": redis.xrange(KEY)[0][0]}
    # The last of the first three may have been in hand when it was killed, and is gone now.
    assert told in ([missed], [missed, {**missed, "count": 1, "before": ""}])


def test_several_share_the_work(home: Path, server: PrivateRedis, redis: Any, pipe: Pipe) -> None:
    with Relay(home, server.url, pipe, "relay-1") as first, Relay(home, server.url, pipe, "relay-2"):
        wait_until(lambda: redis.info("clients")["blocked_clients"] == 2)
        for n in range(100):
            tell(redis, n, 1)
        first.relays(100)
        wait_until(lambda: redis.xpending(KEY, "relay")["pending"] == 0)
        assert sorted(line["job"] for line in pipe.lines) == sorted(f"j{n}" for n in range(100))


@pytest.mark.parametrize("away", [False, True])
def test_ctrl_c_ends_it_in_silence(home: Path, pipe: Pipe, *, away: bool) -> None:
    private = embedded.start(home / "redis")
    with Relay(home, private.url, pipe) as relay:
        wait_until(lambda: (home / "redis/redis.sock").exists() and _has_clients(private))
        if away:
            private.kill()
            wait_until(lambda: "Redis does not work for us" in relay.errors)
        relay.process.send_signal(signal.SIGINT)
        assert relay.process.wait(30) == 0
        assert len(relay.errors.splitlines()) == (1 if away else 0)
    private.kill()


def _has_clients(private: PrivateRedis) -> bool:
    with Redis.from_url(private.url) as client:
        return bool(client.info("clients")["blocked_clients"])
