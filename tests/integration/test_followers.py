"""Who follows whom: an index beside the schedules, kept by every step that changes one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from beat.engine.registrar import Sync
from beat.schedule.follows import Follows
from beat.schedule.requires import Requires
from beat.storage.messages import Reply
from beat.storage.operations import Operations, Stretch
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.support.builders import changed, everything, hash_of, put, registration, schedule, score, second

if TYPE_CHECKING:
    from beat.engine.events import Event
    from beat.schedule.schedule import Schedule
    from beat.storage.store import Store

EXTRACT = schedule("extract", timing=Every("1h"))
LOAD = schedule("load", timing=Follows("extract"))


def deploy(store: Store, *schedules: Schedule) -> list[Event]:
    """A beat with this code starts, and registers it; what it says."""
    said: list[Event] = []
    sync = Sync(store, schedules, beat="web-1", emit=said.append)
    sync.announce()
    sync.register()
    store.client.delete("beat:announcements")  # it has gone again
    return said


def followers(store: Store, schedule_id: str = "extract") -> set[str]:
    found: Any = store.client.smembers(store.keys.followers(schedule_id))
    return {each.decode() for each in found}


def state(store: Store, schedule_id: str = "load") -> dict[str, str]:
    return hash_of(store, schedule_id)


# --- registered ------------------------------------------------------------------------------------------------------


def test_a_follower_is_active_without_a_tick_to_come(store: Store) -> None:
    deploy(store, EXTRACT, LOAD)
    found = state(store)
    assert (found["state"], found["follows"]) == ("active", "extract")
    assert not {"next_run", "due_at", "cron", "every"} & found.keys()
    assert score(store, "load") is None
    assert followers(store) == {"load"}
    assert store.repair(["extract", "load"]) == [Reply("SAME")] * 2


def test_what_has_not_changed_is_not_written(store: Store) -> None:
    deploy(store, EXTRACT, LOAD)
    before = everything(store)
    deploy(store, EXTRACT, LOAD)
    assert not {key for key in changed(before, store) if key.startswith(("beat:schedule:", "beat:followers:"))}


def test_the_policies_of_place_are_shown_and_go_with_the_definition(store: Store) -> None:
    placed = schedule(
        "report",
        queues=["a", "b"],
        route="shortest",
        group="reports",
        slow_queue="slow",
        slow_times=3,
        requires=[Requires("extract", within="1h"), "load"],
    )
    deploy(store, EXTRACT, LOAD, placed)
    found = state(store, "report")
    assert {name: found[name] for name in ("queue", "route", "group", "slow", "requires")} == {
        "queue": "a",
        "route": "shortest: a, b",
        "group": "reports",
        "slow": "500 3 60000",
        "requires": "extract within 1h, load",
    }
    deploy(store, EXTRACT, LOAD, schedule("report"))
    assert not {"route", "group", "slow", "requires"} & state(store, "report").keys()


def test_who_follows_another_leaves_the_first(store: Store) -> None:
    deploy(store, EXTRACT, schedule("other"), LOAD)
    deploy(store, EXTRACT, schedule("other"), schedule("load", timing=Follows("other")))
    assert (followers(store), followers(store, "other")) == (set(), {"load"})


def test_an_expression_in_the_place_of_follows_begins_with_its_next_tick(store: Store) -> None:
    deploy(store, EXTRACT, LOAD)
    deploy(store, EXTRACT, schedule("load", timing=Cron("0 9 * * *")))
    found = state(store)
    assert (found["state"], found["cron"]) == ("active", "0 9 * * *")
    assert found["next_run"] == found["due_at"]
    assert "follows" not in found
    assert score(store, "load") is not None
    assert followers(store) == set()


def test_follows_in_the_place_of_an_expression_takes_the_tick_to_come_away(store: Store) -> None:
    deploy(store, EXTRACT, schedule("load", timing=Every("1h")))
    assert score(store, "load") is not None
    deploy(store, EXTRACT, LOAD)
    found = state(store)
    assert not {"next_run", "due_at", "every"} & found.keys()
    assert (found["state"], score(store, "load"), followers(store)) == ("active", None, {"load"})


def test_a_tick_that_is_due_is_decided_before_a_schedule_only_follows(store: Store) -> None:
    at = second(store) - 5
    put(store, "load", at)
    deploy(store, EXTRACT, LOAD)
    found = state(store)
    assert (found["state"], found["follows"]) == ("active", "extract")
    assert score(store, "load") == at * 1000
    assert followers(store) == {"load"}


@pytest.mark.parametrize("kind", ["string", "hash"])
def test_a_key_of_another_type_stops_nobody_and_is_made_anew(kind: str, store: Store) -> None:
    if kind == "string":
        store.client.set("beat:followers:extract", "x")
    else:
        store.client.hset("beat:followers:extract", "x", "y")
    deploy(store, EXTRACT, LOAD)
    assert state(store)["follows"] == "extract"
    assert store.repair(["extract", "load"]) == [Reply("SAME"), Reply("INDEXED")]
    assert followers(store) == {"load"}


def line(store: Store, slot: str) -> dict[str, float]:
    found: Any = store.client.zrange(store.keys.waiting(slot), 0, -1, withscores=True)
    return {member.decode(): at for member, at in found}


# --- gone ------------------------------------------------------------------------------------------------------------


def test_what_is_removed_follows_nobody(store: Store) -> None:
    deploy(store, EXTRACT, LOAD)
    store.client.zadd("beat:slow:load", {"job": 1})
    store.client.zadd("beat:waiting:load", {"load t by": 1})
    store.client.hset("beat:schedule:load", "group", "reports")
    store.client.zadd("beat:waiting:@reports", {"load t by": 1, "other t by": 2})
    assert Operations(store).remove([("load", "")], by="ann") == [Reply("OK")]
    assert followers(store) == set()
    assert not store.client.exists("beat:slow:load", "beat:waiting:load")
    assert line(store, "@reports") == {"other t by": 2}


def test_who_follows_what_is_removed_follows_it_again_when_it_is_back(store: Store) -> None:
    deploy(store, EXTRACT, LOAD)
    assert Operations(store).remove([("extract", "")], by="ann") == [Reply("OK")]
    assert store.repair(["load"]) == [Reply("SAME")]
    deploy(store, EXTRACT, LOAD)
    assert followers(store) == {"load"}


def test_what_is_retired_follows_nobody_until_its_code_is_back(store: Store) -> None:
    deploy(store, EXTRACT, LOAD)
    retire = [Stretch("load")]
    assert Operations(store).retire(retire, beat="web-1", app="default", retire_after=0) == [Reply("OK")]
    assert (state(store)["state"], followers(store)) == ("retired", set())
    assert store.repair(["extract", "load"]) == [Reply("SAME")] * 2
    deploy(store, EXTRACT, LOAD)
    assert (state(store)["state"], followers(store)) == ("active", {"load"})


# --- repaired --------------------------------------------------------------------------------------------------------


def test_an_index_that_was_lost_is_made_anew(store: Store) -> None:
    deploy(store, EXTRACT, LOAD)
    store.client.delete("beat:followers:extract")
    assert store.repair(["extract", "load"]) == [Reply("SAME"), Reply("INDEXED")]
    assert followers(store) == {"load"}
    assert store.repair(["extract", "load"]) == [Reply("SAME")] * 2


@pytest.mark.parametrize("stranger", ["nobody", "extract", "text"])
def test_who_does_not_follow_is_taken_out(stranger: str, store: Store) -> None:
    deploy(store, EXTRACT, LOAD)
    store.client.set("beat:schedule:text", "x")
    store.client.sadd("beat:followers:extract", stranger)
    assert store.repair(["extract"]) == [Reply("INDEXED")]
    assert followers(store) == {"load"}


def test_a_follower_without_a_tick_is_whole_and_any_other_is_not(store: Store) -> None:
    store.register([registration("load", follows="extract", fields={"follows": "extract"})], beat="tests")
    store.register([registration("lost")], beat="tests")
    assert store.repair(["load", "lost"]) == [Reply("SAME"), Reply("BROKEN", "next_run is missing")]


def test_a_follower_that_was_broken_goes_on_when_it_can_be_read(store: Store) -> None:
    deploy(store, EXTRACT, LOAD)
    store.client.hset("beat:schedule:load", "run_count", "many")
    assert [reply.code for reply in store.repair(["load"])] == ["BROKEN"]
    store.client.hset("beat:schedule:load", "run_count", "3")
    assert store.repair(["load"]) == [Reply("MENDED")]
    assert (state(store)["state"], score(store, "load")) == ("active", None)


@pytest.mark.parametrize("paused", ["paused", "disabled"])
def test_who_does_not_run_stays_among_the_followers(paused: str, store: Store) -> None:
    deploy(store, EXTRACT, LOAD)
    store.client.hset("beat:schedule:load", "state", paused)
    store.client.delete("beat:followers:extract")
    store.repair(["load"])
    assert followers(store) == {"load"}
