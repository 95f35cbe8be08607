"""What a fire costs, counted: seconds depend on the machine, calls do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.builders import TOKEN, Calls, claim, put, second, verdict

if TYPE_CHECKING:
    from beat.storage.store import Store

PAGE = 100


def test_a_page_of_a_hundred_takes_ten_calls_a_fire_with_claims_and_ledger(store: Store) -> None:
    at = second(store) - 200
    for n in range(PAGE):
        put(store, f"s{n}", at)
    for tick in (at, at + 60):  # the first tick of a schedule finds its ledger uncounted
        calls = Calls(store)
        assert len(claim(store).claims) == PAGE
        decided = store.fire([verdict(tick, f"s{n}") for n in range(PAGE)], token=TOKEN)
        assert {reply.code for reply in decided.replies} == {"OK"}
    assert sum(calls.count().values()) <= 10 * PAGE


def test_an_idle_pass_is_one_call_of_each_kind_however_many_schedules_there_are(store: Store) -> None:
    later = second(store) + 3600
    for n in range(50):
        put(store, f"s{n}", later)
    calls = Calls(store)
    assert not claim(store).claims
    assert sum(calls.count().values()) <= 6


def test_the_costs_of_shared_keys_do_not_grow_with_the_page(store: Store) -> None:
    def shared(number: int) -> int:
        at = second(store) - 5
        for n in range(number):
            put(store, f"s{n}", at)
        claim(store)
        calls = Calls(store)
        store.fire([verdict(at, f"s{n}") for n in range(number)], token=TOKEN)
        counted = calls.count()
        store.client.flushall()
        return sum(counted.get(name, 0) for name in ("zadd", "rpush", "sadd", "del", "mget", "exists", "type", "time"))

    assert shared(40) == shared(2)


def test_what_a_page_has_opened_is_written_once_however_many_find_their_slots_full(store: Store) -> None:
    def written(full: int) -> int:
        at = second(store) - 5
        for n in range(40):
            put(store, f"s{n}", at)
        for n in range(0, 2 * full, 2):  # a run of it goes on
            store.client.zadd(f"beat:running:s{n}", {f"busy_{n}": 0})
            store.client.zadd("beat:open", {f"busy_{n}": 0})
        claim(store)
        slots = {n: "skip 1 0" if n < 2 * full and n % 2 == 0 else "" for n in range(40)}
        calls = Calls(store)
        decided = store.fire([verdict(at, f"s{n}", slot=slots[n]) for n in range(40)], token=TOKEN)
        counted = calls.count()["zadd"]
        assert sum(reply.code == "SKIPPED" for reply in decided.replies) == full
        store.client.flushall()
        return counted

    assert written(20) == written(1)
