"""Slots: a tick that finds no room is skipped or waits, once; who waits is let in once; and nothing is ever wedged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from redis.exceptions import ResponseError

from beat.engine.definition_cache import Book
from beat.engine.registrar import Sync
from beat.engine.run_tracker import Watcher
from beat.engine.waiting import INTERVAL_MS, Attendant
from beat.jobs.observation import Record
from beat.policies import jitter_and_capacity
from beat.schedule.schedule import Schedule
from beat.storage.keys import Keys
from beat.storage.messages import Item, Reply, Slot
from beat.storage.slots import Slots
from beat.storage.store import Store
from beat.timing import clock
from beat.timing.interval import Every
from tests.support.builders import (
    OTHER,
    QUEUE,
    TOKEN,
    changed,
    claim,
    everything,
    hash_of,
    put_and_claim,
    queued,
    registration,
    restricted,
    score,
    second,
    shows,
    text,
    verdict,
)

if TYPE_CHECKING:
    from beat.engine.events import Event

RUNNING, WAITING, SLOTS = "beat:running:report", "beat:waiting:report", "beat:waiting"
SKIP, WAIT, REPLACE = "skip 1 0", "wait 1 1", "replace 1 1"
NO_LIST = "beat:runs:report is a string, not a list"
OK, STALE, FULL = Reply("OK"), "STALE", Reply("FULL")


class Place:
    """A schedule `report` whose ticks are decided by hand: each is due, one second after the other."""

    def __init__(self, store: Store, slot: str, **changes: Any) -> None:
        self.store, self.slot, self.changes = store, slot, changes
        self.at = put_and_claim(store, ago=50)
        self.jobs: list[str] = []

    def fire(self, slot: str | None = None, **changes: Any) -> Reply:
        """The next tick, and then the lock again."""
        item = self.item(slot, **changes)
        [reply] = self.store.fire([item], token=TOKEN).replies
        if reply.code != "ENDED":
            self.jobs.append(item.job)
            self.at += 1
            claim(self.store)
        return reply

    def item(self, slot: str | None = None, **changes: Any) -> Item:
        given = {"slot": self.slot if slot is None else slot, **self.changes, **changes}
        return verdict(self.at, following=1, **given)

    def admit(self, at: int, slot: str | None = None, by: str = "scheduler") -> Reply:
        item = verdict(at, following=None, kind="admit", last="", slot=self.slot if slot is None else slot, by=by)
        [reply] = self.store.fire([item], token=OTHER).replies
        return reply

    def end(self, job: str, status: str = "finished") -> None:
        """As a worker does."""
        self.store.client.lrem(QUEUE, 1, job)
        self.store.client.hset(f"rq:job:{job}", mapping={"status": status, "ended_at": text(self.at)})

    def close(self) -> None:
        Watcher(self.store, name="us", emit=lambda _: None).look(10)

    @property
    def running(self) -> list[str]:
        return members(self.store, RUNNING)

    @property
    def waiting(self) -> list[str]:
        return members(self.store, WAITING)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The ledger, newest first, without what is told of every line."""
        found: Any = self.store.client.lrange("beat:runs:report", 0, -1)
        return [{k: v for k, v in json.loads(each).items() if k not in {"at", "beat", "late_ms"}} for each in found]


def members(store: Store, key: str) -> list[str]:
    found: Any = store.client.zrange(key, 0, -1)
    return [each.decode() for each in found]


def job(at: int) -> str:
    return f"beat_report_{at}"


# --- no room ---------------------------------------------------------------------------------------------------------


@shows("fire", "SKIPPED")
def test_a_tick_without_room_is_skipped_and_the_line_names_who_has_it(store: Store) -> None:
    place = Place(store, SKIP)
    first = place.at
    assert place.fire() == OK
    assert place.running == [job(first)]
    assert place.fire() == Reply("SKIPPED", "overlap")
    assert queued(store) == [job(first)]
    assert place.lines[0] == {
        "type": "skipped", "tick": text(first + 1), "last": text(first + 1), "count": 1, "reason": "overlap",
        "behind": job(first), "n": 1,
    }  # fmt: skip
    state = hash_of(store)
    assert (state["run_count"], state["skip_count"], state["kept"]) == ("1", "1", "2")
    assert (state["next_run"], state["last_run"], state["last_job"]) == (text(first + 2), text(first), job(first))
    events: Any = store.client.xrevrange("beat:events", count=1)
    event = events[0][1]
    assert (event[b"type"], json.loads(event[b"entry"])["tick"]) == (b"skipped", text(first + 1))


