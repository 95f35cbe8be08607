"""Beats whose ticks nobody takes say so, all of them together once; and that somebody does again."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tests.support.facts import wait_until
from tests.support.rq_worker import Steps, Worker
from tests.support.schedulers import Beat

if TYPE_CHECKING:
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis

TASKS = """
from beat import periodic
from beat.engine import housekeeper, unserved_queues

housekeeper.HEARTBEAT_S, unserved_queues.GRACE_S = 0, 0.5  # it looks twice a second

@periodic(every="1s", queue="mail")
def tick(): ...

@periodic(every="1s", queue="mail", overlap="wait")
def waits(): ...
"""
GONE = "WARNING ticks go to the queue mail, and no live worker reads it: rq worker mail"
BACK = "INFO    a worker reads the queue mail again: none had since "


def told(redis: Redis) -> list[tuple[str, str]]:
    """What the outbox says of queues."""
    found: Any = redis.xrange("beat:events")
    of_queues = (fields for _, fields in found if not fields["schedule"])
    return [(fields["type"], json.loads(fields["entry"])["queue"]) for fields in of_queues]


def all_look_again(redis: Redis, beats: list[Beat]) -> None:
    """Waits until each of the beats has shown life, and so looked, several times more."""
    names: Any = redis.zrange("beat:instances", 0, -1)
    seen: dict[str, set[Any]] = {name: set() for name in names}
    assert len(seen) == len(beats)

    def looked() -> bool:
        for name, times in seen.items():
            times.add(redis.hget(f"beat:instance:{name}", "seen_at"))
        return all(len(times) > 3 for times in seen.values())

    wait_until(looked, what=lambda: "\n".join(beat.log for beat in beats))


def test_three_beats_say_once_that_nobody_works_and_once_that_somebody_does(
    server: PrivateRedis, redis: Redis, home: Path
) -> None:
    (home / "tasks.py").write_text(TASKS)
    with ExitStack() as stack:
        beats = [stack.enter_context(Beat(home, server.url)) for _ in range(3)]

        def count(words: str) -> int:
            return sum(beat.log.count(words) for beat in beats)

        def logs() -> str:
            return "\n".join(beat.log for beat in beats)

        wait_until(lambda: count(GONE), what=logs)
        all_look_again(redis, beats)
        assert (count(GONE), told(redis)) == (1, [("no_worker", "mail")]), logs()
        worker = stack.enter_context(Worker(server.url, Steps(home / "steps.log"), "mail"))
        wait_until(lambda: count(BACK), what=lambda: f"{logs()}\n{worker.log}")
        all_look_again(redis, beats)
        assert (count(GONE), count(BACK)) == (1, 1), logs()
        assert told(redis) == [("no_worker", "mail"), ("worker_back", "mail")]
        assert not redis.exists("beat:unread")
        assert [beat.end() for beat in beats] == [0, 0, 0]
