"""Repair: the index says what the hashes say, and what cannot be read is set apart until it can."""

from __future__ import annotations

import pytest

from beat.storage.messages import Item, Reply
from beat.storage.store import Store, pages
from tests.support.builders import (
    LONG,
    REV,
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
)

SCHEDULE, LOCK = "beat:schedule:report", "beat:lock:report"
SAME = Reply("SAME")


def repair(store: Store, *ids: str) -> list[Reply]:
    return Store(store.client, store.keys, longest_lock=LONG).repair(ids or ["report"])


@pytest.mark.parametrize("state", ["active", "paused", "disabled", "finished"])
@shows("repair", "SAME")
def test_what_is_whole_is_left_as_it_is(state: str, store: Store) -> None:
    store.register([registration("report", second(store) + 60, state=state)], beat="tests")
    before = everything(store)
    assert repair(store) == [SAME]
    assert not changed(before, store)


@pytest.mark.parametrize("wrong", [5, -1, 2**52, 1.5])
@shows("repair", "INDEXED")
def test_an_index_that_says_something_else_is_put_right(wrong: float, store: Store) -> None:
    at = second(store) + 60
    put(store, "report", at)
    store.client.zadd("beat:due", {"report": wrong})
    before = everything(store)
    assert repair(store) == [Reply("INDEXED")]
    assert score(store) == at * 1000
    assert changed(before, store) == {"beat:due"}
    assert repair(store) == [SAME]


def test_the_index_follows_due_at_and_not_the_tick(store: Store) -> None:
    at = second(store) + 60
    put(store, "report", at, due_at=text(at).replace("Z", ".250Z"))
    assert repair(store) == [Reply("INDEXED")]
    assert score(store) == at * 1000 + 250


@shows("repair", "INDEXED")
def test_a_schedule_that_the_index_has_lost_is_found_again(store: Store) -> None:
    at = second(store) + 60
    put(store, "report", at)
    store.client.delete("beat:due")
    assert repair(store) == [Reply("INDEXED")]
    assert score(store) == at * 1000


@pytest.mark.parametrize("state", ["paused", "disabled", "finished", "retired"])
def test_what_is_not_active_is_taken_out_of_the_index(state: str, store: Store) -> None:
    put(store, "report", second(store) + 60, state=state)
    assert repair(store) == [Reply("INDEXED")]
    assert score(store) is None


def test_a_schedule_that_the_set_has_lost_is_in_it_again(store: Store) -> None:
    put(store, "report", second(store) + 60)
    store.client.delete("beat:schedules")
    assert repair(store) == [SAME]
    assert store.client.smembers("beat:schedules") == {b"report"}


@shows("repair", "GONE")
def test_an_index_entry_without_a_hash_goes(store: Store) -> None:
    store.client.zadd("beat:due", {"report": 5})
    store.client.sadd("beat:schedules", "report")
    assert repair(store) == [Reply("GONE")]
    assert not store.client.keys()


BROKEN = [
    ("next_run", "abc", "next_run is not a time: abc"),
    ("next_run", "-1", "next_run is not a time: -1"),
    ("next_run", None, "next_run is missing"),
    ("due_at", "garbage", "due_at is not a time: garbage"),
    ("due_at", None, "due_at is missing"),
    ("run_count", "abc", "run_count is not a number: abc"),
    ("skip_count", "-1", "skip_count is not a number: -1"),
    ("rev", None, "rev is missing"),
]


@pytest.mark.parametrize(("field", "value", "words"), BROKEN)
@shows("repair", "BROKEN", "MENDED", "SAME")
def test_what_cannot_be_used_is_set_apart_until_it_can(field: str, value: str | None, words: str, store: Store) -> None:
    at = second(store) - 10
    put(store, "report", at)
    good = hash_of(store)[field]
    if value is None:
        store.client.hdel(SCHEDULE, field)
    else:
        store.client.hset(SCHEDULE, field, value)
    assert repair(store) == [Reply("BROKEN", words)]
    assert (hash_of(store)["state"], hash_of(store)["last_error"]) == ("broken", words)
    assert hash_of(store).get(field) == value
    assert score(store) is None

    before = everything(store)
    assert repair(store) == [SAME], "said once"
    assert not changed(before, store)

    store.client.hset(SCHEDULE, field, good)
    assert repair(store) == [Reply("MENDED")]
    assert hash_of(store)["state"] == "active"
    assert score(store) == at * 1000
    assert [each.tick for each in claim(store).claims] == [text(at)]


