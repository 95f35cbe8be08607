"""A tick that is broadcast: a job in each of its queues or in none, one verdict, one outcome when all have ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from rq.job import Job
from rq.serializers import DefaultSerializer, JSONSerializer

from beat import Client
from beat.storage.messages import Reply
from tests.support.builders import TOKEN, changed, claim, everything, shows, text
from tests.support.many_schedules import Town, periodic

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

OK = Reply("OK")
QUEUES = ("x", "y", "z")


def town(store: Store, *others: Any, groups: dict[str, str] | None = None, **options: Any) -> Town:
    """A schedule `all` that sends a job to each of three queues."""
    return Town(store, periodic("all", queues=QUEUES, route="broadcast", **options), *others, **groups or {})


def parts(place: Town, number: int = 0) -> list[str]:
    return [f"{place.job('all', number)}_s{n}" for n in range(3)]


# --- all or none -----------------------------------------------------------------------------------------------------


def test_a_tick_becomes_a_job_in_each_queue_and_has_one_verdict(store: Store) -> None:
    place = town(store)
    assert place.fire("all") == OK
    assert [place.queued(queue) for queue in QUEUES] == [[each] for each in parts(place)]
    assert [place.client.hget(f"rq:job:{each}", "origin").decode() for each in parts(place)] == list(QUEUES)
    assert {each.decode() for each in place.client.smembers("rq:queues")} == {f"rq:queue:{each}" for each in QUEUES}
    [line] = place.lines("all", "enqueued", "skipped")
    assert (line["job"], line["shards"], line["why"], line["n"]) == (place.job("all"), 3, "broadcast", 1)
    assert "queue" not in line
    assert sorted(each.decode() for each in place.client.zrange("beat:open", 0, -1)) == parts(place)
    records = [json.loads(each) for each in place.client.hmget("beat:records", parts(place))]
    assert [(each["of"], each["shard"], each["shards"]) for each in records] == [
        (place.job("all"), n, 3) for n in range(3)
    ]
    assert [each["queue"] for each in records] == [f"rq:queue:{each}" for each in QUEUES]
    state = place.state("all")
    assert (state["run_count"], state["last_job"]) == ("1", place.job("all"))


@pytest.mark.parametrize("serializer", ["pickle", "json"])
@pytest.mark.parametrize("meta", [{}, {"mine": [1, "two"]}], ids=["bare", "meta"])
def test_rq_reads_which_part_each_job_is(store: Store, serializer: Any, meta: dict[str, Any]) -> None:
    place = town(store, serializer=serializer, meta=meta)
    place.fire("all")
    reader = {"pickle": DefaultSerializer, "json": JSONSerializer}[serializer]
    jobs = [Job.fetch(each, connection=place.client, serializer=reader) for each in parts(place)]
    told = [job.meta.pop("beat") for job in jobs]
    assert [job.meta for job in jobs] == [meta] * 3
    assert [(each["shard"], each["shards"]) for each in told] == [(0, 3), (1, 3), (2, 3)]
    assert {each["scheduled_for"] for each in told} == {text(place.start)}
    assert [job.origin for job in jobs] == list(QUEUES)


def test_of_a_run_that_is_replaced_who_has_begun_is_told_once_to_stop(store: Store) -> None:
    place = town(store, overlap="replace")
    place.fire("all")
    place.fire("all")
    place.client.lrem("rq:queue:x", 1, parts(place)[0])
    place.client.hset(f"rq:job:{parts(place)[0]}", mapping={"status": "started", "worker_name": "someone"})
    with place.client.pubsub(ignore_subscribe_messages=True) as heard:
        heard.subscribe("rq:pubsub:someone")
        place.attendant.turn()
        said = [message for _ in range(5) if (message := heard.get_message(timeout=0.5))]
    assert [place.queued(queue) for queue in QUEUES] == [[], [], []]
    assert [json.loads(each["data"]) for each in said] == [{"command": "stop-job", "job_id": parts(place)[0]}]


WRONG = ["rq:queue:x", "rq:queue:z", "rq:queues", "{job}_s0", "{job}_s2"]


@pytest.mark.parametrize("wrong", WRONG)
@shows("fire", "BADTYPE")
def test_when_one_part_cannot_be_written_none_is(store: Store, wrong: str) -> None:
    place = town(store)
    key = wrong.replace("{job}", f"rq:job:{place.job('all')}")
    place.client.set(key, "garbage", px=60_000)
    claim(store)
    before = everything(store)
    reply = place.fire("all")
    assert reply.code == "BADTYPE"
    assert key in reply.words
    assert changed(before, store) == {"beat:schedule:all", "beat:due", "beat:lock:all"}
    assert place.state("all")["next_run"] == text(place.start)
    place.client.delete(key)
    place.put("all", place.start)
    assert place.fire("all") == OK
    assert [place.queued(queue) for queue in QUEUES] == [[each] for each in parts(place)]


def test_metas_that_are_not_as_many_as_queues_are_refused(store: Store) -> None:
    place = town(store)
    [item] = place.chain("all")
    claim(store)
    before = everything(store)
    for run in (b"", b"1 1\nab", item.run.replace(b"\n", b" ", 1)):
        assert place.store.fire([item._replace(run=run)], token=TOKEN).replies == (Reply("BADARG"),)
        assert "rq:queues" not in changed(before, store)
        place.put("all", place.start)
        claim(store)


@shows("fire", "STALE")
def test_a_reply_that_was_lost_and_sent_again_makes_no_second_set(store: Store) -> None:
    place = town(store)
    items = place.chain("all")
    place.send(items)
    before = everything(store)
    assert store.fire(items, token=TOKEN).replies == (Reply("STALE", place.job("all")),)
    assert changed(before, store) == set()


def test_a_chain_of_ticks_is_broadcast_tick_by_tick(store: Store) -> None:
    place = town(store)
    assert [reply.code for reply in place.send(place.chain("all", 3))] == ["OK"] * 3
    assert place.queued("y") == [parts(place, n)[1] for n in range(3)]


def test_a_run_that_somebody_asks_for_goes_to_all_and_once(store: Store, server: PrivateRedis) -> None:
    place = town(store)
    job = Client(server.url).trigger("all").job_id
    assert [place.queued(queue) for queue in QUEUES] == [[f"{job}_s{n}"] for n in range(3)]
    place.succeed(*(f"{job}_s{n}" for n in range(3)))
    assert place.state("all")["success_count"] == "1"


# --- what became of it -----------------------------------------------------------------------------------------------


def counts(place: Town) -> tuple[int, ...]:
    """Successes, failures, stopped, failures in a row."""
    state = place.state("all")
    names = ("success_count", "failure_count", "stopped_count", "consecutive_failures")
    return tuple(int(state.get(name, "0")) for name in names)


def test_a_tick_has_succeeded_when_all_parts_have(store: Store) -> None:
    place = town(store)
    place.fire("all")
    for each in parts(place)[:2]:
        place.succeed(each)
        assert (counts(place), place.state("all").get("last_success")) == ((0, 0, 0, 0), None)
    place.succeed(parts(place)[2])
    assert counts(place) == (1, 0, 0, 0)
    assert place.state("all")["last_success"]
    lines = place.lines("all", "succeeded")
    assert [(line["of"], line["shard"], line["job"]) for line in lines] == [
        (place.job("all"), n, each) for n, each in enumerate(parts(place))
    ]
    assert not place.client.exists(f"beat:shards:{place.job('all')}")


@pytest.mark.parametrize("bad", [0, 2], ids=["first", "last"])
def test_a_tick_has_failed_when_all_have_ended_and_one_has_and_says_why(store: Store, bad: int) -> None:
    place = town(store)
    place.fire("all")
    order = [parts(place)[bad], *(each for n, each in enumerate(parts(place)) if n != bad)]
    if bad:
        order.reverse()
    for each in order:
        assert counts(place) == (0, 0, 0, 0)
        place.end(each, status="failed" if each == parts(place)[bad] else "finished")
        place.close()
    assert counts(place) == (0, 1, 0, 1)
    assert place.state("all")["last_error"] == "RQ kept no word about it"
    assert "last_success" not in place.state("all")


@pytest.mark.parametrize(
    ("ends", "counted"),
    [
        (("finished", "stopped", "finished"), (0, 0, 1, 0)),
        (("failed", "stopped", "finished"), (0, 1, 0, 1)),
        (("failed", "failed", "failed"), (0, 1, 0, 1)),
        (("stopped", "canceled", "stopped"), (0, 0, 1, 0)),
    ],
    ids=str,
)
def test_the_worst_of_its_parts_is_that_of_the_tick(store: Store, ends: Any, counted: Any) -> None:
    place = town(store)
    place.fire("all")
    for each, status in zip(parts(place), ends, strict=True):
        place.end(each, status=status)
    place.close()
    assert counts(place) == counted


def test_a_part_that_is_lost_loses_the_tick_and_brings_it_back_when_it_is_found(store: Store) -> None:
    place = town(store)
    place.fire("all")
    place.succeed(*parts(place)[:2])
    place.lose(parts(place)[2])
    assert place.lines("all", "lost")
    assert counts(place) == (0, 1, 0, 1)
    place.end(parts(place)[2])
    place.look_again()
    assert counts(place) == (1, 0, 0, 0)
    assert not place.client.exists(f"beat:shards:{place.job('all')}")


def test_a_part_that_is_run_again_opens_the_tick_and_counts_once(store: Store) -> None:
    place = town(store)
    place.fire("all")
    place.succeed(*parts(place)[:2])
    place.end(parts(place)[2], status="failed")
    place.close()
    assert counts(place) == (0, 1, 0, 1)
    place.client.hset(f"rq:job:{parts(place)[2]}", "status", "queued")
    place.look_again()
    assert (counts(place), len(place.lines("all", "reopened"))) == ((0, 0, 0, 0), 1)
    place.succeed(parts(place)[2])
    assert counts(place) == (1, 0, 0, 0)


def test_a_part_that_is_run_again_mends_nothing_while_another_has_failed(store: Store) -> None:
    place = town(store)
    place.fire("all")
    for each in parts(place):
        place.end(each, status="failed")
    place.close()
    for n, each in enumerate(parts(place)):
        place.client.hset(f"rq:job:{each}", "status", "queued")
        place.look_again()
        assert counts(place) == (0, 0, 0, 0)
        place.succeed(each)
        assert counts(place) == ((1, 0, 0, 0) if n == 2 else (0, 1, 0, 1))


def test_a_part_that_rq_tries_again_has_not_ended(store: Store) -> None:
    place = town(store, retry=1)
    place.fire("all")
    place.succeed(*parts(place)[:2])
    place.client.hset(f"rq:job:{parts(place)[2]}", mapping={"status": "scheduled", "retries_left": 0})
    place.close()
    assert counts(place) == (0, 0, 0, 0)
    place.succeed(parts(place)[2])
    assert counts(place) == (1, 0, 0, 0)
    assert place.lines("all", "succeeded")[-1]["attempts"] == 2


def test_ticks_are_counted_apart(store: Store) -> None:
    place = town(store)
    place.send(place.chain("all", 2))
    place.succeed(parts(place)[0], parts(place, 1)[1], parts(place, 1)[2], parts(place)[2])
    assert counts(place) == (0, 0, 0, 0)
    place.succeed(parts(place, 1)[0])
    assert counts(place) == (1, 0, 0, 0)
    place.end(parts(place)[1], status="failed")
    place.close()
    assert counts(place) == (1, 1, 0, 1)


@shows("close", "BADTYPE")
def test_parts_that_cannot_be_gathered_are_closed_when_they_can(store: Store) -> None:
    place = town(store)
    place.fire("all")
    key = f"beat:shards:{place.job('all')}"
    place.client.set(key, "garbage", px=60_000)
    place.succeed(*parts(place))
    assert (counts(place), place.lines("all", "succeeded")) == ((0, 0, 0, 0), [])
    place.client.delete(key)
    place.close()
    assert counts(place) == (1, 0, 0, 0)


# --- room ------------------------------------------------------------------------------------------------------------


def test_where_runs_may_not_overlap_every_part_must_have_ended(store: Store) -> None:
    place = town(store, overlap="skip")
    assert place.codes("all", "all") == ["OK", "SKIPPED"]
    place.succeed(*parts(place)[:2])
    assert place.fire("all").code == "SKIPPED"
    place.succeed(parts(place)[2])
    assert place.fire("all") == OK


def test_so_many_ticks_may_go_on_at_once_not_parts(store: Store) -> None:
    place = town(store, overlap="wait", max_running=2)
    assert place.codes("all", "all", "all") == ["OK", "OK", "WAITS"]
    place.succeed(*parts(place))
    place.turn()
    assert place.running("all") == [*parts(place, 1), *parts(place, 2)]


def test_the_newest_replaces_every_part(store: Store) -> None:
    place = town(store, overlap="replace")
    place.codes("all", "all")
    place.turn()
    assert [place.queued(queue) for queue in QUEUES] == [[each] for each in parts(place, 1)]
    assert counts(place) == (0, 0, 1, 0)


def test_in_a_group_each_part_needs_room_and_all_are_let_in_together(store: Store) -> None:
    place = town(store, periodic("a", group="g"), groups={"g": "wait 3"}, group="g")
    assert place.codes("a", "all") == ["OK", "WAITS"]
    assert place.waiting("@g") == ["all 0"]
    place.turn()
    assert [place.queued(queue) for queue in QUEUES] == [[]] * 3
    place.succeed(place.job("a"))
    place.turn()
    assert place.running("@g") == place.running("@g") == parts(place)
    place.succeed(*parts(place))
    assert (place.running("@g"), counts(place)) == ([], (1, 0, 0, 0))


def test_where_the_group_has_less_room_than_it_has_parts_it_goes_when_nobody_else_does(store: Store) -> None:
    place = town(store, periodic("a", group="g"), groups={"g": "wait 2"}, group="g")
    assert place.codes("a", "all") == ["OK", "WAITS"]
    place.succeed(place.job("a"))
    place.turn()
    assert place.running("@g") == parts(place)
    assert place.fire("a").code == "WAITS"
