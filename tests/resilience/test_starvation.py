"""A dead beat's locks, thousands of them, keep nobody else from firing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.storage.store import pages
from tests.support.builders import claim, registration, second
from tests.support.facts import in_time, wait_until
from tests.support.schedulers import TASKS, Beat, Drain, exactly_once

if TYPE_CHECKING:
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store


def test_five_thousand_locked_by_a_dead_beat_starve_nobody(
    home: Path, server: PrivateRedis, redis: Redis, store: Store
) -> None:
    (home / "tasks.py").write_text(TASKS)
    at = second(store) - 60
    for page in pages([f"dead{n}" for n in range(5_000)]):
        store.register([registration(each, at) for each in page], beat="dead")
    locked = 0
    while found := len(claim(store, token="dead", lock_ttl=600_000, limit=1000).claims):  # noqa: S106 (a name)
        locked += found
    assert locked == 5_000
    with Drain(server.url) as drain, Beat(home, server.url) as beat:
        beat.says("registered")
        began = second(store)
        beat.says("fired tick")
        in_time(second(store) - began, 10)  # the locks of the dead last for ten minutes
        wait_until(lambda: len(drain.jobs) >= 3)
        assert beat.end() == 0
        exactly_once(redis, drain, least=3)
    for each in redis.scan_iter("beat:lock:*", count=1000):
        redis.delete(each)
