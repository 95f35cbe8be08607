"""Locks and scores that lie too far ahead, because Redis' clock was ahead when they were written, are corrected."""

from __future__ import annotations

from typing import Any

import pytest

from beat.doctor import acl
from beat.notify.outbox import Kept
from beat.storage import lifetimes
from beat.storage.lock import Lock
from beat.storage.messages import Reply
from beat.storage.runs import Runs
from beat.storage.slots import Slots
from beat.storage.store import Store
from beat.timing import clock
from tests.support.builders import TOKEN, changed, claim, everything, put, restricted, score, second, shows
from tests.support.hand_made import JOB, close, closing, put_job, put_run, put_schedule, record

DAY_MS = 86_400_000
KEY, TTL = "beat:watching", 450


def far(store: Store) -> int:
    """A day ahead, in ms."""
    return second(store) * 1000 + DAY_MS


# --- locks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("px", [DAY_MS, None], ids=["too long", "for ever"])
@shows("acquire", "CUT")
def test_a_lock_that_lasts_too_long_is_cut_to_its_time(px: int | None, store: Store) -> None:
    store.client.set(KEY, "another", px=px)
    lock = Lock(store.client, KEY, TTL)
    assert not lock.acquire()
    assert lock.was_cut
    assert 0 < store.client.pttl(KEY) <= TTL
    assert store.client.get(KEY) == b"another"


def test_a_lock_that_lasts_no_longer_than_its_time_is_left_alone(store: Store) -> None:
    store.client.set(KEY, "another", px=TTL)
    until: Any = store.client.pexpiretime(KEY)
    assert not Lock(store.client, KEY, TTL).acquire()
    assert store.client.pexpiretime(KEY) == until


@pytest.mark.parametrize("px", [DAY_MS, None], ids=["too long", "for ever"])
def test_a_claim_cuts_the_lock_of_a_schedule_to_its_time(px: int | None, store: Store) -> None:
    put(store, "report", second(store) - 10)
    store.client.set("beat:lock:report", "another", px=px)
    claimed = claim(store, lock_ttl=10_000)
    assert claimed.troubles == (("report", Reply("LOCKED", "10000")),)
    assert 0 < store.client.pttl("beat:lock:report") <= 10_000
    assert score(store) == claimed.now + 10_000


@pytest.mark.parametrize("right", ["pttl", "pexpire", "zadd", "hget"])
def test_a_missing_right_stops_a_claim_before_it_takes_a_lock(right: str, store: Store) -> None:
    put(store, "first", second(store) - 20)
    put(store, "report", second(store) - 10)
    store.client.set("beat:lock:report", "another", px=DAY_MS)
    before = everything(store)
    with restricted(store, f"-{right}") as barred, pytest.raises(Exception, match=right):
        claim(barred)
    assert not changed(before, store)


def test_least_rights_are_enough_to_correct_and_to_hand_on(store: Store) -> None:
    put_schedule(store)
    ids = [f"f{n:03}" for n in range(501)]
    for each in ids:
        put_schedule(store, each, follows="report")
    store.client.sadd("beat:followers:report", *ids)
    put_run(store)
    put(store, "late", second(store) - 10)
    for key in ("beat:lock:late", KEY):
        store.client.set(key, "another", px=DAY_MS)
    for key in ("beat:open", "beat:waiting", "beat:instances", "beat:announcements"):
        store.client.zadd(key, {"other": far(store)})
    grants = acl.rule(store.keys).words()
    with restricted(store, "resetkeys", "-@all", *grants[grants.index("clearselectors") + 1 :]) as least:
        assert close(Runs(least), closing()) == [Reply("OK")]
        for _ in range(3):
            assert Slots(least).follow(token=TOKEN).code == "OK"
        assert [reply.code for _, reply in claim(least).troubles] == ["LOCKED"]
        assert not Lock(least.client, KEY, TTL).acquire()
        Runs(least).observe(limit=10, interval=900)
        Slots(least).attend(limit=10, interval=900)
        least.heartbeat({}, name="web-1", ttl=20_000, digest="", announced_ttl=30_000, judged=0, mark="")
        assert least.repair(["late"]) == [Reply("INDEXED")]
    assert store.client.zcard("beat:waiting") == len(ids) + 1
    assert not store.client.exists("beat:fanout")


def test_a_worker_is_told_again_to_stop_when_its_time_has_come(store: Store) -> None:
    put_job(store, JOB, "started", worker_name="w1")
    store.client.set(f"beat:told:{JOB}", "w1", px=DAY_MS)
    Slots(store).withdraw("report", [JOB], tick="2026-11-16T09:00:00Z", told=90_000)
    assert 0 < store.client.pttl(f"beat:told:{JOB}") <= 90_000


