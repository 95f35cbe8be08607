"""What Redis rejects is retried soon enough: when the obstacle is gone, all its ticks fire, and none is a misfire."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from beat.timing import clock
from tests.support.builders import text
from tests.support.facts import in_time, wait_until
from tests.support.schedulers import Beat

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from beat.dev.embedded import PrivateRedis

TASKS = """
import beat

beat.group("reports", max_running=900)

@beat.periodic(every="1s", queue="typed")
def typed(): ...

@beat.periodic(every="1s", queue="barred")
def barred(): ...

@beat.periodic(every="1s", queue="plain", group="reports")
def grouped(): ...

@beat.periodic(every="1s", queue="plain")
def plain(): ...
"""
RIGHTS = "ACL SETUSER barred reset on nopass ~* &* +@all"
AT_ONCE_S = 3.0
"""How soon a tick fires after its obstacle is gone: at the next attempt, on a busy machine."""


class Obstacle(NamedTuple):
    """What Redis rejects, and how to put it right."""

    ids: tuple[str, ...]
    begin: Callable[[Any], Any]
    end: Callable[[Any], Any]
    key: str
    """What the log line names."""


def _without_limit(redis: Any) -> None:
    redis.hdel("beat:groups", "reports")


def _bad_stream(redis: Any) -> None:
    redis.rename("beat:events", "beat:events.kept")
    redis.set("beat:events", "garbage")


def _good_stream(redis: Any) -> None:
    redis.rename("beat:events.kept", "beat:events")


OBSTACLES = {
    "queue key": Obstacle(
        ("typed",), lambda r: _garble(r, "rq:queue:typed"), lambda r: r.delete("rq:queue:typed"), "rq:queue:typed"
    ),
    "missing right": Obstacle(
        ("barred",),
        lambda r: r.execute_command(f"{RIGHTS} -rpush (+rpush ~rq:queue:plain ~rq:queue:typed)"),
        lambda r: r.execute_command(RIGHTS),
        "rq:queue:barred",
    ),
    "group without a limit": Obstacle(
        ("grouped",), _without_limit, lambda r: r.hset("beat:groups", "reports", "wait 900"), "beat:groups"
    ),
    "event stream": Obstacle(("plain", "typed"), _bad_stream, _good_stream, "beat:events"),
}


def _garble(redis: Any, key: str) -> None:
    redis.delete(key)
    redis.set(key, "garbage")


@pytest.fixture
def url(server: PrivateRedis, redis: Any) -> Any:
    """The server, as a user whose rights a test can take away."""
    redis.execute_command(RIGHTS)
    yield server.url.replace("unix://", "unix://barred:x@") if "unix://" in server.url else server.url
    redis.execute_command("ACL DELUSER barred")


def entries(redis: Any, schedule_id: str) -> list[dict[str, Any]]:
    """The ledger of a schedule, oldest first."""
    lines: Any = redis.lrange(f"beat:runs:{schedule_id}", 0, -1)
    return [json.loads(line) for line in reversed(lines)]


def enqueued(redis: Any, schedule_id: str) -> dict[str, dict[str, Any]]:
    return {line["tick"]: line for line in entries(redis, schedule_id) if line["type"] == "enqueued"}


def is_enqueued(redis: Any, schedule_id: str, tick: str) -> bool:
    return tick in enqueued(redis, schedule_id)


def lines_of(beat: Beat, schedule_id: str, words: str) -> list[str]:
    return [line for line in beat.log.splitlines() if schedule_id in line and words in line]


def now(redis: Any) -> float:
    seconds, micros = redis.time()
    return float(seconds) + float(micros) / 1e6


@pytest.mark.parametrize("name", OBSTACLES)
def test_every_tick_of_an_obstacle_fires_when_it_is_gone(name: str, home: Path, redis: Any, url: str) -> None:
    obstacle = OBSTACLES[name]
    (home / "tasks.py").write_text(TASKS)
    with Beat(home, url) as beat:
        for each in obstacle.ids:
            beat.says(f"fired {each} ")
        obstacle.begin(redis)
        for each in obstacle.ids:
            wait_until(partial(lines_of, beat, each, obstacle.key))
        began = now(redis)
        wait_until(lambda: now(redis) >= began + 4)
        obstacle.end(redis)
        ended = now(redis)
        for each in obstacle.ids:
            wait_until(partial(is_enqueued, redis, each, text(int(ended) + 1)), 40)
            assert [line for line in entries(redis, each) if line["type"] == "skipped"] == []
            ticks = enqueued(redis, each)
            assert {text(at) for at in range(int(began), int(ended) + 2)} <= ticks.keys()
            in_time(
                max(clock.read(ticks[text(at)]["at"]).timestamp() for at in range(int(began), int(ended))) - ended,
                AT_ONCE_S,
            )
            wait_until(partial(lines_of, beat, each, "works again after"))
        assert beat.end() == 0
    for each in obstacle.ids:
        assert len(lines_of(beat, f"ERROR   {each}:", obstacle.key)) == 1
        assert len(lines_of(beat, each, "works again after")) == 1


def test_schedulers_that_share_the_work_log_an_obstacle_once_each(home: Path, server: PrivateRedis, redis: Any) -> None:
    (home / "tasks.py").write_text(TASKS)
    with Beat(home, server.url) as one, Beat(home, server.url) as other:
        for beat in (one, other):
            beat.says("registered")
        wait_until(lambda: enqueued(redis, "typed"))
        _garble(redis, "rq:queue:typed")
        began = now(redis)
        wait_until(lambda: now(redis) >= began + 8)
        redis.delete("rq:queue:typed")
        ended = now(redis)
        wait_until(partial(is_enqueued, redis, "typed", text(int(ended) + 3)))
        wait_until(lambda: "typed works again after" in one.log + other.log)
        assert one.end() == other.end() == 0
    begins = [len(lines_of(beat, "ERROR   typed:", "rq:queue:typed")) for beat in (one, other)]
    ends = [len(lines_of(beat, "INFO", "typed works again after")) for beat in (one, other)]
    assert sum(begins) >= 1
    assert max(begins) == max(ends) == 1
    assert all(end <= begin for begin, end in zip(begins, ends, strict=True))
    assert not [line for line in entries(redis, "typed") if line["type"] == "skipped"]
