"""Renaming: one script moves all that is known of a schedule to another id, and back; its old ids say where it is."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.errors import UnknownSchedule
from beat.every import Every
from beat.operations import Operations
from beat.protocol import Closing, Reply
from beat.runs import Runs
from beat.slots import Slots
from tests.redis.making import (
    TOKEN,
    changed,
    claim,
    everything,
    hash_of,
    put,
    put_and_claim,
    registration,
    score,
    second,
    shows,
    text,
    verdict,
)  # fmt: skip
from tests.redis.versions import Code, schedule

if TYPE_CHECKING:
    from beat.embedded import PrivateRedis
    from beat.store import Store

OK = Reply("OK")


def seen(store: Store, schedule_id: str) -> dict[str, Any]:
    found = hash_of(store, schedule_id)
    return {"seen_rev": found["rev"], "seen_next": found["next_run"], "seen_state": found["state"]}


def rename(store: Store, old: str, new: str, rev: str, **given: Any) -> Reply:
    item = registration(new, **{**seen(store, old), "rev": rev, "next": "keep", "old": old, **given})
    return store.register([item], beat="tests")[0]


def lines(store: Store, schedule_id: str) -> list[dict[str, Any]]:
    found: Any = store.client.lrange(store.keys.runs(schedule_id), 0, -1)
    return [json.loads(line) for line in found]


# --- what moves ------------------------------------------------------------------------------------------------------


def test_the_outcome_of_a_run_that_was_fired_by_an_old_id_lands_in_the_newest_ledger(store: Store) -> None:
    at = put_and_claim(store, "a")
    assert store.fire([verdict(at, "a")], token=TOKEN).replies == (OK,)
    assert rename(store, "a", "b", "r2").code == "UPDATED"
    assert rename(store, "b", "c", "r3").code == "UPDATED"
    job = f"beat_a_{at}"
    record: Any = store.client.hget("beat:records", job)
    store.client.hset(f"rq:job:{job}", "status", "queued")
    life, line = hash_of(store, "c")["created_at"], '{"type":"succeeded"'
    item = Closing("close", job, record.decode(), "", "queued||", "a", text(at), "succeeded", line, life=life)
    assert Runs(store).close([item], token=TOKEN) == [OK]
    assert hash_of(store, "c")["success_count"] == "1"
    assert lines(store, "c")[0]["type"] == "succeeded"
    assert [hash_of(store, each) for each in "ab"] == [{"renamed_to": "b"}, {"renamed_to": "c"}]
    assert not store.client.exists("beat:runs:a", "beat:runs:b")


def test_ticks_that_wait_are_looked_at_under_the_new_id(store: Store) -> None:
    at = second(store) - 60
    put(store, "old", at + 600)
    store.client.zadd("beat:waiting:old", {f"old {text(at)} scheduler": at * 1000})
    store.client.zadd("beat:running:old", {"beat_old_1": 1})
    store.client.zadd("beat:open", {"beat_old_1": 1})
    store.client.zadd("beat:waiting", {"old": 0})
    rename(store, "old", "new", "r2")
    _, [slot] = Slots(store).attend(limit=10, interval=1000)
    assert (slot.id, slot.waiting, slot.running) == ("new", (f"new {text(at)} scheduler",), ("beat_old_1",))
    assert store.client.zrange("beat:waiting", 0, -1) == [b"new"]


@shows("fire", "GONE")
def test_who_had_claimed_the_old_id_fires_nothing_and_breaks_nothing(store: Store) -> None:
    at = put_and_claim(store, "old")
    rename(store, "old", "new", "r2")
    before = everything(store)
    assert store.fire([verdict(at, "old")], token=TOKEN).replies == (Reply("GONE", "new"),)
    assert changed(before, store) == {"beat:lock:old"}
    assert [each.id for each in claim(store).claims] == ["new"]


def test_repair_leaves_what_is_left_of_an_old_id_alone(store: Store) -> None:
    put(store, "old", second(store) + 60)
    rename(store, "old", "new", "r2")
    store.client.zadd("beat:due", {"old": 1})
    assert [reply.code for reply in store.repair(["old", "new"])] == ["GONE", "SAME"]
    assert (hash_of(store, "old"), score(store, "old")) == ({"renamed_to": "new"}, None)
    assert store.client.smembers("beat:schedules") == {b"new"}


def test_what_is_left_of_an_old_id_cannot_be_removed_or_paused(store: Store) -> None:
    put(store, "old", second(store) + 60)
    rename(store, "old", "new", "r2")
    before = everything(store)
    assert Operations(store).remove([("old", "")], by="ann") == [Reply("GONE", "new")]
    assert Operations(store).pause([("old", "")], by="ann") == [Reply("GONE", "new")]
    assert not changed(before, store)


@pytest.mark.parametrize("ask", ["get", "show", "history", "verify", "pause", "remove"])
def test_who_asks_for_the_old_id_is_told_the_new_one(store: Store, server: PrivateRedis, ask: str) -> None:
    put(store, "a", second(store) + 60)
    rename(store, "a", "b", "r2")
    rename(store, "b", "c", "r3")
    with pytest.raises(UnknownSchedule, match="there is no schedule 'a': it was renamed to 'c'"):
        getattr(Client(server.url), ask)("a")


def test_a_run_of_the_old_id_is_found_by_its_job(store: Store, server: PrivateRedis) -> None:
    at = put_and_claim(store, "old")
    store.fire([verdict(at, "old")], token=TOKEN)
    rename(store, "old", "new", "r2")
    run = Client(server.url).get_run(f"beat_old_{at}")
    assert run is not None
    assert (run.schedule_id, run.number, run.beat) == ("new", 1, TOKEN)
    store.client.hdel("beat:records", f"beat_old_{at}")
    found = Client(server.url).get_run(f"beat_old_{at}")
    assert found is not None
    assert found.schedule_id == "new"


# --- several versions ------------------------------------------------------------------------------------------------


def test_a_rollback_over_two_renamings_gives_the_first_id_back(store: Store) -> None:
    """And does so when nothing of the versions between lives any more, not before."""
    first = Code(store, schedule("a")).start()
    store.client.hset("beat:schedule:a", "run_count", "7")
    Code(store, schedule("b", "a")).start().end()
    last = Code(store, schedule("c", "b")).start()
    first.sync.register()
    assert (first.sync.older, hash_of(store, "c")["run_count"]) == ({"a"}, "7")
    last.end()
    first.sync.register(["a"])
    assert (first.sync.older, hash_of(store, "a")["run_count"]) == (set(), "7")
    assert first.told() == [("older", "a"), ("renamed", "a"), ("updated", "a")]
    assert [hash_of(store, each).get("renamed_to") for each in "abc"] == [None, "c", "a"]
    assert store.client.smembers("beat:schedules") == {b"a"}


def test_of_two_old_versions_the_newer_one_takes_over(store: Store) -> None:
    first, second_one = Code(store, schedule("a")).start(), Code(store, schedule("b", "a")).start()
    Code(store, schedule("c", "b")).start().end()
    first.sync.register()
    assert first.sync.older == {"a"}
    second_one.sync.register()
    assert store.client.smembers("beat:schedules") == {b"b"}
    settled = everything(store)
    first.sync.register()
    second_one.sync.register()
    assert not changed(settled, store)


def test_a_new_version_that_returns_to_an_old_id_need_not_wait(store: Store) -> None:
    Code(store, schedule("a")).start().end()
    middle = Code(store, schedule("b", "a")).start()
    Code(store, schedule("a", "b", queue="third")).start()
    assert store.client.smembers("beat:schedules") == {b"a"}
    middle.sync.register()
    assert middle.sync.older == {"b"}
    assert store.client.smembers("beat:schedules") == {b"a"}


@pytest.mark.parametrize("what", ["removed", "from data", "another application's"])
def test_an_old_id_begins_anew_where_there_is_nothing_to_take_over(store: Store, what: str) -> None:
    Code(store, schedule("old")).start().end()
    Code(store, schedule("new", "old")).start().end()
    if what == "removed":
        Operations(store).remove([("new", "")], by="ann")
    elif what == "from data":
        store.client.hset("beat:schedule:new", "source", "api")
    else:
        store.client.hset("beat:schedule:new", "app", "other")
    back = Code(store, schedule("old")).start()
    found = hash_of(store, "old")
    assert (found["state"], found["version"], "renamed_to" in found) == ("active", "1", False)
    assert int(store.client.ttl("beat:schedule:old")) == -1
    assert back.told() == []


def test_nobody_takes_over_what_is_another_applications(store: Store) -> None:
    Code(store, schedule("old"), app="shop").start()
    before = hash_of(store, "old")
    Code(store, schedule("new", "old"), app="billing").start()
    assert (hash_of(store, "old"), hash_of(store, "new")["version"]) == (before, "1")


def test_an_id_that_is_still_declared_is_not_taken_over(store: Store) -> None:
    code = Code(store, schedule("new", "old"), schedule("old")).start()
    code.sync.register()
    assert store.client.smembers("beat:schedules") == {b"new", b"old"}
    assert code.told() == []


def test_an_id_that_was_renamed_can_be_given_to_another_schedule(store: Store) -> None:
    Code(store, schedule("report")).start().end()
    store.client.hset("beat:schedule:report", "run_count", "7")
    Code(store, schedule("daily", "report")).start().end()
    assert hash_of(store, "daily")["run_count"] == "7"
    both = Code(store, schedule("daily", "report"), schedule("report", timing=Every("5m"))).start()
    both.sync.register()
    assert (hash_of(store, "daily")["run_count"], hash_of(store, "report")["run_count"]) == ("7", "0")
    assert int(store.client.ttl("beat:schedule:report")) == -1
    assert both.told() == []


def test_of_two_heirs_one_has_the_state(store: Store) -> None:
    Code(store, schedule("old")).start().end()
    store.client.hset("beat:schedule:old", "run_count", "7")
    code = Code(store, schedule("a", "old"), schedule("b", "old")).start()
    settled = everything(store)
    code.sync.register()
    assert sorted(hash_of(store, each)["run_count"] for each in "ab") == ["0", "7"]
    assert not changed(settled, store)


# --- applications ----------------------------------------------------------------------------------------------------


@shows("register", "SHARED")
def test_a_schedule_that_two_applications_declare_stays_with_the_first(store: Store) -> None:
    Code(store, schedule("common"), app="shop").start()
    other = Code(store, schedule("common"), schedule("own"), app="billing").start()
    settled = everything(store)
    for _ in range(3):
        other.sync.register()
    assert hash_of(store, "common")["app"] == "shop"
    assert store.client.smembers("beat:app:billing") == {b"own"}
    assert (other.told(), other.sync.refused) == ([], {"common"})
    assert not changed(settled, store)


@pytest.mark.parametrize("was", ["", "default"])
def test_an_application_that_gets_a_name_takes_its_schedules_along(store: Store, was: str) -> None:
    Code(store, schedule("report")).start().end()
    if not was:  # as an earlier beat wrote it
        store.client.hdel("beat:schedule:report", "app")
    named = Code(store, schedule("report"), app="billing").start()
    assert hash_of(store, "report")["app"] == "billing"
    assert store.client.smembers("beat:app:billing") == {b"report"}
    taken_over = [("taken_over", "")] if was else []
    assert named.told() == [("updated", "report"), *taken_over]


# --- any order -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_whatever_comes_and_goes_there_is_one_state_and_it_is_settled(store: Store, seed: int) -> None:
    """Each version was deployed once. From then on, whatever starts, ends or shows its heartbeat, nothing is lost."""
    chance = random.Random(seed)  # noqa: S311 (no secret)
    versions = [schedule("a"), schedule("b", "a"), schedule("c", "b"), schedule("c", "b", queue="x")]
    for each in versions:
        Code(store, each).start().end()
        store.client.hset(f"beat:schedule:{each.id}", "run_count", "7")
    live: list[Code] = []
    for _ in range(40):
        what = chance.choice(["start", "heartbeat", "heartbeat", "end"])
        if what == "start" and len(live) < 3:
            live.append(Code(store, chance.choice(versions)).start())
        elif what == "heartbeat" and live:
            chance.choice(live).heartbeat()
        elif what == "end" and live:
            gone = live.pop(chance.randrange(len(live)))
            if all(code.sync.digest != gone.sync.digest for code in live):
                gone.end()
        [found] = [each for each, state in _definitions(store).items() if "rev" in state]
        assert hash_of(store, found)["run_count"] == "7"
    for _ in range(2):
        for code in live:
            code.heartbeat()
    settled = _definitions(store)
    for code in live:
        code.heartbeat()
    assert _definitions(store) == settled
    in_force = {code.sync.digest for code in live if not code.sync.older}
    assert len(in_force) == min(1, len(live)), "the beats of one version have it as they declare it"


def _definitions(store: Store) -> dict[str, dict[str, str]]:
    return {each: hash_of(store, each) for each in "abc"}