def test_where_runs_may_overlap_no_slot_is_kept(store: Store) -> None:
    place = Place(store, "")
    assert [place.fire(), place.fire()] == [OK, OK]
    assert not store.client.exists(RUNNING, WAITING, SLOTS)


def test_as_many_run_at_once_as_may(store: Store) -> None:
    place = Place(store, "skip 3 0")
    assert [place.fire().code for _ in range(5)] == ["OK", "OK", "OK", "SKIPPED", "SKIPPED"]
    assert place.running == place.jobs[:3]


@shows("fire", "WAITS")
def test_a_tick_waits_and_has_no_verdict_yet(store: Store) -> None:
    place = Place(store, WAIT)
    first = place.at
    place.fire()
    before = everything(store)
    assert place.fire() == Reply("WAITS", job(first))
    assert place.waiting == [f"report {text(first + 1)} scheduler"]
    assert store.client.zscore(WAITING, place.waiting[0]) == (first + 1) * 1000
    assert store.client.zrange(SLOTS, 0, -1) == [b"report"]
    assert place.lines[0] == {"type": "waiting", "tick": text(first + 1), "job": job(first + 1), "behind": job(first)}
    state = hash_of(store)
    assert (state["run_count"], state["skip_count"], state["next_run"]) == ("1", "0", text(first + 2))
    assert score(store) is not None
    assert not store.client.exists(f"rq:job:{job(first + 1)}")
    assert {WAITING, SLOTS, "beat:events", "beat:runs:report", "beat:schedule:report"} <= changed(before, store)


def test_no_more_ticks_wait_than_may(store: Store) -> None:
    place = Place(store, "wait 1 2")
    assert [place.fire().code for _ in range(5)] == ["OK", "WAITS", "WAITS", "SKIPPED", "SKIPPED"]
    assert len(place.waiting) == 2


def test_the_newest_replaces_who_waits(store: Store) -> None:
    place = Place(store, REPLACE)
    first = place.at
    assert [place.fire().code for _ in range(4)] == ["OK", "WAITS", "WAITS", "WAITS"]
    assert place.waiting == [f"report {text(first + 3)} scheduler"]
    skips = [line for line in place.lines if line["type"] == "skipped"]
    assert [(line["tick"], line["reason"], line["behind"]) for line in skips] == [
        (text(first + 2), "replaced", job(first + 3)),
        (text(first + 1), "replaced", job(first + 2)),
    ]
    assert hash_of(store)["skip_count"] == "2"


def test_the_newest_replaces_all_who_wait_and_each_is_counted(store: Store) -> None:
    place = Place(store, "wait 1 5")
    assert [place.fire().code for _ in range(4)] == ["OK", "WAITS", "WAITS", "WAITS"]
    assert place.fire(REPLACE).code == "WAITS"
    state = hash_of(store)
    assert (state["skip_count"], state["kept"], state["skips"]) == ("3", "4", "replaced 3")
    assert [line["n"] for line in place.lines if line["type"] == "skipped"] == [3, 2, 1]


def test_what_stands_in_line_and_is_no_tick_goes_without_a_verdict(store: Store) -> None:
    place = Place(store, WAIT)
    assert [place.fire().code for _ in range(2)] == ["OK", "WAITS"]
    store.client.zadd(WAITING, {"garbage": 9e12})
    assert place.fire(REPLACE).code == "WAITS"
    assert (len(place.waiting), hash_of(store)["skip_count"], hash_of(store)["skips"]) == (1, "1", "replaced 1")


def test_a_verdict_that_a_line_of_who_waits_pushes_out_is_kept_no_longer(store: Store) -> None:
    small = Store(store.client, Keys(), history_limit=2)
    place = Place(small, WAIT)
    place.fire()
    small.client.rpush("beat:runs:report", '{"type":"enqueued"}')
    small.client.hset("beat:schedule:report", "kept", 2)
    assert place.fire().code == "WAITS"
    while small.client.llen("beat:runs:report") < 4 * 2 + 20:
        small.client.lpush("beat:runs:report", '{"type":"succeeded"}')
    assert place.fire(REPLACE).code == "WAITS"
    kept = [line for line in place.lines if line["type"] in {"enqueued", "skipped"}]
    assert hash_of(small)["kept"] == str(len(kept))


