"""What a tick requires of other schedules: judged by what Redis says, and judged anew when that changes meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.schedule.requires import Requires
from beat.storage.messages import Reply
from beat.storage.operations import Operations
from tests.support.builders import changed, claim, everything, score, shows, text
from tests.support.many_schedules import Town, periodic

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

OK = Reply("OK")


def town(store: Store, *others: str, requires: Any = "extract", **options: Any) -> Town:
    """A schedule `report` that requires `extract`."""
    parents = (periodic(each) for each in ("extract", *others))
    return Town(store, *parents, periodic("report", requires=requires, **options))


def why(place: Town) -> list[str]:
    lines = place.lines("report", "skipped")
    assert {line["reason"] for line in lines} <= {"dependency"}
    return [line["why"] for line in lines]


def has_succeeded(place: Town, ago: int, schedule_id: str = "extract") -> None:
    """So many seconds before the first tick."""
    place.client.hset(f"beat:schedule:{schedule_id}", "last_success", text(place.start - ago))


def test_a_tick_passes_when_what_it_requires_has_never_succeeded(store: Store) -> None:
    place = town(store)
    assert place.fire("report") == OK
    assert why(place) == ["extract has never succeeded"]
    assert (place.queued(), place.state("report")["skip_count"]) == ([], "1")
    assert place.state("report")["next_run"] == text(place.start + 1)
    place.one_verdict_each("report")


def test_a_tick_fires_when_what_it_requires_has_succeeded_since_the_tick_before(store: Store) -> None:
    place = town(store)
    for ago, queued in ((1, 1), (2, 1)):
        has_succeeded(place, ago)
        place.put("report", place.start)
        place.fire("report")
        assert len(place.queued()) == queued
    assert why(place) == [f"extract has not succeeded since {text(place.start - 1)}"]


@pytest.mark.parametrize(("ago", "fires"), [(0, True), (60, True), (61, False)])
def test_a_success_within_so_long_will_do(store: Store, ago: int, fires: bool) -> None:  # noqa: FBT001 (a table)
    place = town(store, requires=Requires("extract", within="1m"))
    has_succeeded(place, ago)
    place.fire("report")
    assert bool(place.queued()) is fires


def test_a_run_that_ends_well_is_what_is_required(store: Store) -> None:
    place = town(store)
    place.fire("extract")
    place.fire("report")
    place.succeed(place.job("extract"))
    place.fire("report")
    assert place.queued() == [place.job("report", 1)]


def test_all_that_is_required_must_have_succeeded(store: Store) -> None:
    place = town(store, "other", requires=[Requires("extract", within="1m"), Requires("other", within="1m")])
    has_succeeded(place, 0)
    place.fire("report")
    assert why(place) == ["other has never succeeded"]
    has_succeeded(place, 0, "other")
    place.fire("report")
    assert place.queued() == [place.job("report", 1)]


# --- what changes between the look and the verdict -------------------------------------------------------------------


@shows("fire", "CHANGED")
def test_a_success_that_comes_between_is_not_overlooked(store: Store) -> None:
    place = town(store)
    place.fire("extract")
    items = place.chain("report", 2)
    assert [item.kind for item in items] == ["skip", "skip"]
    place.succeed(place.job("extract"))
    claim(store)
    before = everything(store)
    assert [reply.code for reply in place.send(items)] == ["CHANGED", "STALE"]
    assert changed(before, store) <= {"beat:due", "beat:lock:report", "beat:lock:extract"}
    assert place.lines("report", "skipped", "enqueued") == []
    assert score(store, "report") == place.start * 1000  # to be claimed again at once
    assert place.fire("report") == OK
    assert place.queued() == [place.job("report")]


@shows("fire", "CHANGED")
def test_a_success_of_the_second_that_is_required_is_not_overlooked_either(store: Store) -> None:
    place = town(store, "other", requires=[Requires("extract", within="1m"), Requires("other", within="1m")])
    has_succeeded(place, 0)
    [item] = place.chain("report")
    has_succeeded(place, 0, "other")
    assert [reply.code for reply in place.send([item])] == ["CHANGED"]


def test_what_has_not_changed_is_as_it_was_expected(store: Store) -> None:
    place = town(store, "other", requires=["extract", "other"])
    has_succeeded(place, 30)
    items = place.chain("report")
    assert place.send(items) == [OK]


GARBLED = [
    "never",
    "two words",
    "2026-11-16 09:00:00Z",
    "\n",
    "caf\xe9 \u2603",
    b"\xff\xfe",
    "2026-11-16T09:00:00+00:00",
]


@pytest.mark.parametrize("garbled", GARBLED, ids=ascii)
def test_what_somebody_wrote_by_hand_keeps_no_tick_from_its_verdict(store: Store, garbled: Any) -> None:
    place = town(store)
    place.client.hset("beat:schedule:extract", "last_success", garbled)
    assert place.fire("report") == OK
    assert len(why(place)) == 1


# --- who is not there ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["paused", "disabled", "retired", "broken", "finished"])
def test_the_state_of_what_is_required_is_told(store: Store, state: str) -> None:
    place = town(store)
    place.client.hset("beat:schedule:extract", "state", state)
    place.fire("report")
    has_succeeded(place, 100)
    place.fire("report")
    assert why(place) == [
        f"extract is {state}, and has never succeeded",
        f"extract is {state}, and has not succeeded since {text(place.start)}",
    ]


def test_a_success_counts_though_the_schedule_is_paused_since(store: Store) -> None:
    place = town(store)
    has_succeeded(place, 0)
    place.client.hset("beat:schedule:extract", "state", "paused")
    place.fire("report")
    assert place.queued() == [place.job("report")]


def test_what_was_removed_is_told(store: Store) -> None:
    place = town(store)
    place.client.delete(*place.client.scan_iter("beat:announce*"))
    assert Operations(store).remove([("extract", "")], by="ann") == [OK]
    place.fire("report")
    assert why(place) == ["there is no extract any more"]


def test_a_key_that_is_no_schedule_is_none(store: Store) -> None:
    place = town(store)
    place.client.delete("beat:schedule:extract")
    place.client.set("beat:schedule:extract", "garbage")
    place.fire("report")
    assert why(place) == ["there is no extract any more"]


# --- with others -----------------------------------------------------------------------------------------------------


def test_a_run_that_somebody_asks_for_is_not_held_to_it(store: Store, server: PrivateRedis) -> None:
    place = town(store)
    assert Client(server.url).trigger("report").job_id in place.queued()


def test_what_is_not_met_takes_no_room_and_waits_for_none(store: Store) -> None:
    place = town(store, overlap="wait", max_runs=1)
    place.fire("report")
    assert place.state("report")["state"] == "active"
    assert not place.client.exists("beat:waiting:report", "beat:running:report")


def test_a_tick_that_waited_was_judged_when_it_came(store: Store) -> None:
    place = town(store, overlap="wait")
    has_succeeded(place, -30)
    assert place.codes("report", "report") == ["OK", "WAITS"]
    place.client.hdel("beat:schedule:extract", "last_success")
    place.succeed(place.job("report"))
    place.turn()
    assert place.queued() == [place.job("report", 1)]
