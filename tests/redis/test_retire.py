"""Retiring: what no code declares any more fires no more, and nothing about it is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.protocol import Reply
from tests.redis.making import changed, claim, everything, hash_of, put, score, second, shows

if TYPE_CHECKING:
    from beat.store import Store


@shows("retire", "OK", "SAME")
def test_a_retired_schedule_is_not_handed_out_and_keeps_its_history(store: Store) -> None:
    put(store, "report", second(store) - 10)
    store.client.hset("beat:schedule:report", "source", "code")
    before = hash_of(store)
    assert store.retire(["report"]) == [Reply("OK")]
    assert score(store) is None
    assert claim(store).claims == ()
    after = hash_of(store)
    assert after.pop("state") == "retired"
    assert {name: before[name] for name in after if name != "updated_at"} == {
        name: value for name, value in after.items() if name != "updated_at"
    }
    assert store.retire(["report"]) == [Reply("SAME")]


@shows("retire", "GONE", "SAME", "BADTYPE")
def test_what_is_not_there_or_not_from_the_code_is_left_alone(store: Store) -> None:
    put(store, "api", second(store) + 600)
    store.client.hset("beat:schedule:api", "source", "api")
    store.client.set("beat:schedule:text", "text")
    before = everything(store)
    replies = store.retire(["nobody", "api", "text"])
    assert replies == [Reply("GONE"), Reply("SAME"), Reply("BADTYPE", "beat:schedule:text is a string")]
    assert not changed(before, store)
    store.client.delete("beat:schedule:text")


@shows("retire", "BADTYPE")
def test_an_index_of_the_wrong_type_is_named_before_any_write(store: Store) -> None:
    put(store, "report", second(store) + 600)
    store.client.hset("beat:schedule:report", "source", "code")
    store.client.delete("beat:due")
    store.client.set("beat:due", "text")
    before = everything(store)
    assert store.retire(["report"]) == [Reply("BADTYPE", "beat:due is a string")]
    assert not changed(before, store)