def test_what_a_page_has_just_fired_has_its_room_in_every_slot(store: Store) -> None:
    store.client.hset("beat:groups", "g", "wait 5 5")
    place = Place(store, "", group="g")
    items = [place.item()]
    place.at += 1
    items.append(place.item(SKIP))
    assert [*store.fire(items, token=TOKEN).replies] == [OK, Reply("SKIPPED", "overlap")]


@pytest.mark.parametrize("full", [SKIP, WAIT, REPLACE, "skip 1", "wait 1"])
def test_without_a_ledger_no_tick_is_skipped_or_waits(store: Store, full: str) -> None:
    in_group = full.count(" ") == 1
    store.client.hset("beat:groups", "g", full if in_group else "wait 9")
    place = Place(store, "" if in_group else full, group="g")
    place.fire()
    store.client.delete("beat:runs:report")
    store.client.set("beat:runs:report", "garbage", px=60_000)
    before, state = everything(store), hash_of(store)
    assert [*store.fire([place.item()], token=TOKEN).replies] == [Reply("BADTYPE", NO_LIST)]
    assert changed(before, store) == {"beat:schedule:report", "beat:lock:report", "beat:due"}
    assert hash_of(store) == {**state, "last_error": NO_LIST}


@pytest.mark.parametrize("kind", ["admit", "pass"])
def test_without_a_ledger_nobody_leaves_the_line(store: Store, kind: str) -> None:
    place = Place(store, WAIT)
    place.fire()
    waits = place.at
    assert place.fire().code == "WAITS"
    store.client.hset("beat:schedule:report", "state", "paused")  # so that its turn passes, too
    store.client.delete("beat:runs:report")
    store.client.set("beat:runs:report", "garbage", px=60_000)
    item = verdict(waits, following=None, kind=kind, last="", slot=WAIT, reason="dependency")
    assert [reply.code for reply in store.fire([item], token=OTHER).replies] == ["BADTYPE"]
    assert (place.waiting, hash_of(store)["skip_count"]) == ([f"report {text(waits)} scheduler"], "0")


def test_the_ticks_of_one_page_find_no_more_room_than_those_of_several(store: Store) -> None:
    place = Place(store, "skip 2 0")
    items = []
    for _ in range(4):
        items.append(place.item())
        place.at += 1
    assert [reply.code for reply in store.fire(items, token=TOKEN).replies] == ["OK", "OK", "SKIPPED", "SKIPPED"]
    assert place.running == [items[0].job, items[1].job]


def test_what_was_fired_before_there_was_a_slot_has_its_room(store: Store) -> None:
    place = Place(store, SKIP)
    assert place.fire("") == OK
    assert place.fire() == Reply("SKIPPED", "overlap")


# --- runs that have ended --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["finished", "failed", "stopped", "canceled"])
@shows("fire", "ENDED")
def test_what_has_ended_is_closed_before_anything_is_decided(store: Store, status: str) -> None:
    place = Place(store, SKIP)
    place.fire()
    place.end(place.jobs[0], status)
    before, state = place.lines, hash_of(store)
    assert place.fire() == Reply("ENDED", "1")
    assert (place.lines, hash_of(store)) == (before, state)
    assert store.client.get("beat:lock:report") == TOKEN.encode()
    place.close()
    assert place.running == []
    assert place.fire(f"{SKIP} cleared") == OK


@pytest.mark.parametrize(("status", "code"), [("finished", "OK"), ("failed", "OK"), ("canceled", "SKIPPED")])
def test_who_could_not_be_closed_has_ended_all_the_same(store: Store, status: str, code: str) -> None:
    place = Place(store, SKIP)
    place.fire()
    place.end(place.jobs[0], status)  # what is cancelled may still be running
    assert place.fire(f"{SKIP} cleared").code == code


def test_a_tick_that_waits_and_comes_again_is_not_decided_twice(store: Store) -> None:
    place = Place(store, WAIT)
    first = place.at
    place.fire()
    place.fire()
    lines = place.lines
    again: Any = {"next_run": text(first + 1), "due_at": text(first + 1)}  # somebody has put it back
    store.client.hset("beat:schedule:report", mapping=again)
    store.client.zadd("beat:due", {"report": 0})
    claim(store)
    place.at = first + 1
    assert place.fire() == Reply("WAITS")
    assert (place.lines, len(place.waiting)) == (lines, 1)
    assert hash_of(store)["next_run"] == text(first + 2)


