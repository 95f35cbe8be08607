"""Many at once, and one among them with whom something is wrong: that schedule alone is held up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from beat.storage import scripts
from beat.storage.messages import Reply
from tests.support.many_schedules import SLOTS, Town, following, periodic

if TYPE_CHECKING:
    import pytest

    from beat.storage.store import Store

WRITTEN = scripts.script


def broken(name: str) -> scripts.Script:
    """`fire`, with an error that nobody foresaw in the items of `b`."""
    begins = "local function decided(i, crowd)\n"
    raises = f"{begins}  if ARGV[crowd and i or i + 1] == 'b' then error('nobody foresaw it') end\n"
    found = WRITTEN(name)
    return replace(found, text=found.text.replace(begins, raises)) if name == "fire" else found


def test_what_nobody_foresaw_in_one_item_keeps_no_other_of_the_page_from_being_enqueued(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Town(store, periodic("a"), periodic("b"), periodic("c"))
    monkeypatch.setattr(scripts, "script", broken)
    replies = place.send([*place.chain("a"), *place.chain("b"), *place.chain("c")])
    assert [reply.code for reply in replies] == ["OK", "BADSTATE", "OK"]
    assert "nobody foresaw it" in replies[1].words
    assert place.queued() == [place.job("a"), place.job("c")]
    assert sorted(place.client.zrange("beat:open", 0, -1)) == [place.job(each).encode() for each in ("a", "c")]
    monkeypatch.undo()
    place.put("b", place.next["b"])
    assert place.fire("b") == Reply("OK")
    place.one_verdict_each("a", "b", "c")


def test_a_group_with_more_runs_than_lua_takes_at_once_is_looked_at_all_the_same(store: Store) -> None:
    place = Town(store, periodic("free"), periodic("a", group="g"), g="wait 5")
    jobs: Any = {f"job-{n}": n + 1 for n in range(8500)}
    place.client.zadd("beat:running:@g", jobs)
    place.client.zadd("beat:open", jobs)
    replies = place.send([*place.chain("free"), *place.chain("a")])
    assert [reply.code for reply in replies] == ["OK", "WAITS"]
    assert place.queued() == [place.job("free")]
    place.turn()
    assert place.waiting("@g") == ["a 0"]


def test_a_page_of_broadcasts_with_more_jobs_than_lua_takes_at_once_is_enqueued_whole(store: Store) -> None:
    queues = [f"q{n:02}" for n in range(100)]
    many = [periodic(f"cast{n:02}", queues=queues, route="broadcast") for n in range(50)]
    place = Town(store, *many, periodic("free"))
    items = [item for each in [*many, place.schedules["free"]] for item in place.chain(each.id)]
    assert {reply.code for reply in place.send(items)} == {"OK"}
    assert place.client.zcard("beat:open") == place.client.hlen("beat:records") == 5001
    assert len(place.queued("q00")) == len(place.queued("q99")) == 50
    assert place.queued() == [place.job("free")]
    for each in many:
        assert place.client.zscore("beat:due", each.id) > (place.start - 1) * 1000


def test_a_tick_that_cannot_be_enqueued_keeps_nobody_of_its_group_waiting(store: Store) -> None:
    options = [periodic(each, group="g", queue=f"q{each}") for each in ("run", "a", "b")]
    place = Town(store, *options, g="wait 1")
    assert place.codes("run", "a", "b") == ["OK", "WAITS", "WAITS"]
    place.end(place.job("run"))
    place.client.set("rq:queue:qa", "garbage", px=60_000)
    place.close()
    for _ in range(2):
        place.turn()
    assert place.running("@g") == [place.job("b")]
    assert place.waiting("@g") == []
    assert place.waiting("a") == ["a 0"]
    place.client.delete("rq:queue:qa")
    place.succeed(place.job("b"))
    place.turn()
    assert place.running("@g") == [place.job("a")]
    place.one_verdict_each("run", "a", "b")


def test_a_schedule_that_cannot_be_read_keeps_nobody_of_its_group_waiting(store: Store) -> None:
    place = Town(store, *(periodic(each, group="g") for each in ("run", "a", "b")), g="wait 1")
    assert place.codes("run", "a", "b") == ["OK", "WAITS", "WAITS"]
    good = place.client.hget("beat:schedule:a", "definition")
    place.client.hset("beat:schedule:a", mapping={"definition": "garbage", "rev": "unknown"})
    place.succeed(place.job("run"))
    for _ in range(2):
        place.turn()
    assert place.running("@g") == [place.job("b")]
    place.client.hset("beat:schedule:a", mapping={"definition": good, "rev": place.schedules["a"].rev})
    place.succeed(place.job("b"))
    place.turn()
    assert place.running("@g") == [place.job("a")]


def test_a_crowd_in_line_is_let_in_as_soon_as_there_is_room(store: Store) -> None:
    """By the scores that the scripts write: nobody asks for the others first."""
    ids = [f"s{n:03}" for n in range(200)]
    place = Town(store, *(periodic(each, group="g") for each in ids), g="wait 5 1000")
    place.codes(*ids)
    assert place.client.zrange(SLOTS, 0, -1) == [b"@g"]
    for n in range(3):
        running = place.running("@g")
        assert running == [place.job(each) for each in ids[5 * n : 5 * n + 5]]
        place.succeed(*running)
        place.attendant.turn()


def test_a_follower_whose_code_is_gone_waits_until_it_is_back(store: Store) -> None:
    place = Town(store, periodic("extract"), following("load", "extract"))
    place.client.hset("beat:schedule:load", "unannounced_at", "2026-11-16T09:00:00Z")
    place.fire("extract")
    place.succeed(place.job("extract"))
    place.turn()
    assert place.lines("load", "enqueued", "skipped") == []
    place.client.hdel("beat:schedule:load", "unannounced_at")
    place.turn()
    assert [line["after"] for line in place.lines("load", "enqueued")] == [place.job("extract")]


def test_the_ticks_of_a_broadcast_that_wait_for_their_group_have_as_much_room_as_they_will_need(store: Store) -> None:
    cast = periodic(
        "cast", queues=["x", "y", "z"], route="broadcast", overlap="wait", max_running=2, max_waiting=5, group="g"
    )
    place = Town(store, periodic("big", group="g"), cast, g="wait 12")
    for n in range(12):
        place.client.zadd("beat:running:@g", {f"job-{n}": 1})
        place.client.zadd("beat:open", {f"job-{n}": 1})
    assert place.codes("cast", "cast", "cast", "cast") == ["WAITS"] * 4
    assert place.waiting("@g") == ["cast 0", "cast 1"]
    place.client.delete("beat:running:@g")
    place.turn()
    assert len(place.running("cast")) == 6


def test_a_run_that_began_before_its_schedule_had_a_group_has_its_room(store: Store) -> None:
    place = Town(store, periodic("a"), periodic("b", group="g"), g="skip 1")
    place.fire("a")
    place.declare(periodic("a", group="g"))
    assert place.fire("a").code == "SKIPPED"
    assert place.running("@g") == [place.job("a")]