def test_an_active_schedule_with_neither_next_run_nor_due_at_is_broken(store: Store) -> None:
    put(store, "report", second(store) + 60)
    store.client.hdel(SCHEDULE, "next_run", "due_at")
    assert repair(store) == [Reply("BROKEN", "next_run is missing")]


def test_another_thing_wrong_is_said_again(store: Store) -> None:
    put(store, "report", second(store) + 60, run_count="abc")
    assert repair(store) == [Reply("BROKEN", "run_count is not a number: abc")]
    store.client.hset(SCHEDULE, "run_count", "def")
    assert repair(store) == [Reply("BROKEN", "run_count is not a number: def")]


def test_a_definition_that_cannot_be_read_is_not_mended_here(store: Store) -> None:
    put_and_claim(store)
    store.fire([Item("quarantine", "report", REV, error="definition cannot be read")], token=TOKEN)
    before = everything(store)
    assert repair(store) == [SAME]
    assert not changed(before, store)


@shows("repair", "LOCKED")
def test_a_schedule_that_a_beat_is_at_work_on_is_left_to_it(store: Store) -> None:
    put_and_claim(store)
    before = everything(store)
    assert repair(store) == [Reply("LOCKED")]
    assert not changed(before, store)


def test_a_broken_schedule_is_not_mended_while_it_is_locked(store: Store) -> None:
    put(store, "report", second(store) + 60, state="broken", last_error="run_count is not a number: abc")
    store.client.zrem("beat:due", "report")
    store.client.set(LOCK, "another", px=LONG)
    before = everything(store)
    assert repair(store) == [Reply("LOCKED")]
    assert not changed(before, store)
    store.client.delete(LOCK)
    assert repair(store) == [Reply("MENDED")]


@shows("repair", "BADTYPE")
def test_a_schedule_that_is_no_hash_is_left_to_a_person(store: Store) -> None:
    put(store, "good", at := second(store) + 60)
    store.client.delete("beat:due")
    store.client.set(SCHEDULE, "garbage")
    before = everything(store)
    assert repair(store, "report", "good") == [Reply("BADTYPE", f"{SCHEDULE} is a string"), Reply("INDEXED")]
    assert changed(before, store) == {"beat:due"}
    assert score(store, "good") == at * 1000


@pytest.mark.parametrize(("key", "kind"), [("beat:schedules", "set"), ("beat:due", "zset")])
@shows("repair", "BADTYPE")
def test_a_key_of_the_wrong_type_refuses_the_page_before_any_write(key: str, kind: str, store: Store) -> None:
    put(store, "report", second(store) + 60)
    store.client.delete("beat:schedules", "beat:due")
    store.client.set(key, "garbage")
    before = everything(store)
    assert repair(store, "report", "gone") == [Reply("BADTYPE", f"{key} is a string, not a {kind}")] * 2
    assert not changed(before, store)


def test_no_ids_are_no_trouble(store: Store) -> None:
    assert store.repair([]) == []


def test_every_id_that_the_set_or_the_index_knows_is_repaired_page_by_page(store: Store) -> None:
    at, kept = second(store) + 60, [f"s{n}" for n in range(1_200)]
    for page in pages(kept, 100):
        store.register([registration(each, at) for each in page], beat="tests")
    store.client.srem("beat:schedules", *kept[:100])
    store.client.zrem("beat:due", *kept[100:300])
    store.client.zadd("beat:due", {"ghost": 5})
    listed = list(store.ids())
    assert {each for page in listed for each in page} == {*kept, "ghost"}
    assert max(map(len, listed)) <= 500
    codes = {each: reply.code for page in listed for each, reply in zip(page, store.repair(page), strict=True)}
    assert codes["ghost"] == "GONE"
    assert store.client.smembers("beat:schedules") == {each.encode() for each in kept}
    assert store.client.zrange("beat:due", 0, -1, withscores=True) == sorted(
        (each.encode(), at * 1000) for each in kept
    )
