"""What the client says about who works at the queues of a schedule, and at the queue in which a run waits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.client.workers import Queue
from beat.errors import NoRedis
from beat.timing import clock
from tests.storage.test_queue_workers import hire
from tests.support.lines import MINUTE, NINE, Ledger

if TYPE_CHECKING:
    from redis import Redis

    from beat.dev.embedded import PrivateRedis

SINCE = clock.read("2026-11-16T08:00:00Z")


@pytest.fixture
def client(redis: Redis, server: PrivateRedis) -> Client:  # noqa: ARG001 (it empties the server)
    return Client(server.url)


def fired(redis: Redis, status: str = "queued", queue: str = "mail") -> None:
    """A tick at nine, whose job is on its way."""
    book = Ledger().registered(NINE - MINUTE, NINE).fired(NINE)
    book.keep(redis)
    definition = json.loads(str(redis.hget("beat:schedule:report", "definition")))
    redis.hset("beat:schedule:report", "definition", json.dumps({**definition, "queue": "mail"}))
    redis.hset(f"rq:job:{book.job(NINE)}", mapping={"status": status, "origin": queue})


def unread(redis: Redis, queue: str) -> None:
    redis.hset("beat:unread", queue, f"{clock.text(SINCE)} {clock.text(NINE)}")


def test_queues_are_told_with_their_staff_in_the_order_asked(client: Client, redis: Redis) -> None:
    hire(redis, "w1", "mail")
    redis.rpush("rq:queue:slow", "a", "b")
    unread(redis, "slow")
    assert client.staff(["slow", "mail", "slow"]) == [Queue("slow", 2, 0, 0, SINCE), Queue("mail", 0, 1, 1, None)]
    assert client.staff([]) == []


def test_without_a_redis_who_works_cannot_be_asked(tmp_path: Any) -> None:
    with pytest.raises(NoRedis):
        Client(f"unix://{tmp_path}/none.sock").staff(["mail"])


def test_a_schedule_is_shown_with_the_staff_of_its_queue(client: Client, redis: Redis) -> None:
    fired(redis)
    assert client.show("report").queues == (Queue("mail", 0, 0, 0, None),)
    hire(redis, "w1", "mail", state="busy")
    assert client.show("report").queues == (Queue("mail", 0, 1, 0, None),)


@pytest.mark.parametrize(("definition", "names"), [('{"queue": "mail"}', ["mail"]), ('{"queue": 7}', []), ("x", [])])
def test_of_a_definition_that_cannot_be_read_the_queue_is_what_it_says(
    definition: str, names: list[str], client: Client, redis: Redis
) -> None:
    fired(redis)
    redis.hset("beat:schedule:report", "definition", definition)
    assert [queue.name for queue in client.show("report").queues] == names


def test_a_run_that_waits_where_nobody_works_is_told_with_the_queue(client: Client, redis: Redis) -> None:
    fired(redis, queue="slow")  # where it is, and not where the schedule puts its jobs by now
    hire(redis, "w1", "mail")
    unread(redis, "slow")
    assert client.why("report", NINE).unread == (Queue("slow", 0, 0, 0, SINCE),)


@pytest.mark.parametrize("status", ["started", "finished", "scheduled"])
def test_of_a_run_that_does_not_wait_in_a_queue_nothing_is_said(status: str, client: Client, redis: Redis) -> None:
    fired(redis, status)
    assert client.why("report", NINE).unread == ()


def test_of_a_run_that_a_worker_will_take_nothing_is_said(client: Client, redis: Redis) -> None:
    fired(redis)
    hire(redis, "w1", "mail", state="busy")
    assert client.why("report", NINE).unread == ()