def test_a_repair_cuts_a_lock_and_brings_its_schedule_back(store: Store) -> None:
    """A claim would not meet that lock: the schedule is hidden until it runs out."""
    at = second(store) - 10
    put(store, "report", at)
    store.client.set("beat:lock:report", "another", px=DAY_MS)
    store.client.zadd("beat:due", {"report": far(store)})
    assert store.repair(["report"]) == [Reply("INDEXED")]
    assert 0 < store.client.pttl("beat:lock:report") <= 10_000
    assert score(store) == at * 1000
    assert store.repair(["report"]) == [Reply("LOCKED")]


def test_a_repair_leaves_a_schedule_alone_that_is_locked_and_hidden_as_usual(store: Store) -> None:
    put(store, "report", second(store) - 10)
    claimed = claim(store, lock_ttl=40_000)
    assert Store(store.client, store.keys, longest_lock=40_000).repair(["report"]) == [Reply("LOCKED")]
    assert score(store) == claimed.now + 40_000


def test_a_repair_brings_back_what_is_hidden_for_too_long(store: Store) -> None:
    at = second(store) - 10
    put(store, "report", at)
    store.client.zadd("beat:due", {"report": second(store) * 1000 + lifetimes.HIDDEN_MS + 5_000})
    assert store.repair(["report"]) == [Reply("INDEXED")]
    assert score(store) == at * 1000


def test_a_repair_leaves_a_tick_alone_that_is_far_ahead(store: Store) -> None:
    at = second(store) + 366 * 86_400
    put(store, "report", at)
    assert store.repair(["report"]) == [Reply("SAME")]
    assert score(store) == at * 1000


# --- the clock guard's hold ------------------------------------------------------------------------------------------


def test_a_hold_that_begins_in_the_future_is_undone(store: Store) -> None:
    put(store, "report", second(store) - 10)
    store.hold(far(store), far(store) + 60_000)
    assert [each.id for each in claim(store).claims] == ["report"]
    assert store.client.hmget("beat:meta", "hold_from", "hold_until") == [None, None]


def test_a_hold_is_not_extended_by_those_who_notice_the_same_jump(store: Store) -> None:
    now = second(store) * 1000
    store.hold(now, now + 60_000)
    store.hold(now + 20_000, now + 80_000)
    assert store.client.hget("beat:meta", "hold_until") == str(now + 60_000).encode()
    store.hold(now + 70_000, now + 130_000)
    assert store.client.hget("beat:meta", "hold_until") == str(now + 130_000).encode()


# --- indexes ---------------------------------------------------------------------------------------------------------


def test_an_open_run_that_stands_too_far_ahead_is_looked_at_now(store: Store) -> None:
    put_run(store)
    store.client.zadd("beat:open", {JOB: far(store)})
    seen = Runs(store).observe(limit=10, interval=900)
    assert [each.job for each in seen.sightings] == [JOB]
    assert store.client.zscore("beat:open", JOB) == seen.now + 900


def test_of_many_open_runs_all_that_stand_too_far_ahead_are_looked_at(store: Store) -> None:
    store.client.zadd("beat:open", dict.fromkeys((f"run-{n}" for n in range(2500)), far(store)))
    store.client.hset("beat:records", "run-0", record())
    looked = [Runs(store).observe(limit=1000, interval=900).looked for _ in range(3)]
    assert looked == [1000, 1000, 500]


def test_a_slot_that_stands_too_far_ahead_is_looked_at_now(store: Store) -> None:
    put(store, "report", second(store) + 60)
    store.client.zadd("beat:waiting:report", {"report 2026-11-16T09:00:00Z scheduler": 1})
    store.client.zadd("beat:waiting", {"report": far(store)})
    looked, slots = Slots(store).attend(limit=10, interval=900)
    assert (looked, [slot.id for slot in slots]) == (1, ["report"])


def test_a_slot_that_was_put_aside_stays_there(store: Store) -> None:
    put(store, "report", second(store) + 60)
    store.client.zadd("beat:waiting:report", {"report 2026-11-16T09:00:00Z scheduler": 1})
    store.client.zadd("beat:waiting", {"report": second(store) * 1000 + lifetimes.HIDDEN_MS})
    assert Slots(store).attend(limit=10, interval=900) == (0, [])


