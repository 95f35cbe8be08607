"""The arguments of runs as the client reads them, and a request that is made twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from beat import Client
from beat.errors import BadOption, Conflict, UnknownSchedule
from beat.timing.interval import Every
from tests.support.builders import schedule
from tests.support.job_functions import Owner
from tests.support.lines import MINUTE, NINE, Ledger
from tests.web.making import deploy

if TYPE_CHECKING:
    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

HOURLY = Every("1h")


@pytest.fixture
def client(server: PrivateRedis, store: Store) -> Client:  # noqa: ARG001 (it empties the server)
    return Client(server.url, by="ann")


@pytest.mark.parametrize("serializer", ["pickle", "json"])
def test_arguments_are_those_of_the_schedule_or_of_one_run(client: Client, store: Store, serializer: str) -> None:
    deploy(store, schedule(timing=HOURLY, args=[1], kwargs={"day": "x"}, serializer=serializer))
    job = client.trigger("report", kwargs={"copies": 2}).job_id
    own, run = client.arguments("report"), client.arguments("report", job)
    assert own
    assert run
    assert (list(own.args), own.kwargs, own.problem) == ([1], {"day": "x"}, "")
    assert (list(run.args), run.kwargs) == ([1], {"day": "x", "copies": 2})


def test_arguments_of_a_job_that_is_gone_are_none(client: Client, store: Store, redis: Redis) -> None:
    deploy(store, schedule(timing=HOURLY))
    job = client.trigger("report").job_id
    redis.delete(f"rq:job:{job}")
    assert client.arguments("report", job) is None
    with pytest.raises(UnknownSchedule):
        client.arguments("repord")


def test_arguments_of_classes_are_not_read_and_large_ones_neither(client: Client, store: Store) -> None:
    deploy(store, schedule("a", timing=HOURLY, args=(Owner("ann"),)))
    found = client.arguments("a")
    assert found
    assert found.problem == "they are of classes that only the application can read"
    noise = "".join(chr(33 + n * n % 7919 % 90) for n in range(200_000))
    store.client.hset(store.keys.template("a"), "data", noise.encode())
    found = client.arguments("a")
    assert found
    assert "no more than 65,536 are read" in found.problem


def test_the_same_request_is_the_same_run(client: Client, store: Store, redis: Redis) -> None:
    deploy(store, schedule(timing=HOURLY))
    runs = [client.trigger("report", request="abcdefgh").job_id for _ in range(3)]
    assert set(runs) == {"beat_report_mabcdefgh"}
    assert redis.llen("rq:queue:default") == 1
    assert client.get("report").run_count == 1


@pytest.mark.parametrize("request_", ["", "short", "x" * 41, "a:b:c:d:e", "ünïcödé1", "abcdefgh\n"])
def test_a_request_that_is_no_word_is_refused(client: Client, store: Store, request_: str) -> None:
    deploy(store, schedule(timing=HOURLY))
    with pytest.raises(BadOption, match="8 to 40 ASCII letters and digits"):
        client.trigger("report", request=request_)


def test_a_run_of_another_version_is_refused(client: Client, store: Store, redis: Redis) -> None:
    deploy(store, schedule(timing=HOURLY))
    before = client.get("report").version
    client.pause("report")
    with pytest.raises(Conflict, match="another client has changed it"):
        client.trigger("report", expected_version=before)
    assert redis.llen("rq:queue:default") == 0


def test_of_a_long_ledger_no_more_is_read_than_is_asked_for(client: Client, redis: Redis) -> None:
    book = Ledger().registered(NINE - MINUTE, NINE)
    for n in range(50):
        book.fired(NINE + n * MINUTE).ended(NINE + n * MINUTE)
    book.keep(redis)
    assert client.show("report").statistics.runs == 50
    found = client.show("report", lines=10)
    assert found.statistics.runs == len(found.lines) == 5
    for lines in (0, -1, True, "5"):
        with pytest.raises(BadOption, match="must be a whole number from 1 on"):
            client.show("report", lines=lines)  # type: ignore[arg-type]
