"""Definitions of the code in Redis, with beats of several versions side by side."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.engine import registrar
from beat.engine.events import Event
from beat.engine.registrar import Sync
from beat.schedule.follows import Follows
from beat.schedule.schedule import Schedule
from beat.storage.store import Store
from beat.timing import clock
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.support.facts import wait_until
from tests.support.refusals import BadRepr

if TYPE_CHECKING:
    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.messages import Registration, Reply

TTL = 30_000


def schedule(schedule_id: str = "report", **given: Any) -> Schedule:
    return Schedule(**{"id": schedule_id, "func": "app.tasks.report", "timing": Every("1h"), **given})


class Beat:
    """The part of a beat that registers."""

    def __init__(self, store: Store, *schedules: Schedule, name: str = "beat-1") -> None:
        self.store, self.name, self.events = store, name, list[Event]()
        self.sync = Sync(store, schedules, beat=name, emit=self.events.append)

    def start(self) -> Beat:
        self.sync.announce()
        self.sync.register()
        return self

    def heartbeat(self) -> str:
        """As the housekeeper does it."""
        reply = self.store.heartbeat(
            {},
            name=self.name,
            ttl=TTL,
            digest=self.sync.digest,
            announced_ttl=registrar.ANNOUNCED_MS,
            judged=1,
            mark="boot 1 1",
        )
        if reply.code == "LOST":
            self.sync.announce()
            self.sync.register(reseed=True)
        return reply.code

    def told(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == name]


def kept(redis: Redis, schedule_id: str = "report") -> dict[str, str]:
    found: Any = redis.hgetall(f"beat:schedule:{schedule_id}")
    return dict(found)


def lapse(redis: Redis, beat: Beat) -> None:
    """As if it had not renewed its announcement for long."""
    redis.delete(f"beat:announced:{beat.sync.digest}")
    redis.zrem("beat:announcements", beat.sync.digest)


OLD, NEW = schedule(queue="old"), schedule(queue="new")

# --- the first time, and every time after ----------------------------------------------------------------------------


def test_a_hash_is_kept_as_it_was_written_and_its_rule_as_the_id_chose(
    store: Store, redis: Redis, server: PrivateRedis
) -> None:
    made = schedule(timing=Cron("H H * * *"))
    Beat(store, made).start()
    found = kept(redis)
    assert (found["cron"], json.loads(found["definition"])["cron"]) == ("H H * * *", "H H * * *")
    assert json.loads(found["rule"]) == {"cron": "16 21 * * *", "tz": "UTC"}
    assert found["timing_rev"] == schedule(timing=Cron("16 21 * * *")).timing_rev
    assert found["next_run"].endswith("T21:16:00Z")
    (verified,) = Client(server.url).verify()
    assert verified.sound


def test_a_new_schedule_is_brought_in_with_its_first_tick(redis: Redis, store: Store) -> None:
    before = store.time()
    beat = Beat(store, schedule(description="täglich", priority="high")).start()
    found = kept(redis)
    tick = clock.read(found["next_run"])
    assert before < tick <= before + timedelta(hours=1)
    assert redis.zscore("beat:due", "report") == clock.to_ms(tick)
    assert redis.smembers("beat:schedules") == {"report"}
    wanted = {
        "state": "active", "run_count": "0", "skip_count": "0", "every": "1h", "tz": "UTC", "func": "app.tasks.report",
        "queue": "default", "priority": "high", "description": "täglich", "source": "code", "version": "1",
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted
    assert json.loads(found["definition"])["every"] == "1h"
    assert store.client.hget("beat:template:report", "origin") == b"default"
    assert [(event.name, event.fields) for event in beat.events] == [("registered", {"schedules": 1, "new": 1})]


def test_what_has_not_changed_is_not_written(redis: Redis, store: Store) -> None:
    Beat(store, OLD).start()
    before = kept(redis)
    beat = Beat(store, OLD, name="beat-2").start()
    assert kept(redis) == before
    assert [event.fields for event in beat.told("registered")] == [{"schedules": 1, "new": 0}]
    assert redis.xlen("beat:events") == redis.llen("beat:runs:report") == 1, "only the first registration"


def test_a_change_is_written_and_told(redis: Redis, store: Store) -> None:
    Beat(store, OLD).start()
    redis.hset("beat:schedule:report", mapping={"run_count": 7, "last_run": "2026-01-01T00:00:00Z"})
    before = kept(redis)
    beat = Beat(store, NEW).start()
    after = kept(redis)
    assert (after["queue"], after["run_count"], after["next_run"]) == ("new", "7", before["next_run"])
    assert after["version"] == "2"
    [event] = beat.told("updated")
    assert event.fields == {"rev": NEW.rev, "changes": "queue old → new"}
    assert store.client.hget("beat:template:report", "origin") == b"new"


def test_changes_name_arguments_without_their_values(redis: Redis, store: Store) -> None:
    Beat(store, schedule(kwargs={"token": "old secret", "a": 1}, description="a" * 500)).start()
    beat = Beat(
        store, schedule(kwargs={"token": "new secret", "a": 1}, args=[2], meta={"b": 3}, job_timeout=60)
    ).start()
    [event] = beat.told("updated")
    changes = event.fields["changes"].split("; ")
    assert sorted(changes) == [
        "args changed", f"description {'a' * 100} → none", "job_timeout none → 60", "kwargs.token changed",
        "meta.b changed",
    ]  # fmt: skip
    redis.hset("beat:schedule:report", "definition", "garbled")
    [event] = Beat(store, schedule()).start().told("updated")
    assert event.fields["changes"] == ""


def test_changes_of_an_overridden_schedule_are_those_in_force(store: Store, server: PrivateRedis) -> None:
    Beat(store, OLD).start()
    Client(server.url).reschedule("report", every="5m")
    [event] = Beat(store, schedule(queue="new", timing=Every("2h"))).start().told("updated")
    assert event.fields["changes"] == "queue old → new"


def test_only_a_raised_max_runs_revives_a_finished_schedule(redis: Redis, store: Store) -> None:
    Beat(store, schedule(max_runs=2)).start()
    redis.hset("beat:schedule:report", mapping={"state": "finished", "run_count": 3, "manual_count": 1})
    redis.hdel("beat:schedule:report", "next_run", "due_at")
    redis.zrem("beat:due", "report")
    redis.sadd("beat:in:finished", "report")
    others: list[dict[str, Any]] = [
        {}, {"queue": "other"}, {"timing": Every("5m")}, {"kwargs": {"a": 1}}, {"description": "x"}, {"max_runs": 1},
    ]  # fmt: skip
    for change in others:
        Beat(store, schedule(**{"max_runs": 2, **change})).start()
        assert (kept(redis)["state"], kept(redis).get("next_run")) == ("finished", None), change
        assert redis.zscore("beat:due", "report") is None
        assert redis.smembers("beat:in:finished") == {"report"}
    Beat(store, schedule(max_runs=3)).start()
    assert kept(redis)["state"] == "active"
    assert redis.zscore("beat:due", "report") == clock.to_ms(clock.read(kept(redis)["next_run"]))
    assert not redis.exists("beat:in:finished")


OPTIONS: dict[str, dict[str, Any]] = {
    "requires": {"requires": ["extract"]},
    "misfire": {"misfire": "all"},
    "misfire_after": {"misfire_after": "8s"},
    "overlap": {"overlap": "skip"},
    "max_runs": {"max_runs": 2},
    "exclude": {"exclude": ["2026-11-17"]},
    "jitter": {"jitter": "1m"},
    "group": {"group": "reports"},
    "route": {"queues": ["a", "b"], "route": "failover"},
    "slow": {"slow_queue": "slow"},
    "monitor": {"monitor": "https://hc-ping.com/x"},
    "result_ttl": {"result_ttl": 1},
    "failure_ttl": {"failure_ttl": 1},
    "follows": {"timing": Follows("extract")},
    "every": {},
}
"""Fields of the hash that are there with these options alone."""


@pytest.mark.parametrize("field", OPTIONS)
def test_an_option_that_is_removed_leaves_the_hash(field: str, redis: Redis, store: Store) -> None:
    Beat(store, schedule(**OPTIONS[field])).start()
    assert field in kept(redis)
    Beat(store, schedule(timing=Cron("0 9 * * *"))).start()
    assert field not in kept(redis)
    shown = set(OPTIONS) | {"job_meta"}
    assert set(kept(redis)) & shown == {"job_meta"}


def test_a_new_rule_moves_the_next_tick_and_is_told(redis: Redis, store: Store) -> None:
    Beat(store, schedule(timing=Every("30d"))).start()
    before = kept(redis)["next_run"]
    beat = Beat(store, schedule(timing=Every("1h"))).start()
    assert clock.read(kept(redis)["next_run"]) <= store.time() + timedelta(hours=1)
    [event] = beat.told("moved")
    assert (event.fields["from"], event.fields["to"]) == (before, kept(redis)["next_run"])
    assert event.fields["changes"] == "every 4w2d → 1h"
    lines: Any = redis.lrange("beat:runs:report", 0, -1)
    moved, registered = map(json.loads, lines)
    assert (moved["type"], moved["from"], moved["next"]) == ("moved", before, kept(redis)["next_run"])
    assert (moved["was"], moved["rule"]) == ({"every": "4w2d", "tz": "UTC"}, {"every": "1h", "tz": "UTC"})
    assert (registered["type"], registered["next"], registered["was"]) == ("registered", before, None)
    assert {line["beat"] for line in (moved, registered)} == {"beat-1"}


def test_a_tick_that_is_due_is_never_moved(redis: Redis, store: Store) -> None:
    Beat(store, schedule()).start()
    due = clock.text(store.time().replace(microsecond=0) - timedelta(hours=5))
    redis.hset("beat:schedule:report", mapping={"next_run": due, "due_at": due})
    Beat(store, schedule(timing=Every("7m"), end=datetime(2026, 1, 1, tzinfo=UTC))).start()
    assert (kept(redis)["next_run"], kept(redis)["state"]) == (due, "active")


def test_what_has_vanished_from_the_code_stays(redis: Redis, store: Store) -> None:
    Beat(store, schedule("a"), schedule("b")).start()
    before = kept(redis, "b")
    Beat(store, schedule("a")).start()
    assert kept(redis, "b") == before
    assert redis.zscore("beat:due", "b") is not None


def test_more_schedules_than_a_page_holds_are_all_brought_in(redis: Redis, store: Store) -> None:
    beat = Beat(store, *(schedule(f"s{n}") for n in range(617))).start()
    assert redis.scard("beat:schedules") == redis.zcard("beat:due") == 617
    assert redis.hlen(f"beat:announced:{beat.sync.digest}") == 617


def test_a_clock_that_went_back_repeats_no_tick(redis: Redis, store: Store) -> None:
    Beat(store, OLD).start()
    ahead = clock.text(store.time().replace(minute=0, second=0, microsecond=0) + timedelta(days=3))
    redis.hset("beat:schedule:report", "last_run", ahead)
    Beat(store, schedule("report", timing=Every("2h"))).start()
    assert clock.read(kept(redis)["next_run"]) > clock.read(ahead)


def test_a_time_that_was_wrong_once_does_not_put_off_what_is_new(redis: Redis, store: Store) -> None:
    redis.hset("beat:meta", "time", clock.text(store.time() + timedelta(days=365)))
    Beat(store, schedule()).start()
    assert clock.read(kept(redis)["next_run"]) <= store.time() + timedelta(hours=1)


def test_a_template_that_was_lost_is_written_again(redis: Redis, store: Store) -> None:
    Beat(store, OLD).start()
    before = redis.hkeys("beat:template:report")
    redis.delete("beat:template:report")
    Beat(store, OLD).start()
    assert sorted(redis.hkeys("beat:template:report")) == sorted(before)


def test_no_schedule_that_rq_cannot_write_keeps_the_others_out(redis: Redis, store: Store) -> None:
    bad = [schedule("a", args=[BadRepr()]), schedule("b", args=["\ud800"]), schedule("c", kwargs={"x": BadRepr()})]
    beat = Beat(store, *bad, schedule("good")).start()
    assert "good" in redis.smembers("beat:schedules")
    refused = {event.schedule_id for event in beat.told("refused")}
    assert refused <= {"a", "b", "c"}
    assert refused | redis.smembers("beat:schedules") == {"a", "b", "c", "good"}


def test_a_schedule_whose_key_is_something_else_is_refused_alone(redis: Redis, store: Store) -> None:
    redis.set("beat:schedule:bad", "text")
    beat = Beat(store, schedule("bad"), schedule("good")).start()
    assert [(event.schedule_id, event.fields["code"]) for event in beat.told("refused")] == [("bad", "BADTYPE")]
    assert redis.smembers("beat:schedules") == {"good"}


# --- two versions ----------------------------------------------------------------------------------------------------


def test_what_is_registered_is_announced_first(redis: Redis, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    real = store.register

    def register(items: Any, **named: Any) -> Any:
        announced = redis.hmget(f"beat:announced:{beat.sync.digest}", [item.id for item in items])
        seen.append([str(each).partition("\t")[0] for each in announced] == [item.rev for item in items])
        return real(items, **named)

    monkeypatch.setattr(store, "register", register)
    beat = Beat(store, schedule("a"), schedule("b"))
    beat.start()
    assert seen
    assert all(seen)
    assert 0 < redis.pttl(f"beat:announced:{beat.sync.digest}") <= registrar.ANNOUNCED_MS


def test_an_older_definition_is_held_back_while_a_newer_one_is_announced(redis: Redis, store: Store) -> None:
    Beat(store, OLD).start()
    Beat(store, NEW, name="beat-2").start()
    late = Beat(store, OLD, name="beat-3").start()
    assert kept(redis)["queue"] == "new"
    assert late.sync.older == {"report"}
    for _ in range(3):
        late.heartbeat()
        late.sync.register(list(late.sync.older))
    assert [event.fields["newer"] for event in late.told("older")] == [NEW.rev], "said once"
    assert kept(redis)["queue"] == "new"


def test_it_comes_back_when_the_newer_one_is_announced_no_more(redis: Redis, store: Store) -> None:
    Beat(store, OLD).start()
    newer = Beat(store, NEW, name="beat-2").start()
    late = Beat(store, OLD, name="beat-3").start()
    lapse(redis, newer)
    late.heartbeat()
    late.sync.register(list(late.sync.older))
    assert kept(redis)["queue"] == "old"
    assert late.sync.older == set()
    assert len(late.told("updated")) == 1


def test_an_announcement_lapses_by_itself(redis: Redis, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    Beat(store, OLD).start()
    monkeypatch.setattr(registrar, "ANNOUNCED_MS", 40)
    newer = Beat(store, NEW, name="beat-2").start()
    monkeypatch.undo()
    key = f"beat:announced:{newer.sync.digest}"
    wait_until(lambda: not redis.exists(key))
    Beat(store, OLD, name="beat-3").start()
    assert kept(redis)["queue"] == "old"
    assert newer.sync.digest not in redis.zrange("beat:announcements", 0, -1)


def test_a_beat_with_a_stale_view_of_the_others_does_not_undo_a_deploy(redis: Redis, store: Store) -> None:
    """It announced itself, then a newer beat came and registered, and only then its own registering arrives."""
    Beat(store, OLD).start()
    slow = Beat(store, OLD, name="beat-2")
    slow.sync.announce()
    Beat(store, NEW, name="beat-3").start()
    slow.sync.register()
    assert kept(redis)["queue"] == "new"


def test_the_history_of_revs_is_bounded_and_newest_first(redis: Redis, store: Store) -> None:
    made = [schedule(queue=f"q{n}") for n in range(25)]
    for each in made:
        Beat(store, each).start()
    revs = kept(redis)["revs"].split()
    assert revs == [each.rev for each in reversed(made)][:10]


@pytest.mark.parametrize("seed", range(12))
def test_two_versions_never_flap(redis: Redis, store: Store, seed: int) -> None:
    """Whatever the order of starts, heartbeats, stops and lapses: while a beat that registered the definition in force
    goes on announcing it, no other beat replaces it, except with one that was never seen."""
    chance = random.Random(seed)  # noqa: S311 (no secret)
    definitions = [schedule(queue=f"v{n}") for n in range(2)]
    live: list[Beat] = []
    known: set[str] = set()
    for step in range(120):
        what = chance.choice(["start", "heartbeat", "heartbeat", "heartbeat", "stop", "lapse"])
        before = kept(redis).get("rev")
        guarded = any(beat.sync.schedules["report"].rev == before for beat in live)
        if what == "start" and len(live) < 4:
            live.append(Beat(store, chance.choice(definitions), name=f"beat-{step}").start())
        elif what == "heartbeat" and live:
            beat = chance.choice(live)
            beat.heartbeat()
            if beat.sync.older or chance.random() < 0.2:
                beat.sync.register(list(beat.sync.older) or None)
        elif what == "stop" and live:
            live.remove(chance.choice(live))
        elif what == "lapse":
            for digest in map(str, redis.zrange("beat:announcements", 0, -1)):
                if all(beat.sync.digest != digest for beat in live):
                    redis.delete(f"beat:announced:{digest}")
                    redis.zrem("beat:announcements", digest)
        after = kept(redis).get("rev")
        if before and after != before:
            assert not guarded or after not in known, f"step {step}: {what} replaced what a live beat announces"
        known |= {after} if after else set()
    assert len(kept(redis)["revs"].split()) <= 2


@pytest.mark.parametrize("first", [OLD, NEW], ids=["old first", "new first"])
def test_two_versions_that_stay_side_by_side_leave_it_at_that(redis: Redis, store: Store, first: Schedule) -> None:
    beats = [Beat(store, each, name=each.queue).start() for each in (first, NEW if first is OLD else OLD)]
    settled = kept(redis)
    for _ in range(20):
        for beat in beats:
            beat.heartbeat()
            beat.sync.register()
    assert kept(redis) == settled
    assert sum(len(beat.told("updated")) for beat in beats) == 1


# --- what was lost, and what moves under our hands -------------------------------------------------------------------


def test_after_a_flush_everything_comes_back_loudly(redis: Redis, store: Store) -> None:
    beat = Beat(store, *(schedule(f"s{n}") for n in range(15))).start()
    redis.flushall()
    assert beat.heartbeat() == "LOST"
    (event,) = beat.told("reseeded")
    assert (event.fields["count"], len(event.fields["ids"])) == (15, 10)
    assert redis.scard("beat:schedules") == 15
    assert beat.heartbeat() == "OK"
    assert len(beat.told("reseeded")) == 1


def test_an_announcement_that_lapsed_is_no_flush(redis: Redis, store: Store) -> None:
    beat = Beat(store, schedule()).start()
    lapse(redis, beat)
    assert beat.heartbeat() == "LOST"
    assert beat.told("reseeded") == []
    assert beat.heartbeat() == "OK"


def test_a_single_schedule_that_was_deleted_comes_back_alone(redis: Redis, store: Store) -> None:
    beat = Beat(store, schedule("a"), schedule("b")).start()
    redis.delete("beat:schedule:a")
    beat.sync.register(reseed=True)
    assert [event.fields["ids"] for event in beat.told("reseeded")] == [["a"]]


class Contended(Store):
    """Somebody fires between every look and the write that follows."""

    times = 0

    def register(self, items: Any, *, beat: str) -> list[Reply]:
        wanted: list[Registration] = list(items)
        if self.times:
            self.times -= 1
            for item in wanted:
                tick = clock.text(datetime(2030, 1, 1, tzinfo=UTC) + timedelta(hours=self.times))
                self.client.hset(self.keys.schedule(item.id), mapping={"next_run": tick, "due_at": tick})
        return super().register(wanted, beat=beat)


@pytest.mark.parametrize("times", [1, 3, 9])
def test_what_changed_while_we_looked_is_looked_at_again(redis: Redis, store: Store, times: int) -> None:
    Beat(store, OLD).start()
    busy = Contended(store.client, store.keys)
    busy.times = times
    beat = Beat(busy, NEW).start()
    assert kept(redis)["queue"] == "new"
    assert len(beat.told("updated") + beat.told("moved")) == 1


def test_nobody_tries_for_ever_and_giving_up_is_not_silent(redis: Redis, store: Store) -> None:
    Beat(store, OLD).start()
    busy = Contended(store.client, store.keys)
    busy.times = 1000
    beat = Beat(busy, NEW).start()
    assert kept(redis)["queue"] == "old"
    assert [event.schedule_id for event in beat.told("refused")] == ["report"]


def test_a_page_in_which_one_is_contended_brings_the_others_in_once(redis: Redis, store: Store) -> None:
    class OneIsBusy(Contended):
        def register(self, items: Any, *, beat: str) -> list[Reply]:
            if self.times:
                self.times -= 1
                self.client.hset(self.keys.schedule("a"), "state", "paused" if self.times % 2 else "active")
            return Store.register(self, items, beat=beat)

    Beat(store, schedule("a"), schedule("b")).start()
    busy = OneIsBusy(store.client, store.keys)
    busy.times = 4
    beat = Beat(busy, schedule("a", queue="x"), schedule("b", queue="x")).start()
    assert kept(redis, "a")["queue"] == kept(redis, "b")["queue"] == "x"
    assert sorted(event.schedule_id for event in beat.told("updated")) == ["a", "b"]
    assert kept(redis, "b")["version"] == "2"