def test_where_a_schedule_stands_is_known_after_a_skip(store: Store) -> None:
    place = Place(store, SKIP)
    first = place.at
    place.fire()
    place.fire()
    [state] = store.look(["report"])
    assert state is not None
    assert state.last == clock.at(first + 1)


@pytest.mark.parametrize("command", ["zscore", "zcard"])
def test_who_may_not_look_at_a_slot_enqueues_nothing_by_halves(command: str, store: Store) -> None:
    place = Place(store, SKIP)
    place.fire()
    other = put_and_claim(store, "other")
    before = everything(store)
    with restricted(store, f"-{command}") as few, pytest.raises(ResponseError, match=command):
        few.fire([verdict(other, "other"), place.item()], token=TOKEN)
    assert changed(before, store) == set()


def test_plain_tick_needs_no_right_to_slots(store: Store) -> None:
    at = put_and_claim(store, "other")
    with restricted(store, "-zcard", "-zrange") as few:
        assert few.fire([verdict(at, "other")], token=TOKEN).replies == (OK,)


@pytest.mark.parametrize("status", ["queued", "started", "scheduled", "deferred"])
def test_what_goes_on_has_its_room(store: Store, status: str) -> None:
    place = Place(store, SKIP)
    place.fire()
    store.client.hset(f"rq:job:{place.jobs[0]}", "status", status)
    assert place.fire().code == "SKIPPED"


def test_what_nobody_watches_takes_up_no_room(store: Store) -> None:
    place = Place(store, SKIP)
    place.fire()
    store.client.zrem("beat:open", place.jobs[0])
    assert place.fire() == OK
    assert place.running == [place.jobs[1]]


def test_a_run_that_goes_on_again_has_its_room_again(store: Store) -> None:
    place = Place(store, SKIP)
    store.client.hset("beat:schedule:report", "overlap", "skip")
    place.fire()
    place.end(place.jobs[0], "failed")
    place.close()
    assert place.running == []
    store.client.hset(f"rq:job:{place.jobs[0]}", "status", "queued")
    Watcher(store, name="us", emit=lambda _: None).turn()
    assert place.running == [place.jobs[0]]


# --- letting in ------------------------------------------------------------------------------------------------------


@shows("fire", "FULL")
def test_who_waits_is_let_in_when_there_is_room_and_once(store: Store) -> None:
    place = Place(store, WAIT)
    first = place.at
    place.fire()
    place.fire()
    assert place.admit(first + 1) == FULL
    place.end(place.jobs[0])
    place.close()
    assert (store.client.zscore(SLOTS, "report") or 0) <= second(store) * 1000 + 1000  # to be looked at now
    lock, index = store.client.get("beat:lock:report"), score(store)
    assert place.admit(first + 1) == OK
    assert place.admit(first + 1).code == STALE
    assert queued(store) == [job(first + 1)]
    assert (place.running, place.waiting) == ([job(first + 1)], [])
    assert not store.client.exists(SLOTS)
    state = hash_of(store)
    assert (state["run_count"], state["last_run"], state["last_job"]) == ("2", text(first + 1), job(first + 1))
    assert state["next_run"] == text(first + 2)  # which it did not move
    assert (store.client.get("beat:lock:report"), score(store)) == (lock, index)
    assert place.lines[0] == {
        "type": "enqueued",
        "tick": text(first + 1),
        "job": job(first + 1),
        "by": "scheduler",
        "n": 2,
    }


def test_nobody_overtakes_who_waits(store: Store) -> None:
    place = Place(store, WAIT)
    place.fire()
    place.fire()
    place.end(place.jobs[0])
    place.close()
    assert place.fire() == Reply("ENDED", "0")  # first, let in who waits
    assert place.fire(f"{WAIT} cleared").code == "SKIPPED"  # nobody did: there is one who waits


def test_a_tick_that_was_let_in_late_does_not_set_last_run_back(store: Store) -> None:
    place = Place(store, WAIT)
    first = place.at
    place.fire()
    place.fire()
    store.client.hset("beat:schedule:report", "last_run", text(first + 40))
    place.end(place.jobs[0])
    place.close()
    assert place.admit(first + 1) == OK
    assert hash_of(store)["last_run"] == text(first + 40)