def test_a_message_that_stands_too_far_ahead_is_handed_out_after_the_lease(store: Store) -> None:
    kept = Kept(store, "shop")
    place = "beat:deliveries:shop.chat"
    store.client.zadd(place, {"incident 1": far(store)})
    store.client.hset("beat:messages:shop.chat", "incident 1", "{}")
    store.client.pexpire(place, DAY_MS), store.client.pexpire("beat:messages:shop.chat", DAY_MS)
    reply = kept.hand("chat", lease=5_000)
    assert isinstance(reply, Reply)
    assert (reply.code, int(reply.words) <= 5_000) == ("NONE", True)


def test_a_heartbeat_cuts_the_heartbeats_and_announcements_of_the_dead(store: Store) -> None:
    store.announce({"report": "r1"}, digest="theirs", ttl=DAY_MS)
    told: dict[str, Any] = {"digest": "theirs", "announced_ttl": DAY_MS, "judged": 0, "mark": ""}
    store.heartbeat({}, name="dead", ttl=DAY_MS, **told)
    store.announce({"report": "r1"}, digest="mine", ttl=lifetimes.ANNOUNCED_MS)
    told = {"digest": "", "announced_ttl": lifetimes.ANNOUNCED_MS, "judged": 0, "mark": ""}
    store.heartbeat({}, name="alive", ttl=lifetimes.HEARTBEAT_MS, **told)
    assert 0 < store.client.pttl("beat:instance:dead") <= lifetimes.HEARTBEAT_MS
    assert 0 < store.client.pttl("beat:announced:theirs") <= lifetimes.ANNOUNCED_MS
    now = clock.to_ms(store.time())
    for index, most in lifetimes.indexes(store.keys, 0).items():
        assert store.client.zcount(index, now + most + 1, "+inf") == 0


# --- the highest sound time ------------------------------------------------------------------------------------------


def beat(store: Store, judged: int) -> None:
    store.heartbeat({}, name="b1", ttl=20_000, digest="", announced_ttl=30_000, judged=judged, mark=f"boot 1 {judged}")


def test_a_time_is_not_sound_before_the_hold_has_ended(store: Store) -> None:
    store.announce({"report": "r1"}, digest="mine", ttl=30_000)
    now = second(store) * 1000
    beat(store, now - 20_000)
    before = store.high_water()
    store.hold(now - 10_000, now - 1_000)
    beat(store, now - 5_000)
    assert store.high_water() == before
    beat(store, now - 500)
    assert store.high_water() == (clock.text(clock.from_ms(now - 500)), f"boot 1 {now - 500}")


def test_a_time_that_lies_ahead_of_redis_is_not_sound(store: Store) -> None:
    store.announce({"report": "r1"}, digest="mine", ttl=30_000)
    beat(store, now := second(store) * 1000)
    before = store.high_water()
    beat(store, now + DAY_MS)
    assert store.high_water() == before


# --- slow runs -------------------------------------------------------------------------------------------------------


def test_a_slow_run_that_ended_in_the_future_does_not_count(store: Store) -> None:
    put(store, "report", at := second(store) - 10, slow="500 2 60000")
    store.client.zadd("beat:slow:report", {"one": far(store), "two": at * 1000})
    store.client.pexpire("beat:slow:report", 60_000)
    [claimed] = claim(store).claims
    assert claimed.told.slow == 1


def test_of_slow_runs_those_that_ended_in_the_future_do_not_outlive_the_newest(store: Store) -> None:
    put(store, "report", second(store) + 60, slow="500 1 60000")
    store.client.zadd("beat:slow:report", {"ahead": far(store)})
    store.client.pexpire("beat:slow:report", 60_000)
    seen = put_run(store)
    assert close(Runs(store), closing(JOB, seen=seen, duration="3.1")) == [Reply("OK")]
    assert store.client.zrange("beat:slow:report", 0, -1) == [JOB.encode()]


# --- outcomes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "fields", "streak"),
    [
        ("failed", {"last_success": "2999-01-01T00:00:00Z"}, "1"),
        ("succeeded", {"last_failure": "2999-01-01T00:00:00Z", "consecutive_failures": "3"}, "0"),
    ],
)
def test_an_outcome_in_the_future_hides_none_that_comes_now(
    outcome: str, fields: dict[str, str], streak: str, store: Store
) -> None:
    put(store, "report", second(store) + 60, **fields)
    seen = put_run(store)
    assert close(Runs(store), closing(JOB, seen=seen, outcome=outcome)) == [Reply("OK")]
    assert store.client.hget("beat:schedule:report", "consecutive_failures") == streak.encode()
