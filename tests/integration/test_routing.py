"""Routes on Redis: what is remembered of them is written with the tick, so that beats take turns with one another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.timing import clock
from tests.support.builders import changed, claim, everything
from tests.support.many_schedules import Town, following, periodic

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

QUEUES = ("x", "y", "z")


def town(store: Store, route: Any, *others: Any, **options: Any) -> Town:
    return Town(store, periodic("a", queues=QUEUES, route=route, **options), *others)


def ways(place: Town) -> list[str]:
    """Where the ticks went, as the ledger says; each job is there, and says the same."""
    lines = place.lines("a", "enqueued")
    for line in lines:
        assert place.client.hget(f"rq:job:{line['job']}", "origin").decode() == line["queue"]
        assert line["job"] in place.queued(line["queue"])
        record = json.loads(place.client.hget("beat:records", line["job"]))
        assert record["queue"] == f"rq:queue:{line['queue']}"
    return [line["queue"] for line in lines]


def uses(place: Town) -> Any:
    return json.loads(place.state("a").get("uses", "[]"))


def works_at(place: Town, queue: str, state: str = "idle") -> None:
    """As a worker of RQ says that it is there."""
    key = f"rq:worker:{queue}"
    place.client.sadd(f"rq:workers:{queue}", key)
    place.client.hset(
        key,
        mapping={"state": state, "queues": queue, "birth": "2026", "last_heartbeat": clock.text(place.store.time())},
    )
    place.client.expire(key, 100)


def test_round_robin_takes_turns_over_chains_and_beats(store: Store) -> None:
    place = town(store, "round_robin")
    place.send(place.chain("a", 4))
    place.fire("a")
    place.send(place.chain("a", 3))
    assert ways(place) == list("xyzxyzxy")
    assert uses(place) == [["z", 2], ["x", 3], ["y", 3]]


def test_what_is_remembered_is_written_with_the_tick_or_not_at_all(store: Store) -> None:
    place = town(store, "round_robin", overlap="skip")
    place.fire("a")
    before = place.state("a")["uses"]
    assert place.fire("a").code == "SKIPPED"
    assert place.state("a")["uses"] == before
    items = place.chain("a")
    place.succeed(place.job("a"))
    place.client.set("rq:queue:y", "garbage", px=60_000)
    assert [reply.code for reply in place.send(items)] == ["BADTYPE"]
    assert place.state("a")["uses"] == before


def test_a_lost_reply_sent_again_moves_no_turn(store: Store) -> None:
    place = town(store, "round_robin")
    items = place.chain("a")
    place.send(items)
    claim(store)
    before = everything(store)
    place.send(items)
    assert changed(before, store) <= {"beat:due", "beat:lock:a"}
    assert uses(place) == [["x", 1]]


def test_who_waits_finds_its_way_when_it_is_let_in(store: Store) -> None:
    place = town(store, "round_robin", overlap="wait", max_waiting=3)
    assert place.codes("a", "a", "a") == ["OK", "WAITS", "WAITS"]
    for _ in range(2):
        place.succeed(*place.running("a"))
        place.turn()
    assert [line["queue"] for line in place.lines("a", "enqueued")] == ["x", "y", "z"]


def test_a_run_that_somebody_asks_for_takes_its_turn(store: Store, server: PrivateRedis) -> None:
    place = town(store, "round_robin")
    place.fire("a")
    assert Client(server.url).trigger("a").job_id in place.queued("y")
    place.fire("a")
    assert ways(place) == ["x", "y", "z"]


def test_successes_that_are_followed_take_turns(store: Store) -> None:
    place = Town(store, periodic("p"), following("a", "p", queues=QUEUES, route="round_robin"))
    for n in range(3):
        place.fire("p")
        place.succeed(place.job("p", n))
    place.turn()
    assert ways(place) == ["x", "y", "z"]


def test_other_routes_remember_nothing(store: Store) -> None:
    for route in ("first", "last", "random", "hash", "shortest", "failover", "first_idle"):
        place = town(store, route)
        place.fire("a")
        assert "uses" not in place.state("a"), route


def test_least_used_and_least_recent_are_remembered_over_deploys(store: Store) -> None:
    place = town(store, "least_used")
    place.send(place.chain("a", 2))
    place.declare(periodic("a", queues=("y", "z", "new"), route="least_recent"))
    place.send(place.chain("a", 3))
    assert ways(place) == ["x", "y", "z", "new", "y"]
    assert uses(place) == [["z", 1], ["new", 1], ["y", 2]]


def test_the_line_says_what_was_seen(store: Store) -> None:
    place = town(store, "shortest")
    place.client.rpush("rq:queue:x", "one")
    place.client.rpush("rq:queue:y", "one", "two")
    place.send(place.chain("a", 2))
    assert ways(place) == ["z", "x"]
    assert [line["why"] for line in place.lines("a", "enqueued")] == ["shortest: 0 in line", "shortest: 1 in line"]


def test_failover_goes_where_somebody_works_and_comes_back(store: Store) -> None:
    place = town(store, "failover")
    works_at(place, "y")
    place.fire("a")
    works_at(place, "x", "busy")
    place.fire("a")
    assert ways(place) == ["y", "x"]
    assert place.lines("a", "enqueued")[0]["why"] == "failover: nobody works at x"
    assert place.lines("a", "enqueued")[1]["why"] == "failover"


def test_first_idle_goes_where_somebody_has_nothing_to_do(store: Store) -> None:
    place = town(store, "first_idle")
    works_at(place, "x", "busy")
    works_at(place, "z")
    place.fire("a")
    assert ways(place) == ["z"]


@pytest.mark.parametrize("garbled", ["garbage", "[[1]]", '[["x",1e999]]', '[["y",5],["gone",7]]', "[" * 5000])
def test_what_somebody_wrote_by_hand_keeps_no_tick_from_its_way(store: Store, garbled: str) -> None:
    place = town(store, "round_robin")
    place.client.hset("beat:schedule:a", "uses", garbled)
    assert place.codes("a", "a") == ["OK", "OK"]
    assert len(set(ways(place))) == 2
    assert {queue for queue, _ in uses(place)} <= set(QUEUES)


def test_one_queue_that_is_none_keeps_only_those_ticks_that_go_there(store: Store) -> None:
    place = town(store, "hash", periodic("b", queues=QUEUES, route="last"))
    place.client.set("rq:queue:z", "garbage", px=60_000)
    [item] = place.chain("a")
    assert place.fire("b").code == "BADTYPE"
    assert place.fire("a").code == ("BADTYPE" if item.queue.endswith(":z") else "OK")
