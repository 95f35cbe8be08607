"""The staff of a queue: who is there to take its jobs, as RQ's own workers write it, and as somebody else could."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from rq import Queue

from beat.policies.facts import Staff
from beat.storage.queue_workers import staff
from tests.support.builders import restricted
from tests.support.facts import wait_until
from tests.support.rq_worker import SIMPLE, Steps, Worker

if TYPE_CHECKING:
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

NOBODY = Staff(0, 0, 0)
ONE = Staff(0, 1, 1)
LONG_AGO = timedelta(minutes=5)


def hire(redis: Any, name: str, *queues: str, **fields: str) -> None:
    """A worker, as RQ would write it."""
    for queue in queues or ("mail",):
        redis.sadd(f"rq:workers:{queue}", f"rq:worker:{name}")
    seen = heartbeat(timedelta(0))
    redis.hset(f"rq:worker:{name}", mapping={"birth": seen, "last_heartbeat": seen, "state": "idle", **fields})


def heartbeat(ago: timedelta) -> str:
    return (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def mail(store: Store) -> Staff:
    return staff(store, ["mail"])["mail"]


# --- written by hand -------------------------------------------------------------------------------------------------


def test_a_queue_that_nobody_knows_is_empty_and_without_staff(store: Store) -> None:
    assert staff(store, ["mail", "reports"]) == {"mail": NOBODY, "reports": NOBODY}
    assert staff(store, []) == {}


def test_jobs_workers_and_idle_workers_are_counted(store: Store, redis: Redis) -> None:
    redis.rpush("rq:queue:mail", "a", "b", "c")
    for name, state in {"w1": "idle", "w2": "busy", "w3": "started", "w4": "suspended", "w5": "idle"}.items():
        hire(redis, name, "mail", state=state)
    hire(redis, "w6", "reports")
    assert staff(store, ["mail", "reports"]) == {"mail": Staff(3, 5, 2), "reports": ONE}


def test_a_worker_of_many_queues_is_counted_at_each(store: Store, redis: Redis) -> None:
    hire(redis, "w1", "mail", "reports")
    assert staff(store, ["mail", "reports", "mail"]) == {"mail": ONE, "reports": ONE}


@pytest.mark.parametrize("field", ["death", "shutdown_requested_date"])
def test_a_worker_that_has_gone_or_takes_no_more_does_not_count(field: str, store: Store, redis: Redis) -> None:
    hire(redis, "w1", "mail", state="busy", **{field: heartbeat(timedelta(0))})
    assert mail(store) == NOBODY


def test_a_worker_whose_hash_has_lapsed_does_not_count(store: Store, redis: Redis) -> None:
    hire(redis, "w1")
    redis.delete("rq:worker:w1")
    assert mail(store) == NOBODY


def test_what_is_left_by_a_heartbeat_after_its_death_is_no_worker(store: Store, redis: Redis) -> None:
    redis.sadd("rq:workers:mail", "rq:worker:w1")
    redis.hset("rq:worker:w1", "last_heartbeat", heartbeat(timedelta(0)))
    assert mail(store) == NOBODY


def test_a_worker_that_is_silent_and_does_not_listen_was_killed(store: Store, redis: Redis) -> None:
    listener: Any = redis
    hire(redis, "w1", last_heartbeat=heartbeat(LONG_AGO))
    assert mail(store) == NOBODY
    with listener.pubsub() as channel:
        channel.subscribe("rq:pubsub:w1")
        wait_until(lambda: mail(store) == ONE)


@pytest.mark.parametrize("said", ["", "yesterday"])
def test_a_worker_that_does_not_say_since_when_is_believed(said: str, store: Store, redis: Redis) -> None:
    hire(redis, "w1", last_heartbeat=said)
    assert mail(store) == ONE


def test_a_worker_without_a_state_is_not_idle(store: Store, redis: Redis) -> None:
    hire(redis, "w1")
    redis.hdel("rq:worker:w1", "state")
    assert mail(store) == Staff(0, 1, 0)


def test_keys_of_other_types_are_no_queue_no_set_and_no_worker(store: Store, redis: Redis) -> None:
    redis.set("rq:queue:mail", "x")
    redis.set("rq:workers:mail", "x")
    assert mail(store) == NOBODY
    redis.set("rq:worker:w1", "x")
    redis.sadd("rq:workers:reports", "rq:worker:w1", "beat:meta", "w2", "")
    assert staff(store, ["reports"])["reports"] == NOBODY


def test_no_more_than_a_thousand_workers_are_looked_at(store: Store, redis: Redis) -> None:
    with redis.pipeline() as pipe:
        for n in range(1200):
            hire(pipe, f"w{n}")
        pipe.execute()
    assert mail(store) == Staff(0, 1000, 1000)


def test_more_queues_than_one_page_holds_are_all_told(store: Store, redis: Redis) -> None:
    hire(redis, "w1", "q59")
    found = staff(store, [f"q{n}" for n in range(60)])
    assert len(found) == 60
    assert [name for name, each in found.items() if each != NOBODY] == ["q59"]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (["-srandmember"], Staff(1, None, None)),
        (["-hmget"], Staff(1, None, None)),
        (["-llen"], Staff(0, 1, 1)),
        (["-pubsub|numsub"], Staff(1, 1, 1)),
        (["resetkeys", "~beat:*", "~rq:queue:*"], Staff(1, None, None)),
        (["resetkeys", "~beat:*", "~rq:workers:*", "~rq:worker:*"], Staff(0, 1, 1)),
    ],
    ids=["the set", "the hash", "the queue", "the channel", "keys of workers", "keys of queues"],
)
def test_who_may_not_look_does_not_know_and_is_no_intruder(
    rules: list[str], expected: Staff, store: Store, redis: Redis
) -> None:
    redis.rpush("rq:queue:mail", "a")
    hire(redis, "w1", last_heartbeat=heartbeat(LONG_AGO if rules == ["-pubsub|numsub"] else timedelta(0)))
    admin: Any = redis
    admin.execute_command("ACL", "LOG", "RESET")
    with restricted(store, *rules) as few:
        assert mail(few) == expected
    assert admin.execute_command("ACL", "LOG") == []


# --- RQ's own --------------------------------------------------------------------------------------------------------


@pytest.fixture
def steps(home: Path) -> Steps:
    return Steps(home / "steps.log")


@pytest.mark.parametrize("options", [(), SIMPLE], ids=["worker", "simple"])
def test_a_real_worker_comes_works_and_goes(
    options: tuple[str, ...], server: PrivateRedis, store: Store, steps: Steps
) -> None:
    with Worker(server.url, steps, "mail", "reports", options=options) as worker:
        wait_until(lambda: mail(store) == ONE, what=lambda: worker.log)
        Queue("reports", connection=store.client).enqueue("time.sleep", 60)
        wait_until(lambda: mail(store) == Staff(0, 1, 0), what=lambda: worker.log)
        worker.kill(signal.SIGTERM)
        wait_until(lambda: mail(store) == NOBODY, what=lambda: worker.log)  # it finishes this job, and takes no other


def test_a_real_worker_that_leaves_by_itself_is_gone_at_once(
    server: PrivateRedis, store: Store, redis: Redis, steps: Steps
) -> None:
    with Worker(server.url, steps, "mail") as worker:
        wait_until(lambda: mail(store) == ONE, what=lambda: worker.log)
        worker.kill(signal.SIGTERM)
        worker.ends()
        assert mail(store) == NOBODY
        assert redis.hexists(f"rq:worker:{worker.name}", "death")


def test_a_real_worker_that_is_killed_is_missed_once_it_has_been_silent(
    server: PrivateRedis, store: Store, redis: Redis, steps: Steps
) -> None:
    with Worker(server.url, steps, "mail") as worker:
        wait_until(lambda: mail(store) == ONE, what=lambda: worker.log)
        key = f"rq:worker:{worker.name}"
        redis.hset(key, "last_heartbeat", heartbeat(LONG_AGO))
        assert mail(store) == ONE  # for so long an idle worker may be silent
        worker.kill()
        wait_until(lambda: mail(store) == NOBODY)
        redis.hset(key, "last_heartbeat", heartbeat(timedelta(0)))
        assert mail(store) == ONE  # nobody can know yet
