"""Groups: schedules share room; whoever finds none waits or is skipped, once, and nothing is ever wedged or leaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.errors import Refused
from beat.storage.messages import Reply
from beat.storage.operations import Operations
from tests.support.builders import OTHER, TOKEN, changed, claim, everything, shows
from tests.support.many_schedules import SLOTS, Town, periodic

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

OK = Reply("OK")


def town(store: Store, limits: str = "wait 1", *ids: str, **options: Any) -> Town:
    """Schedules `a` and `b`, or others, in a group `g`."""
    return Town(store, *(periodic(each, group="g", **options) for each in ids or ("a", "b")), g=limits)


# --- no room ---------------------------------------------------------------------------------------------------------


@shows("fire", "SKIPPED")
def test_a_tick_is_skipped_when_the_group_is_full_and_the_line_names_the_newest_run(store: Store) -> None:
    place = town(store, "skip 2", "a", "b", "c")
    assert place.codes("a", "b") == ["OK", "OK"]
    assert place.fire("c") == Reply("SKIPPED", "group")
    [line] = place.lines("c", "skipped")
    assert (line["reason"], line["behind"], line["count"], line["n"]) == ("group", place.job("b"), 1, 1)
    assert place.running("@g") == [place.job("a"), place.job("b")]
    assert place.state("c")["skip_count"] == "1"
    assert not store.client.exists(SLOTS, "beat:waiting:c", "beat:waiting:@g", "beat:running:c")
    place.one_verdict_each("a", "b", "c")


@shows("fire", "WAITS")
def test_a_tick_waits_for_the_group_in_two_lines_and_has_no_verdict_yet(store: Store) -> None:
    place = town(store)
    place.fire("a")
    assert place.fire("b") == Reply("WAITS", place.job("a"))
    assert place.waiting("@g") == place.waiting("b") == ["b 0"]
    assert place.client.zrange(SLOTS, 0, -1) == [b"@g"]
    [line] = place.lines("b", "waiting")
    assert (line["group"], line["behind"], line["job"]) == ("g", place.job("a"), place.job("b"))
    assert place.queued() == [place.job("a")]
    assert not place.client.exists(f"rq:job:{place.job('b')}")
    place.one_verdict_each("a", "b")


def test_a_schedule_without_a_group_and_an_unfilled_group_ask_nobody(store: Store) -> None:
    place = Town(store, periodic("a", group="g"), periodic("free"), g="wait 3")
    assert place.codes("a", "free", "a", "a") == ["OK"] * 4
    assert place.running("@g") == [place.job("a", n) for n in range(3)]
    assert not place.client.exists(SLOTS)


def test_no_more_wait_for_a_group_than_may(store: Store) -> None:
    place = town(store, "wait 1 2")
    assert place.codes("a", "b", "b", "b", "a") == ["OK", "WAITS", "WAITS", "SKIPPED", "SKIPPED"]
    assert (place.reasons("a"), place.reasons("b")) == (["group"], ["group"])
    place.one_verdict_each("a", "b")


def test_who_may_wait_unless_somebody_says_so_are_a_thousand(store: Store) -> None:
    place = town(store)
    place.fire("a")
    place.client.zadd("beat:waiting:@g", {f"x 2026-01-01T00:00:00Z {n}": n for n in range(998)})
    assert place.cleared("b").code == "WAITS"
    assert place.cleared("b").code == "WAITS"
    assert place.cleared("b").code == "SKIPPED"


@shows("fire", "ENDED")
def test_runs_that_have_ended_are_closed_before_anybody_waits(store: Store) -> None:
    place = town(store)
    place.fire("a")
    place.end(place.job("a"))
    before = place.state("b")
    assert place.fire("b") == Reply("ENDED", "1")
    assert place.state("b") == before
    place.close()
    assert place.cleared("b") == OK
    assert place.running("@g") == [place.job("b")]


@pytest.mark.parametrize(("status", "code"), [("finished", "OK"), ("failed", "OK"), ("canceled", "WAITS")])
def test_who_could_not_be_closed_has_ended_all_the_same(store: Store, status: str, code: str) -> None:
    place = town(store)
    place.fire("a")
    place.end(place.job("a"), status=status)  # what is cancelled may still be running
    assert place.cleared("b").code == code


# --- letting in ------------------------------------------------------------------------------------------------------


def test_who_steps_aside_leaves_the_line_to_others_of_the_page(store: Store) -> None:
    place = Town(store, *(periodic(each, group="g", queue=f"to_{each}") for each in "abcx"), g="wait 1")
    items = [place.chain(each)[0]._replace(kind="admit", last="", next="", next_due=0) for each in "abc"]
    assert place.codes("x", "a", "b", "c") == ["OK", "WAITS", "WAITS", "WAITS"]
    place.client.hset("beat:groups", "g", "wait 9")
    place.client.zrem(
        "beat:waiting:@g", *place.client.zrange("beat:waiting:@g", -1, -1)
    )  # c is not in the line of the group
    place.client.set("rq:queue:to_b", "garbage", px=60_000)
    assert [reply.code for reply in store.fire(items, token=OTHER).replies] == ["OK", "BADTYPE", "OK"]


def test_who_waits_is_let_in_by_ticks_whatever_the_schedule(store: Store) -> None:
    place = town(store, "wait 1", "a", "b", "c")
    place.put("b", place.start + 2)
    place.put("c", place.start + 1)
    assert place.codes("a", "b", "c", "a") == ["OK", "WAITS", "WAITS", "WAITS"]
    assert place.waiting("@g") == ["a 1", "c 1", "b 2"]
    order = []
    for _ in range(4):
        [job] = place.running("@g")
        order.append(job)
        place.succeed(job)
        place.turn()
    assert order == [place.job("a"), place.job("a", 1), place.job("c", 1), place.job("b", 2)]
    assert place.running("@g") == []
    assert not place.client.exists(SLOTS, "beat:waiting:@g", "beat:waiting:a")


@shows("fire", "FULL", "STALE")
def test_who_waits_is_let_in_once_whoever_asks(store: Store) -> None:
    place = town(store)
    place.fire("a")
    [item] = place.chain("b")
    place.fire("b")
    admit = item._replace(kind="admit", last="", next="", next_due=0)
    assert place.store.fire([admit], token=OTHER).replies == (Reply("FULL", place.job("a")),)
    place.succeed(place.job("a"))
    said = place.store.fire([admit, admit], token=OTHER).replies
    assert [reply.code for reply in said] == ["OK", "STALE"]
    assert place.queued() == [place.job("b")]
    assert place.running("@g") == [place.job("b")]
    assert not place.client.exists("beat:waiting:@g", "beat:waiting:b", SLOTS)
    place.one_verdict_each("a", "b")


def test_nobody_overtakes_who_waits_for_the_group(store: Store) -> None:
    place = town(store, "wait 1", "a", "b", "c")
    place.codes("a", "b")
    place.succeed(place.job("a"))
    assert place.fire("c") == Reply("ENDED", "0")  # first, let in who waits
    assert place.cleared("c").code == "WAITS"  # nobody did: there is one who waits
    place.turn()
    assert (place.running("@g"), place.waiting("@g")) == ([place.job("b")], ["c 0"])


def test_as_many_are_let_in_at_once_as_have_room(store: Store) -> None:
    place = town(store, "wait 2", "a", "b", "c", "d")
    place.codes("a", "b", "c", "d", "c", "d")
    place.succeed(place.job("a"), place.job("b"))
    place.turn()
    assert place.running("@g") == [place.job("c"), place.job("d")]
    assert place.waiting("@g") == ["c 1", "d 1"]


def test_a_small_tick_does_not_slip_past_a_broadcast_that_waits_for_more_room(store: Store) -> None:
    every = periodic("all", group="g", queues=("x", "y", "z"), route="broadcast")
    place = Town(store, periodic("a", group="g"), every, periodic("b", group="g"), g="wait 3")
    assert place.codes("a", "all") == ["OK", "WAITS"]
    assert place.cleared("b").code == "WAITS"
    place.turn()
    assert place.running("@g") == [place.job("a")]  # there would be room for `b`, and then never for three
    place.succeed(place.job("a"))
    place.turn()
    assert place.running("@g") == [f"{place.job('all')}_s{n}" for n in range(3)]
    assert place.waiting("@g") == ["b 0"]


# --- its own room and the group's ------------------------------------------------------------------------------------


def test_its_own_room_comes_first_then_the_groups(store: Store) -> None:
    place = town(store, "wait 5", overlap="skip")
    assert place.codes("a", "a") == ["OK", "SKIPPED"]
    assert place.reasons("a") == ["overlap"]
    place.client.hset("beat:groups", "g", "skip 1")
    assert place.fire("b") == Reply("SKIPPED", "group")
    assert (place.running("a"), place.running("b")) == ([place.job("a")], [])


def test_a_tick_in_the_hall_has_its_own_room_so_that_the_next_finds_none(store: Store) -> None:
    place = town(store, "wait 1", overlap="skip")
    assert place.codes("a", "b", "b", "b") == ["OK", "WAITS", "SKIPPED", "SKIPPED"]
    assert (place.waiting("b"), place.waiting("@g"), place.reasons("b")) == (["b 0"], ["b 0"], ["overlap"] * 2)
    place.succeed(place.job("a"))
    place.turn()
    assert place.running("@g") == place.running("b") == [place.job("b")]
    place.one_verdict_each("a", "b")


def test_who_waits_for_its_own_room_goes_on_to_the_hall(store: Store) -> None:
    place = town(store, "wait 1", overlap="wait", max_waiting=2)
    assert place.codes("b", "b", "a", "b") == ["OK", "WAITS", "WAITS", "WAITS"]
    assert (place.waiting("b"), place.waiting("@g")) == (["b 1", "b 2"], ["a 0"])
    ran = []
    for _ in range(4):
        assert len(place.running("@g")) == 1
        assert len(place.running("b")) <= 1
        ran += place.running("@g")
        place.succeed(*place.running("@g"))
        place.turn()
    assert ran == [place.job("b"), place.job("a"), place.job("b", 1), place.job("b", 2)]
    place.one_verdict_each("a", "b")


def test_who_has_waited_for_its_own_room_may_find_the_group_full_and_pass(store: Store) -> None:
    place = town(store, "skip 2", "a", "b", "c", overlap="wait")
    assert place.codes("a", "b", "b") == ["OK", "OK", "WAITS"]
    place.succeed(place.job("b"))
    assert place.fire("c") == OK
    place.turn()
    assert (place.reasons("b"), place.waiting("b")) == (["group"], [])
    assert place.running("@g") == [place.job("a"), place.job("c")]
    place.one_verdict_each("a", "b", "c")


def test_in_the_hall_max_waiting_is_the_groups(store: Store) -> None:
    place = town(store, "wait 1 5", overlap="wait", max_waiting=1)
    assert place.codes("a", "b", "b", "b") == ["OK", "WAITS", "WAITS", "SKIPPED"]  # one in the hall, one before it
    assert place.waiting("b") == ["b 0", "b 1"]
    assert place.waiting("@g") == ["b 0"]


def test_the_newest_takes_the_place_of_one_in_the_hall(store: Store) -> None:
    place = town(store, "wait 1", overlap="replace")
    assert place.codes("a", "b", "b") == ["OK", "WAITS", "WAITS"]
    place.turn()  # the newer one goes to the hall
    assert place.fire("b").code == "WAITS"
    assert place.waiting("b") == ["b 2"]
    assert place.reasons("b") == ["replaced", "replaced"]
    place.turn()
    assert place.waiting("@g") == ["b 2"]
    assert place.queued() == [place.job("a")]  # which is another's
    place.succeed(place.job("a"))
    place.turn()
    assert place.queued() == [place.job("b", 2)]
    place.one_verdict_each("a", "b")


def test_a_chain_fills_the_room_and_no_more_within_one_page(store: Store) -> None:
    place = town(store, "wait 2 1")
    assert [reply.code for reply in place.send(place.chain("a", 5))] == ["OK", "OK", "WAITS", "SKIPPED", "SKIPPED"]
    place.one_verdict_each("a")


def test_schedules_of_one_page_find_no_more_room_than_those_of_several(store: Store) -> None:
    place = town(store, "skip 2", "a", "b", "c", "d")
    items = [item for each in "abcd" for item in place.chain(each)]
    assert [reply.code for reply in place.send(items)] == ["OK", "OK", "SKIPPED", "SKIPPED"]
    assert len(place.queued()) == 2


# --- an operator changes the limit -----------------------------------------------------------------------------------


def test_a_limit_that_is_raised_lets_in_who_waits(store: Store) -> None:
    place = town(store, "wait 1")
    place.codes("a", "a", "b")
    place.client.hset("beat:groups", "g", "wait 3")
    place.turn()
    assert len(place.running("@g")) == 3


def test_a_limit_that_is_lowered_stops_nobody_and_lets_nobody_in(store: Store) -> None:
    place = town(store, "wait 3")
    place.codes("a", "a", "b")
    place.client.hset("beat:groups", "g", "wait 1")
    assert place.codes("a", "b") == ["WAITS", "WAITS"]
    for left in (2, 1):
        place.succeed(place.running("@g")[0])
        place.turn()
        assert len(place.running("@g")) == left
    place.succeed(*place.running("@g"))
    place.turn()
    assert len(place.running("@g")) == 1


LIMITS = [None, "", "many", "wait", "wait x", "wait 0", "wiat 5", "wait 5 6 7", "5"]


@pytest.mark.parametrize("limit", LIMITS, ids=repr)
@shows("fire", "BADSTATE")
def test_a_limit_that_cannot_be_read_is_told_and_the_tick_fires_when_it_can(store: Store, limit: str | None) -> None:
    place = town(store)
    place.client.hdel("beat:groups", "g")
    if limit is not None:
        place.client.hset("beat:groups", "g", limit)
    reply = place.fire("a")
    assert reply.code == "BADSTATE"
    assert 'HSET beat:groups g "wait 5"' in reply.words
    assert place.state("a")["last_error"] == reply.words
    assert (place.queued(), place.lines("a", "enqueued", "skipped")) == ([], [])
    place.client.hset("beat:groups", "g", "wait 5")
    place.put("a", place.start)
    assert place.fire("a") == OK


def test_who_waits_for_a_group_without_a_limit_is_let_in_when_it_has_one(store: Store) -> None:
    place = town(store)
    place.codes("a", "b")
    place.succeed(place.job("a"))
    place.client.delete("beat:groups")
    place.turn()
    place.turn()
    assert place.waiting("b") == ["b 0"]
    assert [event.fields["code"] for event in place.told("broken")] == ["BADSTATE"]
    place.client.hset("beat:groups", "g", "wait 1")
    place.turn()
    assert place.running("@g") == [place.job("b")]


# --- nothing leaks ---------------------------------------------------------------------------------------------------


def test_what_is_no_run_takes_up_no_room(store: Store) -> None:
    place = town(store, "skip 1")
    place.client.zadd("beat:running:@g", {"garbage": 1, "beat_a_1": 2})
    assert place.fire("a") == OK
    assert place.running("@g") == [place.job("a")]


def test_a_job_that_vanished_gives_its_room_back_when_it_is_lost(store: Store) -> None:
    place = town(store)
    place.codes("a", "b")
    place.lose(place.job("a"))
    assert place.lines("a", "lost")
    place.turn()
    assert place.running("@g") == [place.job("b")]


def test_a_record_that_makes_no_sense_gives_its_room_back(store: Store) -> None:
    place = town(store)
    place.codes("a", "b")
    place.client.hset("beat:records", place.job("a"), "garbage")
    place.succeed(place.job("a"))
    place.turn()
    assert place.running("@g") == [place.job("b")]


def test_a_run_that_goes_on_again_has_its_room_again(store: Store) -> None:
    place = town(store, "skip 1")
    place.fire("a")
    place.end(place.job("a"), status="failed")
    place.close()
    assert place.running("@g") == []
    place.client.hset(f"rq:job:{place.job('a')}", "status", "queued")
    place.look_again()
    assert place.running("@g") == [place.job("a")]
    assert place.fire("b").code == "SKIPPED"


@pytest.mark.parametrize("lost", [["beat:waiting:@g"], [SLOTS], ["beat:waiting:@g", SLOTS]], ids=" ".join)
def test_a_line_or_index_that_somebody_deleted_is_made_again(store: Store, lost: list[str]) -> None:
    place = town(store, "wait 1", "a", "b", "c")
    place.codes("a", "b")
    place.client.delete(*lost)
    assert place.fire("c").code == "WAITS"
    if place.client.zscore(SLOTS, "b") is None:  # `c` has come, `b` is known by its own next tick
        assert place.cleared("b").code == "WAITS"
    while running := place.running("@g"):
        assert len(running) == 1
        place.succeed(*running)
        place.turn()
    assert not place.client.exists(SLOTS, "beat:waiting:a", "beat:waiting:b", "beat:waiting:c")
    place.one_verdict_each("a", "b", "c")


def test_who_waits_is_found_again_by_repair_though_no_tick_comes(store: Store) -> None:
    place = town(store)
    place.codes("a", "b")
    place.client.delete(SLOTS)
    place.succeed(place.job("a"))
    assert store.repair(["a", "b"])[1] == Reply("INDEXED")
    place.turn()
    assert place.running("@g") == [place.job("b")]
    assert not place.client.exists(SLOTS)


def test_who_stands_in_the_groups_line_alone_keeps_nobody_waiting(store: Store) -> None:
    place = town(store)
    place.client.zadd("beat:waiting:@g", {"b 2026-01-01T00:00:00Z scheduler": 0, "garbage": 1, "gone x y": 2})
    assert place.fire("a") == Reply("ENDED", "0")
    place.turn()
    assert not place.client.exists("beat:waiting:@g", SLOTS)
    assert place.fire("a") == OK


KEYS = ["beat:running:@g", "beat:waiting:@g", "beat:groups", SLOTS, "beat:waiting:a", "beat:running:a"]


@pytest.mark.parametrize("key", KEYS)
@shows("fire", "BADTYPE")
def test_a_key_that_is_something_else_is_named_and_nothing_is_written(store: Store, key: str) -> None:
    place = town(store)
    place.fire("a")
    place.client.delete(key)
    place.client.set(key, "garbage", px=60_000)
    [item] = place.chain("a")
    claim(store)
    before = everything(store)
    [reply] = store.fire([item], token=TOKEN).replies
    assert reply == Reply("BADTYPE", f"{key} is a string, not a {'hash' if key == 'beat:groups' else 'zset'}")
    assert changed(before, store) == {"beat:schedule:a", "beat:due", "beat:lock:a"}
    assert place.state("a")["next_run"] == item.tick
    assert place.state("a")["last_error"] == reply.words


@shows("close", "BADTYPE")
def test_a_run_of_a_group_that_is_something_else_is_closed_when_it_is_mended(store: Store) -> None:
    place = town(store)
    place.fire("a")
    place.client.rename("beat:running:@g", "aside")
    place.client.set("beat:running:@g", "garbage", px=60_000)
    place.end(place.job("a"))
    before = everything(store)
    place.watcher.look(1)
    assert changed(before, store) <= {"beat:open"}
    place.client.rename("aside", "beat:running:@g")
    place.close()
    assert (place.running("@g"), len(place.lines("a", "succeeded"))) == ([], 1)


# --- who changes meanwhile -------------------------------------------------------------------------------------------


def test_a_schedule_that_leaves_its_group_waits_no_longer(store: Store) -> None:
    place = town(store)
    place.codes("a", "b")
    place.declare(periodic("b"))
    place.turn()
    assert place.queued() == [place.job("a"), place.job("b")]
    assert place.running("@g") == [place.job("a")]
    assert not place.client.exists("beat:waiting:@g", "beat:waiting:b", SLOTS)


def test_a_schedule_that_goes_to_another_group_keeps_nobody_of_the_old_one_waiting(store: Store) -> None:
    place = town(store, "wait 1", "a", "b", "c")
    place.client.hset("beat:groups", "h", "wait 1")
    place.declare(periodic("d", group="h"))
    place.codes("d", "a", "b", "c")
    place.declare(periodic("b", group="h"))
    place.turn()
    assert (place.waiting("@g"), place.waiting("@h")) == (["c 0"], ["b 0"])
    place.succeed(place.job("a"))
    place.turn()
    assert place.running("@g") == [place.job("c")]
    place.succeed(place.job("d"))
    place.turn()
    assert place.running("@h") == [place.job("b")]
    place.one_verdict_each("a", "b", "c", "d")


def test_a_schedule_that_comes_into_a_group_waits_for_its_room(store: Store) -> None:
    place = Town(store, periodic("a", group="g"), periodic("b", overlap="wait"), g="wait 1")
    assert place.codes("b", "b", "a") == ["OK", "WAITS", "OK"]
    place.declare(periodic("b", overlap="wait", group="g"))
    place.succeed(place.job("b"))
    place.turn()
    assert place.waiting("@g") == ["b 1"]
    place.succeed(place.job("a"))
    place.turn()
    assert place.running("@g") == [place.job("b", 1)]


def test_who_is_removed_waits_no_longer_and_gives_its_room_back(store: Store) -> None:
    place = town(store, "wait 1", "a", "b", "c")
    place.codes("a", "b", "c")
    place.client.delete(*place.client.scan_iter("beat:announce*"))
    assert [reply.code for reply in Operations(store).remove([("a", ""), ("b", "")], by="ann")] == ["OK", "OK"]
    assert place.waiting("@g") == ["c 0"]
    place.succeed(place.job("a"))
    place.turn()
    assert place.running("@g") == [place.job("c")]


def test_who_is_deleted_by_hand_waits_no_longer(store: Store) -> None:
    place = town(store, "wait 1", "a", "b", "c")
    place.codes("a", "b", "c")
    place.client.delete("beat:schedule:b")
    place.succeed(place.job("a"))
    place.turn()
    assert place.running("@g") == [place.job("c")]
    assert not place.client.exists("beat:waiting:b", "beat:waiting:@g", SLOTS)


@pytest.mark.parametrize("state", ["paused", "disabled", "retired", "broken"])
def test_the_turn_of_a_tick_that_comes_too_late_is_recorded(store: Store, state: str) -> None:
    place = town(store, "wait 1", "a", "b", "c")
    place.codes("a", "b", "c")
    place.client.hset("beat:schedule:b", "state", state)
    place.succeed(place.job("a"))
    place.turn()
    assert place.reasons("b") == [state]
    assert place.running("@g") == [place.job("c")]
    assert not place.client.exists("beat:waiting:@g", "beat:waiting:b", SLOTS)


def test_who_cannot_be_read_keeps_nobody_else_waiting_and_goes_on_when_it_can(store: Store) -> None:
    place = town(store, "wait 1", "a", "b", "c")
    place.codes("a", "b", "c")
    before = {name: place.state("b")[name] for name in ("definition", "rev")}
    place.client.hset("beat:schedule:b", mapping={"definition": "garbage", "rev": "unknown"})
    place.succeed(place.job("a"))
    place.turn()
    assert place.running("@g") == [place.job("c")]
    assert (place.waiting("@g"), place.waiting("b")) == ([], ["b 0"])  # it steps aside, and is not forgotten
    place.client.hset("beat:schedule:b", mapping=before)
    place.turn()
    assert place.waiting("@g") == ["b 0"]
    place.succeed(place.job("c"))
    place.turn()
    assert place.running("@g") == [place.job("b")]
    place.one_verdict_each("a", "b", "c")


# --- how many there are to be ----------------------------------------------------------------------------------------


def test_ticks_that_wait_for_the_group_are_among_the_last_runs(store: Store) -> None:
    place = town(store, "wait 1", max_runs=2)
    place.fire("a")
    assert place.codes("b", "b") == ["WAITS", "WAITS"]
    assert place.state("b")["state"] == "finished"
    for _ in range(3):
        place.succeed(*place.running("@g"))
        place.turn()
    assert place.state("b")["run_count"] == "2"


def test_ticks_that_the_group_skips_are_none_of_them(store: Store) -> None:
    place = town(store, "skip 1", max_runs=2)
    place.fire("a")
    assert place.codes("b", "b", "b") == ["SKIPPED"] * 3
    assert place.state("b")["state"] == "active"


# --- somebody asks for a run -----------------------------------------------------------------------------------------


@shows("fire", "FULL")
def test_a_run_that_somebody_asks_for_needs_room_unless_it_is_forced(store: Store, server: PrivateRedis) -> None:
    place, client = town(store), Client(server.url, by="ann")
    place.fire("a")
    with pytest.raises(Refused, match=place.job("a")):
        client.trigger("b")
    forced = client.trigger("b", force=True).job_id
    assert place.running("@g") == [place.job("a"), forced]
    place.succeed(place.job("a"))
    assert place.fire("a").code == "WAITS"  # the one that was forced counts
    place.succeed(forced)
    place.turn()
    assert place.running("@g") == [place.job("a", 1)]
    place.succeed(place.job("a", 1))
    assert place.running("@g") == []
    assert client.trigger("b").job_id in place.running("@g")


def test_a_run_that_somebody_asks_for_overtakes_nobody(store: Store, server: PrivateRedis) -> None:
    place = town(store, "wait 1", "a", "b", "c")
    place.codes("a", "b")
    place.succeed(place.job("a"))
    with pytest.raises(Refused):
        Client(server.url).trigger("c")


def test_a_run_is_forced_though_nobody_says_what_the_group_may_have(store: Store, server: PrivateRedis) -> None:
    place = town(store)
    place.client.delete("beat:groups")
    with pytest.raises(Refused, match="HSET"):
        Client(server.url).trigger("a")
    assert Client(server.url).trigger("a", force=True).job_id in place.running("@g")
