"""Heartbeats and announcements: who is alive, which definitions live beats have, and whether somebody flushed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from beat.storage.messages import Reply
from beat.timing import clock
from tests.support.builders import LONG, changed, everything, put, second, shows
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from beat.storage.store import Store

INSTANCE = "beat:instance:b1"


def beat(store: Store, fields: dict[str, str] | None = None, **options: Any) -> Reply:
    given: dict[str, Any] = {
        "name": "b1",
        "ttl": LONG,
        "digest": "d1",
        "announced_ttl": LONG,
        "judged": 0,
        "mark": "boot 5 0",
    }
    return store.heartbeat(fields or {}, **{**given, **options})


def seen_at(store: Store) -> int:
    """When the heartbeat was taken, in ms."""
    found: Any = store.client.hget(INSTANCE, "seen_at")
    return clock.to_ms(clock.read(found.decode()))


def announce(store: Store, digest: str = "d1", ttl: int = LONG, **revs: str) -> Reply:
    return store.announce(revs or {"report": "r1"}, digest=digest, ttl=ttl)


def live(store: Store) -> list[str]:
    found: Any = store.client.zrange("beat:announcements", 0, -1)
    return [each.decode() for each in found]


@pytest.fixture
def whole(store: Store) -> Store:
    """As a beat leaves it that has registered and announced."""
    announce(store)
    put(store, "report", second(store) + 600)
    return store


# --- announcing ------------------------------------------------------------------------------------------------------


@shows("announce", "OK")
def test_what_is_announced_lasts_for_a_while(store: Store) -> None:
    assert announce(store, a="r1", b="r2") == Reply("OK")
    assert store.client.hgetall("beat:announced:d1") == {b"a": b"r1", b"b": b"r2"}
    expires = store.client.pexpiretime("beat:announced:d1")
    assert abs(expires - second(store) * 1000 - LONG) < 5_000
    assert abs((store.client.zscore("beat:announcements", "d1") or 0) - expires) <= 1


def test_all_live_digests_are_kept(store: Store) -> None:
    announce(store, "d1")
    announce(store, "d2", ttl=LONG // 2)
    announce(store, "d3")
    assert sorted(live(store)) == ["d1", "d2", "d3"]


def test_an_announcement_notes_the_format(store: Store) -> None:
    announce(store)
    assert store.client.hget("beat:meta", "format") == b"1"


def test_an_announcement_lapses(store: Store) -> None:
    announce(store, "short", ttl=50)
    wait_until(lambda: announce(store, "long") and live(store) == ["long"])
    wait_until(lambda: not store.client.exists("beat:announced:short"))  # its own time begins later


def test_thousands_are_announced_page_by_page(store: Store) -> None:
    revs = {f"s{n}": f"r{n}" for n in range(1_700)}
    assert store.announce(revs, digest="d1", ttl=LONG) == Reply("OK")
    assert store.client.hgetall("beat:announced:d1") == {k.encode(): v.encode() for k, v in revs.items()}
    assert store.client.pttl("beat:announced:d1") > 0


def test_announce_keeps_the_parameters_of_functions_until_the_function_lapses(store: Store) -> None:
    store.announce({"report": "r1"}, ["app.f", "app.g"], {"app.f": "{}", "app.g": "{}"}, digest="d1", ttl=LONG)
    assert store.client.hgetall("beat:signatures:default") == {b"app.f": b"{}", b"app.g": b"{}"}
    store.announce({"report": "r1"}, ["app.f", "app.g"], {"app.f": "{1}"}, digest="d1", ttl=LONG)
    assert store.client.hgetall("beat:signatures:default") == {b"app.f": b"{1}"}
    store.client.zadd("beat:functions", {"app.f": 1})
    store.announce({}, ["app.g"], digest="d1", ttl=LONG)
    assert not store.client.exists("beat:signatures:default")
    assert store.client.zrange("beat:functions", 0, -1) == [b"app.g"]


@pytest.mark.parametrize("key", ["beat:announced:d1", "beat:announcements", "beat:signatures:default"])
@shows("announce", "BADTYPE")
def test_an_announcement_of_the_wrong_type_is_refused_before_any_write(key: str, store: Store) -> None:
    store.client.set(key, "garbage", px=LONG)
    before = everything(store)
    announce(store)
    assert not changed(before, store)


@pytest.mark.parametrize(
    ("key", "kind"),
    [("beat:announced:d1", "hash"), ("beat:announcements", "zset"), ("beat:signatures:default", "hash")],
)
def test_a_refusal_names_the_key(key: str, kind: str, store: Store) -> None:
    store.client.set(key, "garbage", px=LONG)
    assert announce(store) == Reply("BADTYPE", f"{key} is a string, not a {kind}")


# --- the heartbeat ---------------------------------------------------------------------------------------------------


@shows("heartbeat", "OK")
def test_a_heartbeat_shows_who_is_alive_and_lasts_for_a_while(whole: Store) -> None:
    assert beat(whole, {"host": "h", "pid": "7"}, ttl=20_000) == Reply("OK", "d1")
    now = seen_at(whole)
    assert abs(now - second(whole) * 1000) < 5_000
    found: Any = whole.client.hgetall(INSTANCE)
    del found[b"seen_at"]
    assert found == {b"host": b"h", b"pid": b"7"}
    assert abs(whole.client.pexpiretime(INSTANCE) - now - 20_000) <= 1
    assert whole.client.zrange("beat:instances", 0, -1, withscores=True) == [(b"b1", now + 20_000)]


def test_a_heartbeat_renews_what_is_announced(whole: Store) -> None:
    announce(whole, ttl=5_000)
    beat(whole)
    now = seen_at(whole)
    assert abs(whole.client.pexpiretime("beat:announced:d1") - now - LONG) <= 1
    assert whole.client.zscore("beat:announcements", "d1") == now + LONG


def test_a_heartbeat_changes_nothing_else(whole: Store) -> None:
    before = everything(whole)
    beat(whole)
    assert changed(before, whole) == {
        INSTANCE, "beat:instances", "beat:announced:d1", "beat:announcements", "beat:meta",
    }  # fmt: skip


def test_a_beat_that_has_no_schedules_announces_nothing(whole: Store) -> None:
    before = everything(whole)
    assert beat(whole, digest="") == Reply("OK", "d1")
    assert changed(before, whole) == {INSTANCE, "beat:instances", "beat:meta"}


def test_a_beat_that_is_silent_lapses_and_its_name_is_remembered_for_15_minutes(whole: Store) -> None:
    beat(whole, name="silent", ttl=50)
    wait_until(lambda: not whole.client.exists("beat:instance:silent"))
    beat(whole)
    assert whole.client.zrange("beat:instances", 0, -1) == [b"silent", b"b1"]
    whole.client.zincrby("beat:instances", -15 * 60 * 1000, "silent")
    beat(whole)
    assert whole.client.zrange("beat:instances", 0, -1) == [b"b1"]


def test_a_registry_that_nobody_renews_lapses(whole: Store) -> None:
    announce(whole, "silent", ttl=50)
    wait_until(lambda: beat(whole) and live(whole) == ["d1"])


def test_a_beat_that_leaves_takes_its_heartbeat_away_and_its_announcement_lingers(whole: Store) -> None:
    beat(whole)
    whole.leave(name="b1", digest="d1", linger=10_000)
    assert not whole.client.exists(INSTANCE, "beat:instances")
    assert 0 < whole.client.pttl("beat:announced:d1") <= 10_000


# --- the highest time ------------------------------------------------------------------------------------------------


def test_the_highest_time_that_was_found_sound_is_kept_with_its_mark(whole: Store) -> None:
    for judged in (7_000, 9_123, 8_000):
        beat(whole, judged=judged, mark=f"boot 5 {judged}")
    assert whole.high_water() == ("1970-01-01T00:00:09.123Z", "boot 5 9123")


def test_a_clock_that_went_back_leaves_the_highest_time(whole: Store) -> None:
    ahead = clock.text(clock.at(second(whole) + 3_600))
    whole.client.hset("beat:meta", mapping={"time": ahead, "mark": "theirs"})
    assert beat(whole, judged=second(whole) * 1000).code == "OK"
    assert whole.high_water() == (ahead, "theirs")


def test_a_highest_time_that_cannot_be_read_is_replaced(whole: Store) -> None:
    whole.client.hset("beat:meta", mapping={"time": "abc", "mark": "theirs"})
    beat(whole, judged=7_000)
    assert whole.high_water()[0] == "1970-01-01T00:00:07.000Z"


# --- refused ---------------------------------------------------------------------------------------------------------


@shows("heartbeat", "LOST")
def test_after_a_flush_the_beat_is_told_and_shown_alive(whole: Store) -> None:
    whole.client.flushall()
    assert beat(whole) == Reply("LOST")
    assert everything(whole).keys() == {INSTANCE, "beat:instances"}


@shows("heartbeat", "LOST")
def test_an_announcement_that_is_gone_is_told(whole: Store) -> None:
    whole.client.delete("beat:announced:d1")
    assert beat(whole).code == "LOST"
    announce(whole)
    assert beat(whole).code == "OK"


@pytest.mark.parametrize("key", [INSTANCE, "beat:instances", "beat:announced:d1", "beat:announcements", "beat:meta"])
@shows("heartbeat", "BADTYPE")
def test_a_key_of_the_wrong_type_is_named_and_nothing_is_written(key: str, whole: Store) -> None:
    whole.client.delete(key)
    whole.client.rpush(key, "garbage")
    whole.client.pexpire(key, LONG)
    before = everything(whole)
    reply = beat(whole)
    assert reply.code == "BADTYPE"
    assert reply.words.startswith(f"{key} is a list, not a ")
    assert not changed(before, whole)
