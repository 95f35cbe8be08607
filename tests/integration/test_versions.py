"""Versions of an application side by side: the newest live definition is in force, in whatever order they come."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.support.builders import changed, everything, hash_of, shows
from tests.support.rq_versions import Code, schedule

if TYPE_CHECKING:
    from beat.storage.store import Store

# --- several versions ------------------------------------------------------------------------------------------------


@shows("register", "OLDER")
def test_a_rollback_waits_until_no_live_scheduler_declares_the_newer_definition(store: Store) -> None:
    first = Code(store, schedule("report")).start()
    store.client.hset("beat:schedule:report", "run_count", "7")
    last = Code(store, schedule("report", queue="fast")).start()
    settled = everything(store)
    first.sync.register()
    assert first.sync.older == {"report"}
    assert not changed(settled, store)
    last.end()
    first.sync.register(["report"])
    found = hash_of(store, "report")
    assert (first.sync.older, found["queue"], found["run_count"]) == (set(), "default", "7")
    assert first.told() == [("older", "report"), ("updated", "report")]


def test_of_two_old_versions_the_newer_one_is_in_force(store: Store) -> None:
    first = Code(store, schedule("report")).start()
    second = Code(store, schedule("report", queue="second")).start()
    Code(store, schedule("report", queue="third")).start().end()
    first.sync.register()
    assert first.sync.older == {"report"}
    second.sync.register()
    assert hash_of(store, "report")["queue"] == "second"
    settled = everything(store)
    first.sync.register()
    second.sync.register()
    assert not changed(settled, store)


# --- applications ----------------------------------------------------------------------------------------------------


@shows("register", "SHARED")
def test_a_schedule_that_two_applications_declare_stays_with_the_first(store: Store) -> None:
    Code(store, schedule("common"), app="shop").start()
    other = Code(store, schedule("common"), schedule("own"), app="billing").start()
    settled = everything(store)
    for _ in range(3):
        other.sync.register()
    assert hash_of(store, "common")["app"] == "shop"
    assert store.client.smembers("beat:app:billing") == {b"own"}
    assert (other.told(), other.sync.refused) == ([], {"common"})
    assert not changed(settled, store)


@pytest.mark.parametrize("was", ["", "default"])
def test_an_application_that_gets_a_name_takes_its_schedules_along(store: Store, was: str) -> None:
    Code(store, schedule("report")).start().end()
    if not was:  # as an earlier beat wrote it
        store.client.hdel("beat:schedule:report", "app")
    named = Code(store, schedule("report"), app="billing").start()
    assert hash_of(store, "report")["app"] == "billing"
    assert store.client.smembers("beat:app:billing") == {b"report"}
    taken_over = [("taken_over", "")] if was else []
    assert named.told() == [("updated", "report"), *taken_over]


# --- any order -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_whatever_comes_and_goes_nothing_is_lost_and_it_is_settled(store: Store, seed: int) -> None:
    """Each version was deployed once. From then on, whatever starts, ends or shows its heartbeat, nothing is lost."""
    chance = random.Random(seed)  # noqa: S311 (no secret)
    versions = [schedule("report", queue=queue) for queue in "abcd"]
    for each in versions:
        Code(store, each).start().end()
    store.client.hset("beat:schedule:report", "run_count", "7")
    live: list[Code] = []
    for _ in range(40):
        what = chance.choice(["start", "heartbeat", "heartbeat", "end"])
        if what == "start" and len(live) < 3:
            live.append(Code(store, chance.choice(versions)).start())
        elif what == "heartbeat" and live:
            chance.choice(live).heartbeat()
        elif what == "end" and live:
            gone = live.pop(chance.randrange(len(live)))
            if all(code.sync.digest != gone.sync.digest for code in live):
                gone.end()
        assert hash_of(store, "report")["run_count"] == "7"
    for _ in range(2):
        for code in live:
            code.heartbeat()
    settled = hash_of(store, "report")
    for code in live:
        code.heartbeat()
    assert hash_of(store, "report") == settled
    in_force = {code.sync.digest for code in live if not code.sync.older}
    assert len(in_force) == min(1, len(live)), "the schedulers of one version have it as they declare it"
