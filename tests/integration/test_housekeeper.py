"""Heartbeats, repair, and the watch over the ticker."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from redis import exceptions

from beat.engine import housekeeper
from beat.engine.clock_guard import Mark
from beat.engine.definition_cache import Book
from beat.engine.events import Event
from beat.engine.health import Health
from beat.engine.housekeeper import LINGER_MS, Housekeeper
from beat.engine.registrar import Sync
from beat.engine.run_tracker import Watcher
from beat.engine.waiting import Attendant
from beat.schedule.schedule import Schedule
from beat.storage.lifetimes import ANNOUNCED_MS, HEARTBEAT_MS, REPAIRING_MS
from beat.storage.lock import Lock
from beat.timing import clock
from beat.timing.interval import Every
from tests.support.facts import wait_until
from tests.support.hand_made import ledger, put_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis import Redis

    from beat.storage.store import Store

GOES_ON = threading.Event()
NOW_MS = 1_794_819_600_000


def schedule(schedule_id: str, **given: Any) -> Schedule:
    return Schedule(**{"id": schedule_id, "func": "app.tasks.report", "timing": Every("1h"), **given})


class House:
    """A housekeeper of some schedules, which are registered already."""

    def __init__(self, store: Store, *ids: str, name: str = "beat-1") -> None:
        self.store = store
        self.events: list[Event] = []
        self.sound = Mark("boot", 5, 5, NOW_MS)
        self.health = Health(self.events.append)
        self.sync = Sync(store, [schedule(each) for each in ids], beat=name, emit=self.events.append)
        self.sync.announce()
        self.sync.register()
        watcher = Watcher(store, name=name, emit=self.events.append)
        self.keeper = Housekeeper(
            store,
            self.sync,
            watcher,
            Attendant(store, Book(store), watcher, token=name, emit=self.events.append),
            name=name,
            about=lambda: {"host": "here", "pid": "7"},
            judged=lambda: self.sound,
            emit=self.events.append,
            health=self.health,
        )
        self.events.clear()

    def turn(self, *, repair: bool = False) -> None:
        if repair:
            self.store.client.delete(self.store.keys.repaired)
            self.keeper._repaired_at = float("-inf")  # noqa: SLF001 (as if a minute had passed)
        self.keeper.turn(GOES_ON)

    def told(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == name]


# --- heartbeat -------------------------------------------------------------------------------------------------------


def test_a_heartbeat_shows_the_beat_for_a_while(redis: Redis, store: Store) -> None:
    house = House(store, "a")
    house.turn()
    found = redis.hgetall("beat:instance:beat-1")
    assert (found["host"], found["pid"]) == ("here", "7")
    assert abs((clock.read(str(found["seen_at"])) - store.time()).total_seconds()) < 10
    assert HEARTBEAT_MS - 10_000 < redis.pttl("beat:instance:beat-1") <= HEARTBEAT_MS
    assert redis.zrange("beat:instances", 0, -1) == ["beat-1"]
    assert house.events == []


def test_a_heartbeat_renews_what_is_announced(redis: Redis, store: Store) -> None:
    house = House(store, "a")
    key = f"beat:announced:{house.sync.digest}"
    redis.pexpire(key, 2000)
    house.turn()
    assert redis.pttl(key) > ANNOUNCED_MS - 10_000
    assert redis.zrange("beat:announcements", 0, -1) == [house.sync.digest]


def test_beats_of_several_versions_are_announced_side_by_side(redis: Redis, store: Store) -> None:
    house, other = House(store, "a"), House(store, "a", "b", name="beat-2")
    house.turn()
    other.turn()
    assert set(redis.zrange("beat:announcements", 0, -1)) == {house.sync.digest, other.sync.digest}
    assert set(redis.zrange("beat:instances", 0, -1)) == {"beat-1", "beat-2"}


def test_beats_that_are_gone_are_forgotten(redis: Redis, store: Store) -> None:
    redis.zadd("beat:instances", {f"dead-{n}": n for n in range(50)})
    redis.zadd("beat:announcements", {f"dead-{n}": n for n in range(50)})
    House(store, "a").turn()
    assert redis.zrange("beat:instances", 0, -1) == ["beat-1"]
    assert redis.zcard("beat:announcements") == 1


def test_a_heartbeat_keeps_the_highest_time_with_a_mark(redis: Redis, store: Store) -> None:
    House(store, "a").turn()
    time_text, written = store.high_water()
    assert Mark.read(written) == Mark("boot", 5, 5, NOW_MS)
    assert clock.to_ms(clock.read(time_text)) == NOW_MS
    redis.hset("beat:meta", mapping={"time": "2099-01-01T00:00:00Z", "mark": "future"})
    House(store, "a").turn()
    assert store.high_water() == ("2099-01-01T00:00:00Z", "future"), "a lower time does not replace it"


def test_a_beat_without_schedules_has_a_heartbeat_too(redis: Redis, store: Store) -> None:
    House(store, "a")
    house = House(store, name="beat-2")
    house.turn()
    assert redis.exists("beat:instance:beat-2")
    assert house.events == []


def test_who_leaves_is_gone_at_once_and_the_announcement_lingers(redis: Redis, store: Store) -> None:
    house = House(store, "a")
    house.turn()
    house.keeper.leave()
    assert not redis.exists("beat:instance:beat-1")
    assert redis.zcard("beat:instances") == 0
    assert 0 < redis.pttl(f"beat:announced:{house.sync.digest}") <= LINGER_MS


def test_leaving_a_redis_that_is_away_is_no_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(store, "a")

    def away(**_: object) -> None:
        raise exceptions.ConnectionError("gone")

    monkeypatch.setattr(store, "leave", away)
    house.keeper.leave()


# --- what was lost ---------------------------------------------------------------------------------------------------


def test_what_was_flushed_comes_back_with_the_next_heartbeat(redis: Redis, store: Store) -> None:
    house = House(store, "a", "b")
    house.turn()
    redis.flushall()
    house.turn()
    assert [event.fields["ids"] for event in house.told("reseeded")] == [["a", "b"]]
    assert redis.zcard("beat:due") == 2
    house.turn()
    assert len(house.told("reseeded")) == 1


def test_a_lost_format_comes_back(redis: Redis, store: Store) -> None:
    house = House(store, "a")
    redis.delete("beat:meta")
    house.turn()
    house.turn()
    assert redis.hget("beat:meta", "format") == "1"
    assert redis.hexists("beat:meta", "time")


def test_one_lost_schedule_comes_back_with_the_next_repair(redis: Redis, store: Store) -> None:
    house = House(store, "a", "b")
    house.turn()
    redis.delete("beat:schedule:a")
    house.turn(repair=True)
    assert [event.fields for event in house.told("reseeded")] == [{"count": 1, "ids": ["a"]}]
    assert redis.hget("beat:schedule:a", "state") == "active"


def test_a_newer_definition_that_lapses_makes_way(redis: Redis, store: Store) -> None:
    house = House(store, "a")
    newer = Sync(store, [schedule("a", queue="new")], beat="beat-2", emit=list[Event]().append)
    newer.announce()
    newer.register()
    house.keeper.turn(GOES_ON)
    house.sync.register()
    assert redis.hget("beat:schedule:a", "queue") == "new"
    redis.delete(f"beat:announced:{newer.digest}")
    house.turn()
    assert redis.hget("beat:schedule:a", "queue") == "default"


# --- repair ----------------------------------------------------------------------------------------------------------


def spoil(redis: Redis, *ids: str) -> None:
    for each in ids:
        redis.zrem("beat:due", each)


def test_the_index_is_made_to_say_what_the_schedules_say(redis: Redis, store: Store) -> None:
    house = House(store, "a", "b", "c")
    before = redis.zrange("beat:due", 0, -1, withscores=True)
    redis.zrem("beat:due", "a")
    redis.zadd("beat:due", {"b": 5, "ghost": 5})
    redis.sadd("beat:schedules", "other-ghost")
    house.turn(repair=True)
    assert redis.zrange("beat:due", 0, -1, withscores=True) == before
    assert redis.smembers("beat:schedules") == {"a", "b", "c"}
    assert [event.fields for event in house.told("repaired")] == [{"count": 4}]
    house.turn(repair=True)
    assert len(house.told("repaired")) == 1


def test_repair_happens_at_the_start_and_then_every_minute(redis: Redis, store: Store) -> None:
    house = House(store, "a")
    spoil(redis, "a")
    house.turn()
    assert redis.zcard("beat:due") == 1
    spoil(redis, "a")
    house.turn()
    assert redis.zcard("beat:due") == 0
    assert 0 < redis.pttl("beat:repaired") < housekeeper.REPAIR_S * 1000, "nor by any other beat"
    redis.delete("beat:repaired")
    house.keeper._repaired_at = time.monotonic() - housekeeper.REPAIR_S  # noqa: SLF001 (as if a minute had passed)
    house.turn()
    assert redis.zcard("beat:due") == 1


def test_when_the_clock_went_back_a_repair_happens_at_once(redis: Redis, store: Store) -> None:
    house = House(store, "a")
    house.turn()
    redis.zadd("beat:due", {"a": NOW_MS * 2})
    house.turn()
    assert redis.zscore("beat:due", "a") == NOW_MS * 2
    house.sound = replace(house.sound, redis_ms=NOW_MS - 600_000)
    house.turn()
    assert redis.zscore("beat:due", "a") != NOW_MS * 2


def test_a_repair_whose_lock_lasted_too_long_is_tried_until_it_is_free(redis: Redis, store: Store) -> None:
    house = House(store, "a")
    spoil(redis, "a")
    redis.set("beat:repairing", "dead", px=86_400_000)
    for _ in range(2):
        house.turn()
        assert redis.zcard("beat:due") == 0
    assert 0 < redis.pttl("beat:repairing") <= REPAIRING_MS
    redis.delete("beat:repairing")  # as if it had run out
    house.turn()
    assert redis.zcard("beat:due") == 1
    spoil(redis, "a")
    house.turn()
    assert redis.zcard("beat:due") == 0, "and then a minute later"


def test_one_beat_repairs_at_a_time(redis: Redis, store: Store) -> None:
    house = House(store, "a")
    theirs = Lock(store.client, store.keys.repairing, 10_000)
    assert theirs.acquire()
    spoil(redis, "a")
    house.turn(repair=True)
    assert redis.zcard("beat:due") == 0
    assert redis.get("beat:repairing") == theirs.token, "and does not take the other's lock away"
    theirs.release()
    house.turn(repair=True)
    assert redis.zcard("beat:due") == 1
    assert not redis.exists("beat:repairing")


def test_one_beat_repairs_in_a_minute_and_each_when_it_starts(redis: Redis, store: Store) -> None:
    House(store, "a").turn()
    other = House(store, "a", name="beat-2")
    spoil(redis, "a")
    other.turn()
    assert redis.zcard("beat:due") == 1, "at its start"
    spoil(redis, "a")
    other.keeper._repaired_at = float("-inf")  # noqa: SLF001 (as if a minute had passed for it)
    other.turn()
    assert redis.zcard("beat:due") == 0, "the other has just done it"


def test_a_long_repair_keeps_its_lock(redis: Redis, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(store, *(f"s{n}" for n in range(1200)))
    left: list[int] = []
    real = store.repair

    def slow(ids: Any) -> Any:
        left.append(redis.pttl("beat:repairing"))
        redis.pexpire("beat:repairing", 5000)
        return real(ids)

    monkeypatch.setattr(store, "repair", slow)
    house.turn(repair=True)
    assert len(left) > 2
    assert all(ms > REPAIRING_MS - 10_000 for ms in left), "prolonged after every page"
    assert not redis.exists("beat:repairing")


def test_who_lost_the_lock_stops_and_leaves_the_new_holder_alone(
    redis: Redis, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(store, *(f"s{n}" for n in range(1200)))
    pages: list[int] = []
    real = store.repair

    def overtaken(ids: Any) -> Any:
        pages.append(len(ids))
        redis.set("beat:repairing", "somebody else", px=10_000)
        return real(ids)

    monkeypatch.setattr(store, "repair", overtaken)
    house.turn(repair=True)
    assert len(pages) == 1
    assert redis.get("beat:repairing") == "somebody else"


def test_what_was_put_right_is_told_even_if_the_lock_was_lost(
    redis: Redis, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(store, "a")
    spoil(redis, "a")
    real = store.repair

    def overtaken(ids: Any) -> Any:
        redis.set("beat:repairing", "somebody else", px=10_000)
        return real(ids)

    monkeypatch.setattr(store, "repair", overtaken)
    house.turn(repair=True)
    assert [event.fields for event in house.told("repaired")] == [{"count": 1}]


@pytest.mark.parametrize(
    ("field", "value"),
    [("run_count", "abc"), ("skip_count", "-1"), ("run_count", "9" * 40), ("run_count", "")],
)
def test_a_counter_that_is_no_number_is_broken_told_once_and_mended_when_it_is(
    redis: Redis, store: Store, field: str, value: str
) -> None:
    house = House(store, "a", "b")
    redis.hset("beat:schedule:a", field, value)
    for _ in range(3):
        house.turn(repair=True)
    assert redis.hget("beat:schedule:a", "state") == "broken"
    assert field in str(redis.hget("beat:schedule:a", "last_error"))
    assert redis.zrange("beat:due", 0, -1) == ["b"]
    errors = [event for event in house.events if event.name in {"broken", "refused"}]
    assert {event.schedule_id for event in errors} == {"a"}
    assert len(errors) <= 2, "one line when it changes, not one a minute"
    redis.hset("beat:schedule:a", field, "3")
    house.turn(repair=True)
    assert redis.hget("beat:schedule:a", "state") == "active"
    assert sorted(redis.zrange("beat:due", 0, -1)) == ["a", "b"]


def test_what_is_mended_is_told(redis: Redis, store: Store) -> None:
    house = House(store, "a")
    stranger = Sync(store, [schedule("stranger")], beat="beat-2", emit=list[Event]().append)
    stranger.announce()
    stranger.register()
    due = redis.hget("beat:schedule:stranger", "due_at")
    redis.hset("beat:schedule:stranger", "due_at", "yesterday")
    house.turn(repair=True)
    assert [event.schedule_id for event in house.told("broken")] == ["stranger"]
    redis.hset("beat:schedule:stranger", "due_at", due)
    house.turn(repair=True)
    assert [event.schedule_id for event in house.told("mended")] == ["stranger"]
    assert redis.hget("beat:schedule:stranger", "state") == "active"


@pytest.mark.parametrize("ids", [["x"], ["x", "y"]], ids=len)
def test_what_breaks_again_after_it_was_mended_is_told_again(redis: Redis, store: Store, ids: list[str]) -> None:
    house = House(store, "a")
    strangers = Sync(store, [schedule(each) for each in ids], beat="beat-2", emit=list[Event]().append)
    strangers.announce()
    strangers.register()
    for count in ("abc", "3", "abc", "3"):
        for each in ids:
            redis.hset(f"beat:schedule:{each}", "run_count", count)
        house.turn(repair=True)
        house.turn(repair=True)
    for name in ("broken", "mended"):
        assert sorted(event.schedule_id for event in house.told(name)) == sorted(ids * 2)


@pytest.mark.parametrize("value", ["abc", "-1", "", "2026-02-31T00:00:00Z", "2026-11-16T25:00:00Z", None])
def test_a_garbled_next_run_of_our_own_is_placed_anew(redis: Redis, store: Store, value: str | None) -> None:
    house = House(store, "a")
    before = str(redis.hget("beat:schedule:a", "next_run"))
    if value is None:
        redis.hdel("beat:schedule:a", "next_run")
    else:
        redis.hset("beat:schedule:a", "next_run", value)
    house.turn()
    house.turn(repair=True)
    assert redis.hget("beat:schedule:a", "next_run") == before
    assert redis.hget("beat:schedule:a", "state") == "active"
    assert redis.zscore("beat:due", "a") == clock.to_ms(clock.read(before))


def test_a_key_that_is_something_else_is_told_and_the_others_are_kept(redis: Redis, store: Store) -> None:
    house = House(store, "a", "b")
    redis.set("beat:schedule:a", "text")
    spoil(redis, "b")
    house.turn(repair=True)
    assert [(event.schedule_id, event.fields["code"]) for event in house.told("broken")] == [("a", "BADTYPE")]
    assert redis.zscore("beat:due", "b") is not None


@pytest.mark.parametrize("key", ["beat:due", "beat:schedules", "beat:meta", "beat:instances", "beat:announcements"])
def test_a_key_of_the_wrong_kind_is_named_once_and_is_no_outage(redis: Redis, store: Store, key: str) -> None:
    house = House(store, "a")
    redis.delete(key)
    redis.set(key, "text")
    for _ in range(3):
        house.turn(repair=True)
    assert [event.fields["error"] for event in house.events if key in str(event.fields)]
    assert len([event for event in house.events if event.name in {"broken", "refused"}]) <= 2
    redis.delete(key)


# --- run -------------------------------------------------------------------------------------------------------------


def test_no_error_ends_the_housekeeping(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    house, stopping = House(store, "a"), threading.Event()
    errors: list[Exception] = [ZeroDivisionError("a bug"), exceptions.ConnectionError("gone"), OSError("no route")]
    real, done = store.heartbeat, threading.Event()

    def failing(*given: Any, **named: Any) -> Any:
        if errors:
            raise errors.pop(0)
        done.set()
        return real(*given, **named)

    monkeypatch.setattr(store, "heartbeat", failing)
    thread = threading.Thread(target=house.keeper.run, args=(stopping,), daemon=True)
    thread.start()
    assert done.wait(30)
    stopping.set()
    thread.join(10)
    assert not thread.is_alive()
    assert [event.name for event in house.events] == ["failed", "redis_away", "redis_back"]


def run_until(house: House, fact: Callable[[], object]) -> None:
    """Keeps house until something is so."""
    stopping = threading.Event()
    thread = threading.Thread(target=house.keeper.run, args=(stopping,), daemon=True)
    thread.start()
    try:
        wait_until(fact)
    finally:
        stopping.set()
        thread.join(10)
    assert not thread.is_alive()


def counted(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, error: Exception | None = None) -> list[str]:
    """Grows with every call of a method, which fails if there is an error."""
    calls: list[str] = []
    real = getattr(owner, name)

    def counting(*given: Any, **named: Any) -> Any:
        calls.append(name)
        if error:
            raise error
        return real(*given, **named)

    monkeypatch.setattr(owner, name, counting)
    return calls


def test_runs_are_watched_more_often_than_the_heart_beats(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeper, "HEARTBEAT_S", 1000)
    monkeypatch.setattr(housekeeper, "WATCH_S", 0.01)
    house = House(store, "a")
    beats, looks = counted(monkeypatch, store, "heartbeat"), counted(monkeypatch, Watcher, "turn")
    run_until(house, lambda: len(looks) >= 5)
    assert len(beats) == 1


def test_the_heart_beats_on_time_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeper, "HEARTBEAT_S", 0)
    monkeypatch.setattr(housekeeper, "WATCH_S", 0.01)
    house = House(store, "a")
    beats, looks = counted(monkeypatch, store, "heartbeat"), counted(monkeypatch, Watcher, "turn")
    run_until(house, lambda: len(beats) >= 3)
    assert len(looks) >= 3


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), exceptions.ConnectionError("gone")])
def test_trouble_with_runs_does_not_keep_the_heart_from_beating(
    error: Exception, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeper, "HEARTBEAT_S", 0)
    house = House(store, "a")
    beats, looks = counted(monkeypatch, store, "heartbeat"), counted(monkeypatch, Watcher, "turn", error)
    run_until(house, lambda: len(beats) >= 3)
    assert len(looks) >= 2


def test_a_long_repair_does_not_keep_runs_waiting(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(store, *(f"s{n}" for n in range(600)))
    looks = counted(monkeypatch, Watcher, "turn")
    house.turn(repair=True)
    assert len(looks) >= 3, "one for each page"


def test_what_became_of_a_run_is_written_down_by_the_housekeeper(store: Store) -> None:
    house = House(store, "report")
    put_run(store)
    run_until(house, lambda: house.told("run_succeeded"))
    assert [line["type"] for line in ledger(store)] == ["succeeded", "registered"]


def test_it_shows_that_it_goes_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeper, "WATCH_S", 0.01)
    house = House(store, "a")
    steps = steps_of(house, monkeypatch)
    run_until(house, lambda: len(steps) >= 3)


def test_it_shows_that_it_goes_on_while_redis_fails(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(store, "a")
    steps = steps_of(house, monkeypatch, exceptions.ConnectionError("gone"))
    run_until(house, lambda: len(steps) >= 3)
    assert house.told("redis_away")


def steps_of(house: House, monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> set[float]:
    """Since when it was at each step, as its watcher finds it, which fails if there is an error."""
    steps: set[float] = set()

    def turn(_: Watcher) -> None:
        steps.add(house.keeper.awake_at)
        if error:
            raise error

    monkeypatch.setattr(Watcher, "turn", turn)
    return steps


def test_every_page_of_a_repair_is_a_step(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(store, *(f"s{n}" for n in range(600)))
    steps: set[float] = set()
    real = store.repair

    def repair(page: Any) -> Any:
        steps.add(house.keeper.awake_at)
        return real(page)

    monkeypatch.setattr(store, "repair", repair)
    house.turn(repair=True)
    assert len(steps) >= 3


def test_stopping_does_not_wait_for_the_next_heartbeat(store: Store) -> None:
    house, stopping = House(store, "a"), threading.Event()
    thread = threading.Thread(target=house.keeper.run, args=(stopping,), daemon=True)
    thread.start()
    wait_until(lambda: store.client.exists("beat:instance:beat-1"))
    stopping.set()
    thread.join(3)
    assert not thread.is_alive()
