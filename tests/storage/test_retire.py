"""Retiring: what no running scheduler declares is held, then fires no more, and nothing about it is forgotten."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from beat.storage.messages import Reply
from beat.storage.operations import Operations, Stretch
from tests.support.builders import changed, claim, everything, hash_of, put, registration, score, second, shows, text

if TYPE_CHECKING:
    from beat.storage.store import Store

LATER = 600_000


def retire(store: Store, *ids: str, after: int = 0, app: str = "default") -> list[Reply]:
    items = [Stretch(each) for each in ids]
    return Operations(store).retire(items, beat="tests", app=app, retire_after=after)


def lines(store: Store, schedule_id: str = "report") -> list[dict[str, Any]]:
    found: Any = store.client.lrange(store.keys.runs(schedule_id), 0, -1)
    return [json.loads(line) for line in found]


@shows("retire", "HELD", "SAME", "OK")
def test_a_schedule_is_held_at_first_and_retired_after_a_while(store: Store) -> None:
    put(store, "report", second(store) + 10)
    [reply] = retire(store, "report", after=LATER)
    assert reply == Reply("HELD", str(LATER))
    assert hash_of(store)["state"] == "active"
    assert claim(store, lookahead=60_000).claims == ()  # though it would be within the lookahead
    assert retire(store, "report") == [Reply("OK")]
    assert (hash_of(store)["state"], score(store)) == ("retired", None)
    assert store.client.smembers("beat:in:retired") == {b"report"}
    assert store.client.scard("beat:app:default") == 0
    assert retire(store, "report") == [Reply("SAME")]
    assert [line["type"] for line in lines(store)] == ["retired", "registered"]


@shows("retire", "HELD")
def test_a_schedule_that_was_held_since_a_time_in_the_future_is_held_from_now_on(store: Store) -> None:
    put(store, "report", second(store) + 10, unannounced_at=text(second(store) + 86_400))
    assert retire(store, "report", after=LATER) == [Reply("HELD", str(LATER))]
    assert hash_of(store)["unannounced_at"] < text(second(store) + 1)


@shows("retire", "DUE", "OK")
def test_the_ticks_that_were_held_pass_as_one_stretch(store: Store) -> None:
    now = second(store)
    at = now - now % 60 - 120  # a tick of every minute, three of which are past
    put(store, "report", at)
    [reply] = retire(store, "report")
    assert reply == Reply("DUE", text(at))
    stretch = Stretch("report", text(at), text(at + 120), 3, text(at + 180))
    done = Operations(store).retire([stretch], beat="tests", app="default", retire_after=0)
    assert done == [Reply("OK")]
    [skipped] = [line for line in lines(store) if line["type"] == "skipped"]
    assert (skipped["tick"], skipped["last"], skipped["count"], skipped["reason"]) == (
        text(at), text(at + 120), 3, "retired",
    )  # fmt: skip
    found = hash_of(store)
    assert (found["next_run"], found["skip_count"], found["state"]) == (text(at + 180), "3", "retired")


@shows("retire", "SAME")
@pytest.mark.parametrize("what", ["announced", "another app"])
def test_what_lives_or_is_not_ours_to_judge_is_left_alone(store: Store, what: str) -> None:
    put(store, "report", second(store) + 600)
    if what == "announced":
        store.announce({"report": "abc"}, digest="d", ttl=10_000)
    before = everything(store)
    assert retire(store, "report", app="other" if what == "another app" else "default") == [Reply("SAME")]
    assert not changed(before, store)


@shows("register", "BACK")
def test_a_schedule_that_comes_back_goes_on(store: Store) -> None:
    at = second(store) + 600
    put(store, "report", at)
    retire(store, "report", after=LATER)
    seen: Any = {"seen_rev": hash_of(store)["rev"], "seen_next": text(at), "seen_state": "active"}
    [reply] = store.register([registration(next="keep", **seen)], beat="tests")
    assert reply.code == "BACK"
    assert "unannounced_at" not in hash_of(store)
    assert hash_of(store)["version"] == "1"
    assert [line["type"] for line in lines(store)] == ["registered"], "nothing has changed"
    assert [each.id for each in claim(store, lookahead=LATER + 1).claims] == ["report"]


@shows("retire", "PAUSED")
@pytest.mark.parametrize("until", [None, 60])
def test_what_is_paused_is_held_and_stays_paused(store: Store, until: int | None) -> None:
    now = second(store)
    put(store, "report", now - 600)
    Operations(store).pause([("report", "")], by="ann", untl=text(now + until) if until else "", reason="why")
    assert retire(store, "report") == [Reply("PAUSED")]
    found = hash_of(store)
    assert (found["state"], found["pause_reason"]) == ("paused", "why")
    assert "unannounced_at" in found
    if until:  # its end comes, and fires nothing
        store.client.hset("beat:schedule:report", "pause_until", text(now - 1))
        store.client.zadd("beat:due", {"report": (now - 1) * 1000})
        assert claim(store).claims == ()
        [due] = retire(store, "report")
        assert due == Reply("DUE", text(now - 600))


@shows("retire", "GONE", "SAME", "BADTYPE")
def test_what_is_not_there_or_not_from_the_code_is_left_alone(store: Store) -> None:
    put(store, "api", second(store) + 600)
    store.client.hset("beat:schedule:api", "source", "api")
    store.client.set("beat:schedule:text", "text")
    before = everything(store)
    replies = retire(store, "nobody", "api", "text")
    assert replies == [Reply("GONE"), Reply("SAME"), Reply("BADTYPE", "beat:schedule:text is a string, not a hash")]
    assert not changed(before, store)
    store.client.delete("beat:schedule:text")


@shows("retire", "BADTYPE")
def test_an_index_of_the_wrong_type_is_named_before_any_write(store: Store) -> None:
    put(store, "report", second(store) + 600)
    store.client.delete("beat:due")
    store.client.set("beat:due", "text")
    before = everything(store)
    assert retire(store, "report") == [Reply("BADTYPE", "beat:due is a string, not a zset")]
    assert not changed(before, store)