@pytest.mark.parametrize("state", ["paused", "disabled", "retired", "broken"])
def test_the_turn_of_a_tick_that_comes_too_late_is_recorded(store: Store, state: str) -> None:
    place = Place(store, WAIT)
    first = place.at
    place.fire()
    place.fire()
    store.client.hset("beat:schedule:report", "state", state)
    assert place.admit(first + 1) == Reply("SKIPPED", state)
    assert (place.waiting, queued(store)) == ([], [job(first)])
    assert place.lines[0]["reason"] == state
    assert hash_of(store)["skip_count"] == "1"


def test_who_waits_when_the_schedule_has_finished_is_let_in(store: Store) -> None:
    place = Place(store, WAIT)
    first = place.at
    place.fire()
    assert place.fire(next="", next_due=0).code == "WAITS"
    assert hash_of(store)["state"] == "finished"
    place.end(place.jobs[0])
    place.close()
    assert place.admit(first + 1) == OK
    assert hash_of(store)["state"] == "finished"


def test_who_waits_for_a_schedule_that_is_gone_waits_no_longer(store: Store) -> None:
    place = Place(store, WAIT)
    first = place.at
    place.fire()
    place.fire()
    store.client.delete("beat:schedule:report")
    assert place.admit(first + 1).code == "GONE"
    assert not store.client.exists(WAITING, SLOTS)


@pytest.mark.parametrize("key", [RUNNING, WAITING, SLOTS])
def test_a_slot_that_is_something_else_is_named_and_nothing_is_written(store: Store, key: str) -> None:
    place = Place(store, WAIT)
    place.fire()
    store.client.delete(key)
    store.client.set(key, "garbage", px=60_000)
    before = hash_of(store)
    assert place.fire() == Reply("BADTYPE", f"{key} is a string, not a zset")
    assert hash_of(store)["next_run"] == before["next_run"]


# --- max_runs --------------------------------------------------------------------------------------------------------


def test_after_so_many_ticks_the_schedule_has_finished(store: Store) -> None:
    place = Place(store, "", max_runs=3)
    assert [place.fire().code for _ in range(2)] == ["OK", "OK"]
    assert hash_of(store)["state"] == "active"
    assert place.fire() == OK
    state = hash_of(store)
    assert (state["state"], state["run_count"], state.get("next_run")) == ("finished", "3", None)
    assert score(store) is None


def test_a_chain_is_cut_at_the_last_run(store: Store) -> None:
    place = Place(store, "", max_runs=2)
    items = []
    for _ in range(4):
        items.append(place.item())
        place.at += 1
    codes = [reply.code for reply in store.fire(items, token=TOKEN).replies]
    assert codes[:2] == ["OK", "OK"]
    assert "OK" not in codes[2:]
    assert queued(store) == [items[0].job, items[1].job]


def test_ticks_that_wait_count_and_skipped_ones_do_not(store: Store) -> None:
    place = Place(store, WAIT, max_runs=2)
    assert [place.fire().code, place.fire().code] == ["OK", "WAITS"]
    assert hash_of(store)["state"] == "finished"


def test_what_somebody_asked_for_is_no_tick(store: Store) -> None:
    place = Place(store, "", max_runs=2)
    store.client.hset("beat:schedule:report", mapping={"run_count": 5, "manual_count": 5})
    assert [place.fire().code, place.fire().code] == ["OK", "OK"]
    assert hash_of(store)["state"] == "finished"


def test_no_more_are_enqueued_than_there_are_to_be_whoever_waits(store: Store) -> None:
    place = Place(store, "wait 1 5", max_runs=2)
    first = place.at
    place.fire(max_runs="")
    place.fire(max_runs="")
    place.fire(max_runs="")  # there was no limit when these came
    assert place.fire() == Reply("SKIPPED", "finished")
    assert hash_of(store)["state"] == "finished"
    for n in (1, 2):
        for each in place.running:
            place.end(each)
        place.close()
        item = verdict(first + n, following=None, kind="admit", last="", slot=place.slot, max_runs=2)
        [reply] = store.fire([item], token=OTHER).replies
        assert reply == (OK if n == 1 else Reply("SKIPPED", "finished"))
    assert hash_of(store)["run_count"] == "2"


