"""Retirement: what a beat does about schedules that the code no longer declares, and what it must not touch."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.history.history import Action, Passed
from beat.timing import clock
from beat.timing.interval import Every
from tests.support.builders import TOKEN, changed, claim, everything, hash_of, put_and_claim, verdict
from tests.support.facts import wait_until
from tests.support.rq_versions import Code, schedule

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

AT_ONCE = timedelta(0)


def put_back(store: Store, schedule_id: str, seconds: int) -> str:
    """Its next tick, one of every ten seconds, has been due for so long."""
    now = clock.floor(store.time())
    tick = clock.text(clock.at(now - now % 10 - seconds))
    store.client.hset(f"beat:schedule:{schedule_id}", mapping={"next_run": tick, "due_at": tick})
    store.client.zadd("beat:due", {schedule_id: clock.to_ms(clock.read(tick))})
    return tick


# --- held, retired, returned -----------------------------------------------------------------------------------------


def test_what_is_gone_from_the_code_is_held_once_no_live_beat_declares_it(store: Store) -> None:
    old, new = Code(store, schedule("a"), schedule("b")).start(), Code(store, schedule("a")).start()
    new.heartbeat()
    assert "unannounced_at" not in hash_of(store, "b"), "the old version lives"
    old.end()
    new.heartbeat()
    assert "unannounced_at" in hash_of(store, "b")
    put_back(store, "b", 10)
    assert claim(store).claims == ()
    for _ in range(3):
        new.heartbeat()
    [held] = [event for event in new.events if event.name == "held"]
    assert (held.schedule_id, held.fields["when"]) == ("b", "in 900 s"), "said once"
    assert "unannounced_at" not in hash_of(store, "a")


def test_it_is_retired_in_the_end_and_the_ticks_that_were_held_are_one_skip(store: Store, server: PrivateRedis) -> None:
    Code(store, schedule("a"), schedule("b", timing=Every("10s"))).start().end()
    new = Code(store, schedule("a"), after=AT_ONCE).start()
    tick = put_back(store, "b", 90)
    store.client.hset("beat:schedule:b", "created_at", tick)
    new.heartbeat()
    assert new.told() == [("retired", "b")]
    retired, skipped, *_ = Client(server.url).history("b")
    assert isinstance(retired, Action)
    assert isinstance(skipped, Passed)
    assert (retired.type, skipped.reason, clock.text(skipped.first)) == ("retired", "retired", tick)
    assert skipped.count == 1 + (skipped.last - skipped.first) // timedelta(seconds=10) >= 10
    state = hash_of(store, "b")
    assert (state["state"], state["skip_count"]) == ("retired", str(skipped.count))
    assert clock.read(state["next_run"]) == skipped.last + timedelta(seconds=10)


@pytest.mark.parametrize("was", ["held", "retired"])
def test_it_returns_when_it_is_declared_again_and_goes_on_from_now(
    store: Store, server: PrivateRedis, was: str
) -> None:
    old = Code(store, schedule("a"), schedule("b", timing=Every("10s"))).start()
    old.end()
    new = Code(store, schedule("a"), after=AT_ONCE if was == "retired" else timedelta(hours=1)).start()
    new.heartbeat()
    version = hash_of(store, "b")["version"]
    again = Code(store, schedule("a"), schedule("b", timing=Every("10s"))).start()
    state = hash_of(store, "b")
    assert (state["state"], state["app"], "unannounced_at" in state) == ("active", "default", False)
    assert store.client.sismember("beat:app:default", "b")
    assert again.told()[0] == ("returned", "b")
    assert again.events[0].fields == {"was": was}
    assert clock.read(state["next_run"]) > store.time() - timedelta(seconds=1)
    assert (state["version"] == version) == (was == "held")
    assert all(each.sound for each in Client(server.url).verify())
    assert [each.id for each in claim(store, lookahead=60_000).claims] == ["b"]


def test_verify_and_why_know_the_time_in_which_it_was_retired(store: Store, server: PrivateRedis) -> None:
    Code(store, schedule("a"), schedule("b", timing=Every("1s"))).start().end()
    Code(store, schedule("a"), after=AT_ONCE).start().heartbeat()
    retired = clock.read(hash_of(store, "b")["next_run"])
    wait_until(lambda: store.time() > retired + timedelta(seconds=2))  # ticks that nobody misses
    Code(store, schedule("a"), schedule("b", timing=Every("1s"))).start()
    client = Client(server.url)
    [verified] = client.verify("b")
    assert verified.sound
    assert (len(verified.missing), len(verified.double)) == (0, 0)
    assert client.why("b", retired + timedelta(seconds=1)).answer == "not_a_tick"


def test_a_pause_outlives_the_deploys_in_which_the_schedule_is_gone(store: Store, server: PrivateRedis) -> None:
    Code(store, schedule("a"), schedule("b")).start().end()
    client = Client(server.url, by="ann")
    client.pause("b", reason="the supplier is down")
    new = Code(store, schedule("a"), after=AT_ONCE).start()
    new.heartbeat()
    assert [event.fields["when"] for event in new.events if event.name == "held"] == ["when its pause has ended"]
    new.end()
    Code(store, schedule("a"), schedule("b")).start()
    state = hash_of(store, "b")
    assert (state["state"], state["pause_reason"]) == ("paused", "the supplier is down")
    assert "unannounced_at" not in state


def test_once_resumed_it_is_retired(store: Store, server: PrivateRedis) -> None:
    Code(store, schedule("a"), schedule("b")).start().end()
    client = Client(server.url, by="ann")
    client.pause("b")
    new = Code(store, schedule("a"), after=AT_ONCE).start()
    new.heartbeat()
    client.resume("b")
    new.heartbeat()
    assert hash_of(store, "b")["state"] == "retired"


def test_runs_that_are_open_when_it_is_retired_are_closed_into_its_ledger(store: Store) -> None:
    Code(store, schedule("a"), schedule("b")).start().end()
    store.client.zadd("beat:open", {"beat_b_1": 1})
    store.client.hset("beat:records", "beat_b_1", '{"schedule":"b"}')
    store.client.zadd("beat:running:b", {"beat_b_1": 1})
    Code(store, schedule("a"), after=AT_ONCE).start().heartbeat()
    assert hash_of(store, "b")["state"] == "retired"
    assert store.client.zscore("beat:open", "beat_b_1") == 1
    assert store.client.zscore("beat:running:b", "beat_b_1") == 1


# --- what is left alone ----------------------------------------------------------------------------------------------


def test_two_applications_never_retire_each_others_schedules(store: Store) -> None:
    Code(store, schedule("ours"), app="shop").start().end()
    other = Code(store, schedule("theirs"), app="billing", after=AT_ONCE).start()
    before = hash_of(store, "ours")
    other.heartbeat()
    assert (hash_of(store, "ours"), other.told()) == (before, [])
    assert [each.id for each in claim(store, lookahead=4_000_000).claims] == ["ours", "theirs"], "any beat fires it"


def test_a_beat_without_schedules_retires_nothing(store: Store) -> None:
    Code(store, schedule("a")).start().end()
    none = Code(store, after=AT_ONCE).start()
    before = everything(store)
    none.heartbeat()
    assert changed(before, store) <= {"beat:instances", "beat:instance:none", "beat:meta"}


def test_schedules_from_data_are_nobodys_to_retire(store: Store, server: PrivateRedis) -> None:
    store.announce({}, ["app.tasks.x"], digest="d", ttl=60_000)
    Client(server.url).add("customer", func="app.tasks.x", cron="@daily")
    code = Code(store, schedule("a"), after=AT_ONCE).start()
    code.heartbeat()
    assert (hash_of(store, "customer")["state"], code.told()) == ("active", [])


def test_one_that_is_refused_does_not_hide_one_that_is_gone(store: Store, server: PrivateRedis) -> None:
    """The set of the application is as large as the code, and yet one of it is declared no more."""
    Code(store, schedule("a"), schedule("gone")).start().end()
    store.announce({}, ["app.tasks.x"], digest="d", ttl=60_000)
    Client(server.url).add("taken", func="app.tasks.x", cron="@daily")
    code = Code(store, schedule("a"), schedule("taken"), after=AT_ONCE).start()
    code.heartbeat()
    assert code.told() == [("refused", "taken"), ("retired", "gone")]


def test_two_beats_of_one_version_keep_what_they_declare_when_one_of_them_leaves(store: Store) -> None:
    one, other = Code(store, schedule("a"), schedule("b")).start(), Code(store, schedule("a"), schedule("b")).start()
    new = Code(store, schedule("a"), after=AT_ONCE).start()
    store.leave(name="one", digest=one.sync.digest, linger=10_000)
    other.heartbeat()
    new.heartbeat()
    assert hash_of(store, "b")["state"] == "active"
    lapses: Any = store.client.zscore("beat:announcements", one.sync.digest)
    assert lapses > clock.to_ms(store.time()) + 20_000
    assert new.told() == []


def test_who_leaves_is_told_from_the_others_as_soon_as_its_announcement_lapses(store: Store) -> None:
    old, new = Code(store, schedule("a"), schedule("b")).start(), Code(store, schedule("a")).start()
    old.heartbeat()
    store.leave(name="old", digest=old.sync.digest, linger=10_000)
    lapses: Any = store.client.zscore("beat:announcements", old.sync.digest)
    assert store.client.pttl(store.keys.announced(old.sync.digest)) <= 10_000
    assert lapses - clock.to_ms(store.time()) <= 10_000
    assert new.told() == []


def test_a_tick_that_was_claimed_before_its_schedule_was_held_is_fired_once(store: Store) -> None:
    at = put_and_claim(store, "b")
    Code(store, schedule("a")).start().heartbeat()
    assert "unannounced_at" in hash_of(store, "b")
    assert [reply.code for reply in store.fire([verdict(at, "b")], token=TOKEN).replies] == ["OK"]
    assert "b" not in [each.id for each in claim(store, lookahead=100_000).claims]


def test_a_tick_that_was_claimed_long_before_its_schedule_was_retired_is_not_fired(store: Store) -> None:
    at = put_and_claim(store, "b")
    Code(store, schedule("a"), after=AT_ONCE).start().heartbeat()
    assert [reply.code for reply in store.fire([verdict(at, "b")], token=TOKEN).replies] == ["STALE"]
    assert (hash_of(store, "b")["state"], store.client.exists("beat:lock:b")) == ("retired", 0)


# --- overrides and flushes -------------------------------------------------------------------------------------------


def test_an_override_survives_a_deploy_and_this_is_said_once(store: Store, server: PrivateRedis) -> None:
    Code(store, schedule("a")).start().end()
    client = Client(server.url, by="ann@desk")
    client.reschedule("a", "0 4 * * *")
    next_run = hash_of(store, "a")["next_run"]
    new = Code(store, schedule("a", timing=Every("2h"), queue="x")).start()
    for _ in range(3):
        new.heartbeat()
    Code(store, schedule("a", timing=Every("2h"), queue="x")).start()
    state = hash_of(store, "a")
    assert (state["next_run"], state["cron"], state["queue"]) == (next_run, "0 4 * * *", "x")
    told = [event.fields for event in new.events if event.name == "overridden"]
    assert told == [{"by": "ann@desk", "rule": "0 4 * * *", "code": "every 2h"}]
    client.reschedule("a", reset=True)
    assert (hash_of(store, "a")["every"], hash_of(store, "a")["rev"]) == ("2h", new.sync.schedules["a"].rev)


def test_a_flush_takes_pauses_and_overrides_with_it_and_the_code_comes_back(store: Store, server: PrivateRedis) -> None:
    code = Code(store, schedule("paused"), schedule("ruled")).start()
    client = Client(server.url)
    client.pause("paused")
    client.reschedule("ruled", "0 4 * * *")
    store.client.flushall()
    code.heartbeat()
    assert {event.name for event in code.events} >= {"reseeded"}
    assert [hash_of(store, each)["state"] for each in ("paused", "ruled")] == ["active", "active"]
    assert hash_of(store, "ruled")["every"] == "1h"
    assert store.client.smembers("beat:app:default") == {b"paused", b"ruled"}
    code.heartbeat()
    assert all(each.sound for each in client.verify())
