"""What ticks depend on besides their time: `claim` tells it, so that no pass stops to ask; who was not told asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from beat.engine.fact_reader import Inquiry
from beat.policies.facts import UNTOLD, Parent, Told
from beat.schedule.requires import Requires
from beat.timing import clock
from tests.support.builders import claim, text
from tests.support.many_schedules import Town, periodic
from tests.support.schedulers_in_turn import Crew, hourly

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.schedule.schedule import Schedule
    from beat.storage.store import Store

QUEUES = ("x", "y")


def town(store: Store, **options: Any) -> Town:
    parents = (periodic(each) for each in ("extract", "load"))
    return Town(store, *parents, periodic("report", **options))


def told(place: Town) -> Told:
    """By the claim, which says what one would hear who asked."""
    [found] = [each.told for each in claim(place.store).claims if each.id == "report"]
    asked = Inquiry(place.store).read([place.schedules["report"]], clock.to_ms(place.store.time()))["report"]
    assert found == asked
    return found


def test_a_claim_tells_when_all_that_is_required_has_succeeded(store: Store) -> None:
    place = town(store, requires=[Requires("extract", within="1h"), "load"])
    place.client.hset("beat:schedule:extract", "last_success", text(place.start))
    place.client.hset("beat:schedule:load", "state", "paused")
    assert told(place).parents == {"extract": Parent("active", text(place.start)), "load": Parent("paused")}


def test_a_claim_tells_of_a_parent_that_is_gone(store: Store) -> None:
    place = town(store, requires=["extract", "load"])
    place.client.delete("beat:schedule:extract")
    assert told(place).parents == {"extract": Parent(), "load": Parent("active")}


def test_a_claim_tells_the_queues_that_were_used_and_how_many_runs_were_slow(store: Store) -> None:
    place = town(store, queues=QUEUES, route="round_robin", slow_queue="slow", slow_window="1m")
    assert told(place) == Told("", 0)
    place.fire("report")
    place.client.zadd("beat:slow:report", {"a": place.start * 1000, "b": 1, "c": (place.start + 5) * 1000})
    place.client.expire("beat:slow:report", 60)
    place.client.delete("beat:lock:report")
    place.put("report", place.start + 1)
    found = told(place)
    assert (found.uses, found.slow) == ('[["x",1]]', 2)


WRITTEN = {"none": "", "signs": '\x00\x1f"\\\n', "wide": "é☃", "torn": "[[[", "long": "x" * 10_000}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_a_claim_tells_what_stands_there_whatever_it_is(store: Store, written: str) -> None:
    place = town(store, queues=QUEUES, route="round_robin", requires="extract")
    place.client.hset("beat:schedule:report", "uses", written)
    place.client.hset("beat:schedule:extract", "last_success", written)
    found = told(place)
    assert (found.uses, found.parents["extract"].last_success) == (written, written)


def test_bytes_that_are_no_text_and_keys_of_another_kind_are_no_reason_to_fail(store: Store) -> None:
    place = town(store, slow_queue="slow", requires=["extract", "load"])
    place.client.hset("beat:schedule:extract", "last_success", b"\xff\xfe")
    place.client.delete("beat:schedule:load")
    place.client.set("beat:schedule:load", "x")
    place.client.set("beat:slow:report", "x", ex=60)
    assert told(place) == Told("", 0, {"extract": Parent("active", "��"), "load": Parent()})


def test_no_more_is_told_than_may_be_required_whatever_stands_there(store: Store, server: PrivateRedis) -> None:
    crew = Crew(store, server, hourly("extract"), hourly("report", requires=Requires("extract", within="1h")))
    store.client.hset("beat:schedule:extract", "last_success", clock.text(store.time()))
    store.client.hset("beat:schedule:report", "requires", ", ".join([*(f"s{n}" for n in range(100_000)), "extract"]))
    crew.due("report")
    [found] = claim(store).claims
    assert len(found.told.parents) == 10
    store.client.delete("beat:lock:report")
    crew.tick("report")
    assert enqueued(crew) == 1


def test_what_depends_on_nothing_is_told_nothing(store: Store) -> None:
    place = town(store)
    assert [each.told for each in claim(place.store).claims] == [UNTOLD] * 3


def enqueued(crew: Crew) -> int:
    return len([line for line in crew.lines("report") if '"enqueued"' in line])


DEPENDS = {
    "round_robin": hourly("report", queues=QUEUES, route="round_robin"),
    "hash": hourly("report", queues=QUEUES, route="hash"),
    "slow": hourly("report", slow_queue="slow"),
    "requires": hourly("report", requires=Requires("extract", within="1h")),
    "shortest": hourly("report", queues=QUEUES, route="shortest", requires=Requires("extract", within="1h")),
}


@pytest.mark.parametrize("schedule", DEPENDS.values(), ids=DEPENDS)
def test_a_pass_does_not_stop_to_ask_what_it_was_told(
    store: Store, server: PrivateRedis, monkeypatch: pytest.MonkeyPatch, schedule: Schedule
) -> None:
    crew = Crew(store, server, hourly("extract"), schedule)
    store.client.hset("beat:schedule:extract", "last_success", clock.text(store.time()))
    asked: list[str] = []
    monkeypatch.setattr(Inquiry, "read", lambda _, found, __: asked.extend(each.id for each in found))
    for n in (1, 2):
        crew.tick("report")
        assert enqueued(crew) == n
    assert asked == []


def test_who_was_not_told_asks(store: Store, server: PrivateRedis) -> None:
    requires = Requires("extract", within="1h")
    crew = Crew(store, server, hourly("extract"), hourly("report", requires=requires, slow_queue="slow", slow_times=1))
    store.client.hset("beat:schedule:extract", "last_success", clock.text(store.time()))
    store.client.zadd("beat:slow:report", {"a": clock.to_ms(store.time())})
    store.client.expire("beat:slow:report", 60)
    store.client.hdel("beat:schedule:report", "requires", "slow")  # by hand: they are there for people, too
    crew.tick("report")
    assert enqueued(crew) == 1
    assert store.client.llen("rq:queue:slow") == 1