# --- the attendant ---------------------------------------------------------------------------------------------------


SLOT = Slot("nobody", "", "active", 0, (), ())


class House:
    """A schedule as it is declared, and an attendant."""

    def __init__(self, store: Store, **given: Any) -> None:
        self.schedule = Schedule(
            **{"id": "report", "func": "tests.support.job_functions.anything", "timing": Every("1s"), **given}
        )
        self.store, self.events = store, list[Any]()
        emit = self.events.append
        sync = Sync(store, [self.schedule], beat="us", emit=emit)
        sync.announce()
        sync.register()
        self.at = second(store) - 50
        slot = str(jitter_and_capacity.slot(self.schedule) or "")
        store.client.hset("beat:schedule:report", mapping={"next_run": text(self.at), "due_at": text(self.at)})
        store.client.zadd("beat:due", {"report": self.at * 1000})
        claim(store)
        self.place = Place.__new__(Place)
        self.place.store, self.place.slot, self.place.changes = store, slot, {"rev": self.schedule.rev}
        self.place.at, self.place.jobs = self.at, []
        self.attendant = Attendant(store, Book(store), Watcher(store, name=TOKEN, emit=emit), token=TOKEN, emit=emit)

    def told(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == name]


def test_the_attendant_closes_what_has_ended_and_lets_in_who_waits(store: Store) -> None:
    house = House(store, overlap="wait", max_waiting=2)
    place = house.place
    assert [place.fire().code for _ in range(3)] == ["OK", "WAITS", "WAITS"]
    house.attendant.turn()
    assert place.running == place.jobs[:1]
    place.end(place.jobs[0])
    store.client.zadd(SLOTS, {"report": 0})
    house.attendant.turn()
    assert place.running == place.jobs[1:2]
    assert [event.fields["tick"] for event in house.told("admitted")] == [text(house.at + 1)]
    assert house.told("run_succeeded")


def test_when_runs_may_overlap_again_nobody_waits_any_longer(store: Store) -> None:
    house = House(store)  # its code says nothing of overlap any more
    place = house.place
    place.slot = "wait 1 3"
    assert [place.fire().code for _ in range(3)] == ["OK", "WAITS", "WAITS"]
    store.client.zadd(SLOTS, {"report": 0})
    house.attendant.turn()
    assert place.waiting == []
    assert len(queued(store)) == 3


@shows("withdraw", "OK")
def test_who_is_to_be_replaced_is_taken_out_of_the_queue_and_the_newest_is_there_at_once(store: Store) -> None:
    house = House(store, overlap="replace")
    place = house.place
    assert [place.fire().code, place.fire().code] == ["OK", "WAITS"]
    house.attendant.turn()
    assert queued(store) == [place.jobs[1]]
    assert place.running == [place.jobs[1]]
    assert store.client.hget(f"rq:job:{place.jobs[0]}", "status") == b"canceled"
    assert 0 < store.client.ttl(f"rq:job:{place.jobs[0]}") <= 86_400
    assert house.told("run_stopped")[0].fields["error"] == f"replaced by the tick of {text(house.at + 1)}"
    [line] = [line for line in place.lines if line["type"] == "stopped"]
    assert line["reason"] == f"replaced by the tick of {text(house.at + 1)}"


@shows("withdraw", "STARTED", "STALE", "TOLD")
def test_who_is_to_be_replaced_and_has_begun_is_told_to_stop(store: Store) -> None:
    house = House(store, overlap="replace")
    place = house.place
    place.fire()
    place.fire()
    store.client.lrem(QUEUE, 1, place.jobs[0])
    house.attendant.turn()  # a worker has taken it, and not begun
    assert place.running == place.jobs[:1]
    store.client.hset(f"rq:job:{place.jobs[0]}", "status", "started")
    store.client.zadd(SLOTS, {"report": 0})
    house.attendant.turn()  # nobody can be told, and so nobody was
    assert not store.client.exists(f"beat:told:{place.jobs[0]}")
    store.client.hset(f"rq:job:{place.jobs[0]}", "worker_name", "someone")
    client: Any = store.client
    with client.pubsub() as heard:
        heard.subscribe("rq:pubsub:someone")
        for _ in range(4):
            store.client.zadd(SLOTS, {"report": 0})
            house.attendant.turn()
        said = [message for _ in range(5) if (message := heard.get_message(timeout=0.5))]
        told = [json.loads(each["data"])["command"] for each in said if each["type"] == "message"]
        assert told == ["stop-job"], "a worker that is told while it stops a job takes itself for it, and dies"
        assert 60_000 < store.client.pttl(f"beat:told:{place.jobs[0]}") <= 90_000
        store.client.delete(f"beat:told:{place.jobs[0]}")  # as time does: perhaps it did not listen
        store.client.zadd(SLOTS, {"report": 0})
        house.attendant.turn()
        assert heard.get_message(timeout=5)


