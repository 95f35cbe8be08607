"""What schedules from data say about others must be true in Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from beat import Client, Requires
from beat.client.add import Wanted
from beat.config.groups import Group
from beat.engine.registrar import Sync
from beat.errors import Refused
from beat.schedule.follows import Follows
from tests.support.builders import hash_of, schedule

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.schedule.schedule import Schedule
    from beat.storage.store import Store

FUNC = "tests.support.job_functions.anything"


@pytest.fixture
def client(server: PrivateRedis, store: Store) -> Client:
    deploy(store, schedule("extract"))
    return Client(server.url, by="ann")


def deploy(store: Store, *schedules: Schedule) -> None:
    sync = Sync(store, schedules, beat="web-1", emit=lambda _: None, groups=[Group("reports", 2)], functions=[FUNC])
    sync.announce()
    sync.register()


def add(client: Client, schedule_id: str, /, **given: Any) -> str:
    """What `add` says when it refuses; nothing when it adds."""
    rule: Any = {} if {"follows", "cron", "every"} & given.keys() else {"every": "1h"}
    try:
        client.add(schedule_id, func=FUNC, **rule, **given)
    except Refused as e:
        return str(e)
    return ""


def wanted(schedule_id: str, **given: Any) -> Wanted:
    options: Any = {**({} if "follows" in given else {"every": "1h"}), **given}
    return Wanted(schedule_id, FUNC, None, options)


def test_all_that_code_can_say_can_be_added(client: Client, store: Store) -> None:
    assert not add(client, "load", follows="extract", group="reports", overlap="wait")
    assert not add(client, "report", requires=["load", Requires("extract", within="1h")])
    assert not add(client, "spread", queues=["a", "b"], route="broadcast", group="reports")
    assert not add(client, "heavy", slow_queue="slow", slow_after="1s")
    assert store.client.smembers("beat:followers:extract") == {b"load"}
    assert hash_of(store, "heavy")["slow"] == "1000 10 60000"
    assert client.get("load").state == "active"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"follows": "extrct"},
            "schedule 'a' follows 'extrct', and there is no such schedule. Did you mean 'extract'?",
        ),
        ({"requires": "load"}, "schedule 'a' requires 'load', and there is no such schedule. Add that one first."),
        ({"group": "report"}, "schedule 'a' is of the group 'report', which has no limit"),
        (
            {"group": "reports", "queues": ["a", "b", "c"], "route": "broadcast"},
            "schedule 'a' sends every tick to 3 queues, and its group 'reports' has room for 2",
        ),
    ],
    ids=["follows", "requires", "group", "room"],
)
def test_what_is_not_true_in_redis_is_refused(given: dict[str, Any], said: str, client: Client, store: Store) -> None:
    assert said in add(client, "a", **given)
    assert not store.client.exists("beat:schedule:a")


def test_a_circle_through_what_is_there_is_refused(client: Client, store: Store) -> None:
    assert not add(client, "a")
    assert not add(client, "b", requires=["extract", "a"])
    assert not add(client, "c", follows="b")
    said = add(client, "a", requires=Requires("c", within="1h"), replace=True)
    assert said.startswith("a requires c, c follows b, b requires a: each waits for the other")
    assert "requires" not in hash_of(store, "a")
    assert not add(client, "a", requires="extract", replace=True)


def test_a_circle_of_others_is_not_ones_own(client: Client, store: Store) -> None:
    made = [schedule("x", timing=Follows("y")), schedule("y", timing=Follows("x"))]
    deploy(store, *made)
    assert not add(client, "z", follows="x")


def test_several_are_added_in_the_order_in_which_they_need_each_other(client: Client, store: Store) -> None:
    chain = [wanted(f"s{n}", follows=f"s{n - 1}") for n in range(30, 0, -1)]
    for dry_run in (True, False):
        done = list(client.add_all([*chain, wanted("s0")], dry_run=dry_run))
        assert {each.result for each in done} == {"added"}
        assert [each.id for each in done] == [f"s{n}" for n in range(30, -1, -1)]
    assert store.client.smembers("beat:followers:s29") == {b"s30"}


def test_what_needs_what_was_refused_is_refused(client: Client) -> None:
    hidden = Wanted("hidden", "app.nobody.exposed", None, {"every": "1h"})
    done = {each.id: each for each in client.add_all([wanted("child", follows="hidden"), hidden])}
    assert {each: answer.result for each, answer in done.items()} == {"child": "refused", "hidden": "refused"}
    assert "there is no such schedule" in str(done["child"].error)


def test_a_circle_of_those_that_are_added_is_refused(client: Client) -> None:
    done = list(client.add_all([wanted("a", follows="b"), wanted("b", requires="a"), wanted("c", requires="extract")]))
    assert [each.result for each in done] == ["refused", "refused", "added"]
    assert str(done[0].error).startswith("a follows b, b requires a: each waits for the other")


def test_garbled_words_of_others_are_passed_over(client: Client, store: Store) -> None:
    store.client.hset("beat:schedule:extract", "requires", "x y z, , \udcff".encode("utf-8", "surrogateescape"))
    assert not add(client, "a", requires="extract")
