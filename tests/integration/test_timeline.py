"""The load of an installation on a real Redis: what lies in ledgers and hashes, counted and bounded."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from beat import Client
from beat.client import reader, timeline
from beat.engine.run_tracker import Watcher
from beat.errors import BadOption, BadZone
from beat.history import ledger
from beat.timing import clock
from tests.support.builders import TOKEN, Calls, everything, put_and_claim, verdict
from tests.support.hand_made import put_job
from tests.support.lines import MINUTE, SECOND, Ledger

if TYPE_CHECKING:
    from datetime import datetime

    from redis import Redis

    from beat.client.timeline import Timeline
    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

HOUR = timedelta(hours=1)
HOURLY = {"cron": "0 * * * *", "tz": "UTC"}


@pytest.fixture
def client(redis: Redis, server: PrivateRedis) -> Client:  # noqa: ARG001 (it empties the server)
    return Client(server.url)


@pytest.fixture
def now(client: Client) -> datetime:
    return client.now()


def minutely(schedule_id: str, now: datetime, ended: str = "succeeded", runs: int = 3) -> Ledger:
    """The last ticks of a minutely schedule, oldest first; the one to come is the next full minute."""
    last = now.replace(second=0, microsecond=0)
    book = Ledger(schedule_id).registered(now - 30 * HOUR, last - runs * MINUTE)
    for n in range(runs, 0, -1):
        book.fired(last - n * MINUTE).ended(last - n * MINUTE, ended)
    book.next = last + MINUTE
    return book


def total(found: Timeline, word: str) -> int:
    return sum(getattr(each, word) for each in found.slices)


def test_the_past_and_the_future_lie_on_their_sides_of_now(client: Client, redis: Redis, now: datetime) -> None:
    minutely("good", now).keep(redis)
    bad = minutely("bad", now, "failed", runs=2)
    bad.fired(now - 5 * SECOND, bad.next).keep(redis)
    found = client.timeline(1)
    assert {word: total(found, word) for word in ("succeeded", "failed", "open", "enqueued")} == {
        "succeeded": 3, "failed": 2, "open": 1, "enqueued": 6,
    }  # fmt: skip
    assert all(not each.coming for each in found.slices if each.end <= found.now)
    assert all(not each.enqueued for each in found.slices if each.start >= found.now)
    assert 2 * 60 <= total(found, "coming") <= 2 * 63, "an hour, and the rest of the last slice"
    assert (found.schedules, found.active, found.partial, found.whole_from) == (2, 2, 0, None)


def test_slices_are_cut_in_the_zone_that_is_asked_for(client: Client) -> None:
    found = client.timeline(24, slices=71, tz="Asia/Kolkata")
    assert found.step == HOUR
    assert {each.start.minute for each in found.slices if each.start != found.now} == {30}


def test_of_schedules_that_are_not_active_only_the_past_is_seen(client: Client, redis: Redis, now: datetime) -> None:
    minutely("paused", now).keep(redis, state="paused")
    found = client.timeline()
    assert (total(found, "succeeded"), total(found, "coming")) == (3, 0)
    assert (found.schedules, found.active, found.overdue) == (1, 0, 0)


def test_ticks_that_no_beat_has_decided_are_told_apart(client: Client, redis: Redis, now: datetime) -> None:
    book = minutely("late", now)
    book.next = now.replace(second=0, microsecond=0) - 4 * MINUTE
    book.keep(redis)
    assert client.timeline().overdue in {5, 6}


def test_schedules_that_are_due_at_once_are_named(client: Client, redis: Redis, now: datetime) -> None:
    following = now.replace(minute=0, second=0, microsecond=0) + HOUR
    for n in range(12):
        book = Ledger(f"hourly{n:02}", HOURLY).registered(now, following)
        book.keep(redis)
    [found] = client.timeline(4).pile_ups
    assert (found.at, found.schedules) == (following, 12)
    assert found.times in {4, 5}
    assert found.names == tuple(f"hourly{n:02}" for n in range(10))


def test_a_ledger_that_was_trimmed_makes_the_picture_partial(client: Client, redis: Redis, now: datetime) -> None:
    book = minutely("trimmed", now)
    del book.entries[0]
    book.keep(redis)
    found = client.timeline()
    assert (found.partial, found.whole_from) == (1, book.entries[0].at)


def test_an_empty_redis_has_an_empty_timeline(client: Client) -> None:
    found = client.timeline()
    assert (found.schedules, found.pile_ups, total(found, "coming"), total(found, "enqueued")) == (0, (), 0, 0)


@pytest.mark.parametrize("hours", [0, 169, -1, 1.5, True, "24"])
def test_hours_are_a_whole_number_up_to_a_week(client: Client, hours: Any) -> None:
    with pytest.raises(BadOption, match=r"hours .* must be a whole number from 1 to 168, as in hours=1"):
        client.timeline(hours)


def test_slices_and_zones_that_make_no_sense_are_refused(client: Client) -> None:
    with pytest.raises(BadOption, match="slices 5 must be a whole number from 20 to 1,000"):
        client.timeline(slices=5)
    with pytest.raises(BadZone):
        client.timeline(tz="Berlin")


def test_a_rule_that_cannot_be_read_is_counted_and_its_past_is_seen(
    client: Client, redis: Redis, now: datetime
) -> None:
    minutely("strange", now).keep(redis, rule="{", definition="[]")
    found = client.timeline()
    assert (found.unreadable, total(found, "succeeded"), total(found, "coming")) == (1, 3, 0)


def test_keys_of_another_type_are_passed_over(client: Client, redis: Redis, now: datetime) -> None:
    minutely("good", now).keep(redis)
    redis.sadd("beat:schedules", "text", "no-ledger", "gone")
    redis.set("beat:schedule:text", "x")
    Ledger("no-ledger").keep(redis, next_run="tomorrow")
    redis.set("beat:runs:no-ledger", "x")
    redis.rpush("beat:runs:good", "\x00", "[]", '{"type":"enqueued"}')
    found = client.timeline()
    assert (found.schedules, total(found, "succeeded")) == (2, 3)


def test_a_timeline_writes_nothing(client: Client, store: Store, redis: Redis, now: datetime) -> None:
    minutely("good", now).keep(redis)
    before = everything(store)
    client.timeline(168)
    assert everything(store) == before


def test_no_more_is_read_of_a_ledger_than_its_rule_makes_likely(
    client: Client, store: Store, redis: Redis, now: datetime
) -> None:
    """However long the ledgers are, and in a few round trips."""
    for n in range(50):
        book = Ledger(f"s{n}", HOURLY).registered(now - 900 * HOUR, now)
        hour = now.replace(minute=0, second=0, microsecond=0)
        for back in range(400, 0, -1):
            book.fired(hour - back * HOUR).ended(hour - back * HOUR)
        book.keep(redis)
    with mock.patch.object(timeline, "glance", side_effect=timeline.glance) as glance:
        calls = Calls(store)
        found = client.timeline(6)
    assert total(found, "succeeded") in {50 * 5, 50 * 6, 50 * 7}
    assert glance.call_count <= 50 * (2 * 8 + 1)
    assert calls.count()["lrange"] == 50


def test_ledgers_are_read_in_pages(client: Client, redis: Redis, now: datetime) -> None:
    for n in range(25):
        minutely(f"s{n}", now).keep(redis)
    with mock.patch.object(reader, "_LINES", 100):
        assert total(client.timeline(), "succeeded") == 75


def test_lines_as_scripts_and_watcher_write_them_are_seen_at_a_glance(client: Client, store: Store) -> None:
    at = put_and_claim(store)
    job = f"beat_report_{at}"
    assert [reply.code for reply in store.fire([verdict(at)], token=TOKEN).replies] == ["OK"]
    put_job(store, job)
    store.client.zadd(store.keys.open, {job: 0})
    Watcher(store, name="beat-1", emit=lambda _: None).turn()
    with mock.patch.object(ledger, "read", side_effect=ledger.read) as read:
        assert total(client.timeline(1), "succeeded") == 1
    assert read.call_count == 1, "of the line that says that it was registered"


def test_who_has_jitter_is_known(client: Client, redis: Redis, now: datetime) -> None:
    ids = [f"s{n:02}" for n in range(12)]
    tick = (now + HOUR / 2).replace(second=0, microsecond=0)
    rule = json.dumps({"cron": f"{tick.minute} * * * *", "tz": "UTC"})
    for each in ids:
        minutely(each, now).keep(redis)
        redis.hset(f"beat:schedule:{each}", mapping={"rule": rule, "next_run": clock.text(tick)})
    assert [pile.schedules for pile in client.timeline(1).pile_ups] == [12]
    for each in ids[:5]:
        redis.hset(f"beat:schedule:{each}", "jitter", "30s")
    assert client.timeline(1).pile_ups == ()