def test_the_reason_of_a_replaced_run_survives_the_scheduler_that_stopped_it(store: Store) -> None:
    house = House(store, overlap="replace")
    place = house.place
    place.fire()
    place.fire()
    [job], newest = place.jobs[:1], text(house.at + 1)
    store.client.lrem(QUEUE, 1, job)
    store.client.hset(f"rq:job:{job}", mapping={"status": "started", "worker_name": "someone"})
    house.attendant.turn()  # this scheduler is never heard of again
    record = Record.read(str(store.client.hget("beat:records", job).decode()))  # type: ignore[union-attr]
    assert record is not None
    assert record.replaced_by == newest
    place.end(job, "stopped")
    place.close()
    [line] = [line for line in place.lines if line["type"] == "stopped"]
    assert line["reason"] == f"replaced by the tick of {newest}"


def test_a_run_that_a_second_tick_replaces_before_it_has_stopped_names_the_second(store: Store) -> None:
    slots, place = Slots(store), Place(store, "replace 1 1")
    place.fire()
    [job] = place.jobs
    store.client.lrem(QUEUE, 1, job)
    store.client.hset(f"rq:job:{job}", mapping={"status": "started", "worker_name": "someone"})
    for tick in ("2026-11-16T09:05:00Z", "2026-11-16T09:06:00Z"):
        slots.withdraw("report", [job], tick=tick)
        record = Record.read(str(store.client.hget("beat:records", job).decode()))  # type: ignore[union-attr]
        assert record is not None
        assert record.replaced_by == tick


def test_who_is_in_another_queue_by_now_is_found_there(store: Store) -> None:
    house = House(store, overlap="replace", queue="new")
    place = house.place
    place.fire()
    store.client.hset(f"rq:job:{place.jobs[0]}", "origin", "default")
    place.fire()
    for _ in range(2):
        store.client.zadd(SLOTS, {"report": 0}, xx=True)
        house.attendant.turn()
    assert store.client.hget(f"rq:job:{place.jobs[0]}", "status") == b"canceled"
    assert place.running == [place.jobs[1]]


def test_nobody_is_stopped_for_a_tick_that_will_not_run(store: Store) -> None:
    house = House(store, overlap="replace")
    place = house.place
    place.fire()
    place.fire()
    store.client.hset("beat:schedule:report", "state", "paused")
    house.attendant.turn()
    assert queued(store) == [place.jobs[0]]
    assert (place.waiting, place.lines[0]["reason"]) == ([], "paused")
    assert [event.fields["reason"] for event in house.told("skipped")] == ["paused"]


def test_an_index_that_somebody_deleted_comes_back_with_the_next_tick(store: Store) -> None:
    house = House(store, overlap="wait")
    place = house.place
    place.fire()
    place.fire()
    store.client.delete(SLOTS)
    assert place.fire().code == "SKIPPED"
    place.end(place.jobs[0])
    house.attendant.turn()
    assert place.running == [place.jobs[1]]


def test_who_waits_for_a_schedule_that_was_deleted_is_forgotten(store: Store) -> None:
    house = House(store, overlap="wait")
    house.place.fire()
    house.place.fire()
    store.client.delete("beat:schedule:report")
    store.client.zadd(SLOTS, {"report": 0})
    house.attendant.turn()
    assert not store.client.exists(WAITING, SLOTS)


def test_what_keeps_a_tick_from_its_turn_is_told_once(store: Store) -> None:
    house = House(store, overlap="wait")
    place = house.place
    place.fire()
    place.fire()
    place.end(place.jobs[0])
    store.client.delete(QUEUE)
    store.client.set(QUEUE, "garbage", px=60_000)
    for _ in range(2):
        store.client.zadd(SLOTS, {"report": 0})
        house.attendant.turn()
    assert [event.schedule_id for event in house.told("enqueue_failed")] == ["report"]


def test_one_turn_has_an_end_however_many_wait(store: Store) -> None:
    house = House(store, overlap="wait")
    with mock.patch.object(Slots, "attend", return_value=(1, [SLOT])) as asked:
        house.attendant.turn()
    assert asked.call_count == 10


def test_garbage_waits_for_nothing(store: Store) -> None:
    house = House(store, overlap="wait")
    store.client.zadd(WAITING, {"garbage": 0, "report never scheduler": 0})
    store.client.zadd(SLOTS, {"report": 0, "nobody": 0})
    house.attendant.turn()
    assert not store.client.exists(WAITING, SLOTS)


def test_a_slot_is_looked_at_by_one_of_many_beats_at_a_time(store: Store) -> None:
    house = House(store, overlap="wait")
    house.place.fire()
    house.place.fire()
    store.client.zadd(SLOTS, {"report": 0})
    assert [Slots(store).attend(limit=10, interval=60_000)[0] for _ in range(3)] == [1, 0, 0]


@pytest.mark.parametrize(("overlap", "later_ms"), [("wait", INTERVAL_MS), ("replace", 0)])
def test_who_has_just_found_it_full_is_not_looked_at_at_once_unless_somebody_has_to_go(
    store: Store, overlap: str, later_ms: int
) -> None:
    place = House(store, overlap=overlap).place
    place.fire()
    before = clock.to_ms(store.time())
    assert place.fire().code == "WAITS"
    when = store.client.zscore(SLOTS, "report") or 0
    assert before <= when - later_ms <= clock.to_ms(store.time())


def test_who_comes_into_a_line_that_is_to_be_looked_at_puts_that_off_for_nobody(store: Store) -> None:
    place = House(store, overlap="wait", max_waiting=2).place
    assert [place.fire().code for _ in range(2)] == ["OK", "WAITS"]
    store.client.zadd(SLOTS, {"report": 1})
    assert place.fire().code == "WAITS"
    assert store.client.zscore(SLOTS, "report") == 1


# --- how much one step does ------------------------------------------------------------------------------------------


def test_full_slots_of_many_schedules_are_looked_at_in_several_steps(store: Store) -> None:
    ids, at = [f"s{n:02}" for n in range(50)], second(store) - 10
    store.register([registration(each, at) for each in ids], beat="tests")
    with store.client.pipeline(transaction=False) as pipe:
        for each in ids:
            members = {f"beat_{each}_{n}": n for n in range(100)}
            pipe.zadd(store.keys.running(each), members)
            pipe.zadd(store.keys.open, members)
        pipe.execute()
    assert len(claim(store).claims) == 50
    left = [verdict(at, each, slot="skip 100 0") for each in ids]
    decided = store.fire(left, token=TOKEN)
    codes = [reply.code for reply in decided.replies]
    assert codes == sorted(codes, reverse=True)
    assert codes.count("SKIPPED") < 50
    assert set(decided.replies[codes.count("SKIPPED") :]) == {Reply("EARLY", "0")}
    late = [item for item, reply in zip(left, decided.replies, strict=True) if reply.code == "EARLY"]
    assert {reply.code for reply in store.fire(late, token=TOKEN).replies} == {"SKIPPED"}
    assert store.client.zcount(store.keys.due, at * 1000 + 60_000, at * 1000 + 60_000) == 50


@shows("withdraw", "LATER")
def test_long_queue_is_searched_for_a_few_jobs_in_each_step(store: Store) -> None:
    for n in range(60):
        store.client.rpush(QUEUE, *[f"other{m}" for m in range(n * 10_000, (n + 1) * 10_000)])
    ids = [f"beat_report_{n}" for n in range(5)]
    for each in ids:
        store.client.rpush(QUEUE, each)
        store.client.hset(f"rq:job:{each}", mapping={"status": "queued", "origin": "default"})
    replies = store.run("withdraw", [(each,) for each in ids], tick="2026-11-16T09:00:00Z", kept=10, told=10)
    assert [code for code, _ in replies] == [b"OK"] + [b"LATER"] * 4
    store.client.rpush(QUEUE, ids[0])
    store.client.hset(f"rq:job:{ids[0]}", "status", "queued")
    Slots(store).withdraw("report", ids, tick="2026-11-16T09:00:00Z")
    assert store.client.llen(QUEUE) == 600_000
