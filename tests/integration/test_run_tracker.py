"""The watcher: every run is closed once, as RQ's records say, whoever looks, dies, or loses a reply meanwhile."""

from __future__ import annotations

import json
import random
import threading
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from beat.engine import run_tracker
from beat.engine.run_tracker import INTERVAL_MS, SEARCH_S, Watcher
from beat.jobs.outcomes import MISSING_MS
from beat.jobs.report import Report
from beat.storage import connection
from beat.storage.lifetimes import SEARCH_MS, WATCH_MS
from beat.storage.runs import Runs
from beat.storage.store import Store
from beat.telemetry import logs
from beat.timing import clock
from tests.support.builders import QUEUE, Calls, another_client, changed, everything, hash_of, spent_us
from tests.support.facts import wait_until
from tests.support.hand_made import (
    GONE,
    JOB,
    STARTED,
    TICK,
    closed_runs,
    is_watched,
    ledger,
    minutes_ago,
    not_yet,
    open_runs,
    put_closed,
    put_job,
    put_result,
    put_run,
    put_schedule,
    raised,
    record,
    records,
    returned,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beat.engine.events import Event

COUNTERS = ("success_count", "failure_count", "stopped_count", "consecutive_failures")
LATER = {"started_at": "2026-11-16T09:05:00.000000Z", "ended_at": "2026-11-16T09:05:01.500000Z"}
LATEST = {"started_at": "2026-11-16T09:10:00.000000Z", "ended_at": "2026-11-16T09:10:01.500000Z"}


class Watch:
    """A watcher, and what it tells."""

    def __init__(self, store: Store, name: str = "beat-1") -> None:
        self.store = store
        self.events: list[Event] = []
        self.watcher = Watcher(store, name=name, emit=self.events.append)

    def look(self) -> None:
        """A turn, as if it were time to look at everything."""
        self.store.client.delete(self.store.keys.watching)
        for job in open_runs(self.store):
            self.store.client.zadd(self.store.keys.open, {job: 0})
        self.watcher.turn()

    def search(self) -> None:
        self.store.client.delete(self.store.keys.searched)
        self.watcher.search()

    def a_minute_passes(self) -> None:
        """What was marked as missing was marked a minute ago."""
        for job, kept in records(self.store).items():
            if "missing" in kept:
                kept["missing"] -= MISSING_MS
                self.store.client.hset(self.store.keys.records, job, json.dumps(kept))

    @property
    def names(self) -> list[str]:
        return [event.name for event in self.events]


@pytest.fixture
def watch(store: Store) -> Watch:
    put_schedule(store, run_count=1)
    return Watch(store)


def counts(store: Store, schedule_id: str = "report") -> tuple[int, ...]:
    state = hash_of(store, schedule_id)
    return tuple(int(state.get(name, 0)) for name in COUNTERS)


def outcomes(store: Store, job: str = JOB) -> list[str]:
    """What the ledger tells of a run, oldest first."""
    return [line["type"] for line in reversed(ledger(store)) if line.get("job") == job]


# --- how runs end ----------------------------------------------------------------------------------------------------


def test_a_run_that_has_succeeded_is_written_down(watch: Watch, store: Store) -> None:
    put_run(store)
    put_result(store, return_value=returned(Report(success=True, message="42 rows", details={"rows": 42})))
    watch.look()
    line = ledger(store)[0]
    assert line.pop("at") >= "2026"
    assert line == {
        "type": "succeeded", "tick": TICK, "job": JOB, "started": "2026-11-16T09:00:00.020Z",
        "ended": "2026-11-16T09:00:03.120Z", "duration": 3.1, "worker": "w1", "attempts": 1, "waited": 0.016,
        "message": "42 rows", "details": {"rows": 42}, "beat": "beat-1",
    }  # fmt: skip
    assert (open_runs(store), closed_runs(store), records(store)) == ({}, {}, {})
    assert counts(store) == (1, 0, 0, 0)
    assert hash_of(store)["last_duration"] == "3.1"
    assert [(event.name, event.schedule_id, event.fields) for event in watch.events] == [
        ("run_succeeded", "report", {"tick": TICK, "job_id": JOB, "seconds": "3.1", "error": ""})
    ]


@pytest.mark.parametrize(("page_due", "looked_at"), [("", 5), ("another", 2)])
def test_who_has_ticks_to_fire_looks_at_one_page_of_runs(
    page_due: str, looked_at: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_tracker, "_PAGE", 2)
    put_schedule(store, run_count=5)
    for n in range(5):
        put_run(store, f"job_{n}", "queued")
    Watcher(store, name="beat-1", emit=lambda _: None, is_busy=lambda: bool(page_due)).turn()
    assert sum(score > 0 for score in open_runs(store).values()) == looked_at


ENDS: dict[str, tuple[str | None, dict[str, Any], str, tuple[int, ...], str]] = {
    "success": ("finished", {}, "run_succeeded", (1, 0, 0, 0), ""),
    "a failure": ("failed", {"exc_string": raised("KeyError: 'x'")}, "run_failed", (0, 1, 0, 1), "KeyError: 'x'"),
    "a failure that it reports": (
        "finished", {"return_value": returned(Report(success=False, message="no rows"))}, "run_failed", (0, 1, 0, 1),
        "reported: no rows",
    ),
    "a stop": ("stopped", {}, "run_stopped", (0, 0, 1, 0), "a stop command to its worker ended it"),
    "a cancellation": ("canceled", {}, "run_stopped", (0, 0, 1, 0), "its job was cancelled"),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS)
def test_every_end_is_told_and_counted(case: tuple[Any, ...], watch: Watch, store: Store) -> None:
    status, result, event, counted, words = case
    put_run(store, JOB, status)
    put_result(store, **result)
    watch.look()
    assert counts(store) == counted
    assert [(each.name, each.fields["error"]) for each in watch.events] == [(event, words)]
    assert open_runs(store) == {}
    assert hash_of(store).get("last_error", "") == (words if event == "run_failed" else "")
    assert told(store)[-1]["type"] == outcomes(store)[-1] == event.removeprefix("run_")
    watch.look()
    assert len(watch.events) == 1, "once"


def test_every_event_of_the_watcher_has_a_line_in_the_log(watch: Watch, store: Store) -> None:
    for n, (status, *_) in enumerate(ENDS.values()):
        put_run(store, f"job-{n}", status)
    put_closed(store, "again", "queued")
    watch.look()
    for event in watch.events:
        _, words = logs.LINES[event.name]
        assert words.format_map({"schedule_id": event.schedule_id, **event.fields})


@pytest.mark.parametrize(
    ("ended", "shown"),
    [("09:00:00.021", "0.001"), ("09:00:02.5", "2.48"), ("09:01:40.02", "100"), ("10:20:00", "4800"), ("", "?")],
)
def test_how_long_it_took_is_told_in_figures_that_people_read(
    ended: str, shown: str, watch: Watch, store: Store
) -> None:
    put_run(store, JOB, "finished", ended_at=f"2026-11-16T{ended}Z" if ended else "")
    watch.look()
    assert watch.events[0].fields["seconds"] == shown


@pytest.mark.parametrize(
    "case",
    [
        ("finished", {"result_ttl": 0}, True), ("finished", {"result_ttl": 5}, True), ("finished", {}, False),
        ("failed", {"failure_ttl": 0}, True), ("failed", {"failure_ttl": 5}, True),
        ("failed", {"result_ttl": 0}, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("known_by", ["hash", "result"])
def test_the_users_own_times_begin_at_the_end_of_the_run(
    known_by: str, case: tuple[str, dict[str, Any], bool], watch: Watch, store: Store
) -> None:
    """It ended long ago, so that five seconds have passed: RQ keeps nothing of it."""
    status, own, goes = case
    ended = "2026-01-01T00:00:00.000000Z" if known_by == "hash" else ""
    put_run(store, JOB, status, record=record(**own), ended_at=ended, started_at="")
    registry = f"rq:{status}:default"
    store.client.zadd(registry, {JOB: 9_999_999_999, "other": 9_999_999_999})
    if known_by == "result":
        store.client.xadd(f"rq:results:{JOB}", {"type": "1"}, id="1767225600000-0")
    watch.look()
    assert len(outcomes(store)) == 1
    assert bool(store.client.exists(f"rq:job:{JOB}", f"rq:results:{JOB}")) != goes
    assert (store.client.zscore(registry, JOB) is None) == goes
    assert store.client.zscore(registry, "other") == 9_999_999_999


def test_by_redis_clock_if_that_is_known(watch: Watch, store: Store) -> None:
    """The worker's clock is an hour slow: the result was written just now."""
    put_run(store, JOB, "finished", record=record(result_ttl=50), ended_at=minutes_ago(store, 60), started_at="")
    put_result(store)
    watch.look()
    assert 0 < store.client.pttl(f"rq:job:{JOB}") <= 50_000


def test_what_is_left_of_the_users_own_time_is_kept(watch: Watch, store: Store) -> None:
    ended = clock.text(store.time())
    put_run(store, JOB, "finished", record=record(result_ttl=50), ended_at=ended)
    put_result(store)
    store.client.zadd("rq:finished:default", {JOB: 9_999_999_999})
    watch.look()
    for key in (f"rq:job:{JOB}", f"rq:results:{JOB}"):
        assert 0 < store.client.pttl(key) <= 50_000
    kept_until: Any = store.client.zscore("rq:finished:default", JOB)
    assert kept_until == pytest.approx(clock.to_ms(clock.read(ended)) / 1000 + 50, abs=2)


def test_a_schedule_that_is_gone_hinders_nobody(watch: Watch, store: Store) -> None:
    put_run(store, "of-one-that-is-gone", record=record("gone"))
    put_run(store)
    watch.look()
    assert not is_watched(store)
    assert watch.names == ["run_succeeded"] * 2
    assert not store.client.exists("beat:schedule:gone", "beat:runs:gone")


# --- again -----------------------------------------------------------------------------------------------------------


def test_a_failure_that_is_requeued_and_fails_again_is_one_failure(watch: Watch, store: Store) -> None:
    put_run(store, JOB, "failed")
    watch.look()
    assert (counts(store), list(closed_runs(store))) == ((0, 1, 0, 1), [JOB])
    put_job(store, JOB, "queued")
    watch.look()
    assert (counts(store), list(open_runs(store)), closed_runs(store)) == ((0, 0, 0, 0), [JOB], {})
    put_job(store, JOB, "failed", **LATER)
    watch.look()
    assert counts(store) == (0, 1, 0, 1)
    assert outcomes(store) == ["failed", "reopened", "failed"]
    assert ledger(store)[0]["attempts"] == 2
    assert watch.names == ["run_failed", "run_reopened", "run_failed"]
    assert watch.events[1].fields == {"tick": TICK, "job_id": JOB, "was": "failed"}


@pytest.mark.parametrize(
    ("status", "after"), [("finished", (1, 0, 0, 0)), ("failed", (0, 1, 0, 1)), ("stopped", (0, 0, 1, 0))]
)
@pytest.mark.parametrize("first", ["failed", "stopped", "lost", "failed unseen", "stopped unseen", "lost unseen"])
def test_whatever_a_run_was_the_newest_outcome_counts(
    first: str, status: str, after: tuple[int, ...], watch: Watch, store: Store
) -> None:
    """Whether anybody saw it between the two or not."""
    first, _, unseen = first.partition(" ")
    if first == "lost":
        put_run(store, JOB, "queued", record=record(enqueued=minutes_ago(store, 5)))
        watch.search()
        watch.a_minute_passes()
        watch.search()
    else:
        put_run(store, JOB, first)
        watch.look()
    assert outcomes(store) == [first]
    if not unseen:
        put_job(store, JOB, "started")
        watch.look()
        assert counts(store) == (0, 0, 0, 0)
    put_job(store, JOB, status, **LATER)
    watch.look()
    assert counts(store) == after
    assert outcomes(store)[-1] == {"finished": "succeeded"}.get(status, status)


def test_failures_in_a_row_are_counted_over_runs_not_attempts(watch: Watch, store: Store) -> None:
    put_run(store, "a", "failed")
    put_run(store, "b", "failed")
    watch.look()
    assert counts(store) == (0, 2, 0, 2)
    for times in (LATER, LATEST):
        put_job(store, "a", "queued")
        watch.look()
        assert counts(store) == (0, 1, 0, 1)
        put_job(store, "a", "failed", **times)
        watch.look()
        assert counts(store) == (0, 2, 0, 2)
    put_run(store, "c", "finished", **LATEST)
    watch.look()
    assert counts(store) == (1, 2, 0, 0)


def test_a_failure_before_a_success_does_not_shorten_the_row_after_it(watch: Watch, store: Store) -> None:
    put_run(store, "old", "failed")
    watch.look()
    put_run(store, "good", "finished", **LATER)
    watch.look()
    put_run(store, "new", "failed", **LATEST)
    watch.look()
    assert counts(store) == (1, 2, 0, 1)
    put_job(store, "old", "queued")
    watch.look()
    assert counts(store) == (1, 1, 0, 1)


def test_runs_may_be_closed_in_another_order_than_they_ended(watch: Watch, store: Store) -> None:
    """The newest tells how things stand; those before it only count."""
    put_run(store, "last", "finished", **LATEST)
    watch.look()
    put_run(store, "before", "failed", **LATER)
    watch.look()
    assert counts(store) == (1, 1, 0, 0)
    assert hash_of(store)["last_success"] == "2026-11-16T09:10:01.500Z"
    put_run(store, "first", "finished")
    watch.look()
    assert counts(store) == (2, 1, 0, 0)
    assert hash_of(store)["last_success"] == "2026-11-16T09:10:01.500Z"
    assert hash_of(store)["last_duration"] == "1.5"


def test_a_failure_that_is_known_late_does_not_hide_a_newer_one(watch: Watch, store: Store) -> None:
    put_run(store, "new", "failed", **LATEST)
    put_result(store, "new", exc_string=raised("NewError: x"))
    watch.look()
    put_run(store, "old", "failed")
    put_result(store, "old", exc_string=raised("OldError: x"))
    watch.look()
    state = hash_of(store)
    assert (state["last_failure"], state["last_error"]) == ("2026-11-16T09:10:01.500Z", "NewError: x")
    assert counts(store) == (0, 2, 0, 2)


def test_the_runs_of_a_schedule_that_was_removed_and_came_again_do_not_count(watch: Watch, store: Store) -> None:
    put_run(store, "of-its-first-life", record=record(life="2026-01-01T00:00:00.000Z"))
    put_run(store, "of-this-life", record=record(life=hash_of(store)["created_at"]))
    watch.look()
    assert counts(store) == (1, 0, 0, 0)
    assert outcomes(store, "of-its-first-life") == outcomes(store, "of-this-life") == ["succeeded"]


def test_nor_do_they_when_they_run_again(watch: Watch, store: Store) -> None:
    put_run(store, "of-this-life", "failed", record=record(life=hash_of(store)["created_at"]))
    put_run(store, "of-its-first-life", "failed", record=record(life="2026-01-01T00:00:00.000Z"))
    watch.look()
    assert counts(store) == (0, 1, 0, 1)
    put_job(store, "of-its-first-life", "queued")
    watch.look()
    assert outcomes(store, "of-its-first-life") == ["failed", "reopened"]
    assert counts(store) == (0, 1, 0, 1)


def put_silent_runs(store: Store) -> None:
    """Runs whose time limit is long over, and whose worker is silent; a look asks one of them for a sign of life."""
    silent = record(missing=1, missing_as="started")
    for n in range(5):
        put_run(store, f"job-{n}", "started", record=silent, started_at=STARTED, timeout=5)


def test_a_scheduler_that_has_just_started_declares_no_silent_run_lost(watch: Watch, store: Store) -> None:
    put_silent_runs(store)
    for _ in range(3):
        watch.look()
    assert (watch.names, closed_runs(store)) == ([], {})


def test_a_worker_that_was_given_up_and_finishes_makes_a_success_of_a_loss(
    watch: Watch, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beat.jobs.outcomes.LISTEN_MS", 0)
    put_silent_runs(store)
    watch.look()
    (job,) = closed_runs(store)
    assert (outcomes(store, job), counts(store)) == (["lost"], (0, 1, 0, 1))
    store.client.delete(store.keys.open)  # a second later the turn would come to another
    put_job(store, job, "finished")
    watch.look()
    assert (outcomes(store, job), counts(store)) == (["lost", "succeeded"], (1, 0, 0, 0))
    assert ledger(store)[0]["attempts"] == 1


def test_what_was_closed_is_watched_page_by_page(watch: Watch, store: Store) -> None:
    for n in range(450):
        put_closed(store, f"job-{n}", since=n + 1)
    watch.look()
    for n in range(450):
        put_job(store, f"job-{n}", "queued")

    def all_are_open() -> bool:
        watch.look()
        return len(open_runs(store)) == 450

    wait_until(all_are_open)
    assert watch.names == ["run_reopened"] * 450
    assert closed_runs(store) == {}


def test_the_oldest_of_many_closed_runs_is_noticed(watch: Watch, store: Store) -> None:
    for n in range(450):
        put_closed(store, f"job-{n}", since=n + 1)
    put_job(store, "job-0", "queued")

    def is_noticed() -> bool:
        watch.look()
        return watch.names == ["run_reopened"]

    wait_until(is_noticed)
    assert list(open_runs(store)) == ["job-0"]


# --- missing ---------------------------------------------------------------------------------------------------------


def test_a_job_that_is_gone_is_lost_after_a_minute(watch: Watch, store: Store) -> None:
    put_run(store, JOB, GONE)
    watch.look()
    assert open_runs(store)[JOB] > clock.to_ms(store.time()) + 5_000, "there is no hurry"
    watch.look()
    assert (outcomes(store), counts(store)) == ([], (0, 0, 0, 0))
    watch.a_minute_passes()
    watch.look()
    assert (outcomes(store), counts(store)) == (["lost"], (0, 1, 0, 1))
    assert not is_watched(store)
    assert "RQ has no record of it" in hash_of(store)["last_error"]


def test_a_job_that_comes_back_within_a_minute_is_not_lost(watch: Watch, store: Store) -> None:
    """As one does that was deleted while it ran."""
    put_run(store, JOB, GONE)
    watch.look()
    put_job(store, JOB, "finished")
    watch.look()
    assert outcomes(store) == ["succeeded"]


def test_a_job_that_vanished_from_its_queue_is_lost_after_a_minute(watch: Watch, store: Store) -> None:
    put_run(store, JOB, "queued", record=record(enqueued=minutes_ago(store, 5)))
    watch.look()
    assert "missing" not in records(store)[JOB], "nobody has looked for it yet"
    watch.search()
    assert records(store)[JOB]["missing_as"] == "queued"
    watch.search()
    assert outcomes(store) == []
    watch.a_minute_passes()
    watch.search()
    assert outcomes(store) == ["lost"]
    assert ledger(store)[0]["reason"] == "it is in no queue, and no worker has started it"


def elsewhere(store: Store) -> None:
    """Somebody has put it into another queue, as RQ's `enqueue_job` does."""
    store.client.hset(f"rq:job:{JOB}", "origin", "slow")
    store.client.rpush("rq:queue:slow", JOB)


@pytest.mark.parametrize(
    "place", [lambda store: store.client.rpush(QUEUE, JOB), elsewhere], ids=["in its queue", "in another"]
)
def test_a_job_that_waits_is_never_lost(place: Callable[[Store], object], watch: Watch, store: Store) -> None:
    put_run(store, JOB, "queued", record=record(enqueued=minutes_ago(store, 60 * 24 * 30)))
    place(store)
    for _ in range(3):
        watch.look()
        watch.search()
        watch.a_minute_passes()
    assert outcomes(store) == []
    assert list(open_runs(store)) == [JOB]


def test_a_job_that_a_worker_took_and_never_started_is_lost_after_a_minute(watch: Watch, store: Store) -> None:
    put_run(store, JOB, "queued", record=record(enqueued=minutes_ago(store, 5)))
    store.client.rpush(f"{QUEUE}:intermediate", JOB)
    watch.search()
    assert outcomes(store) == []
    watch.a_minute_passes()
    watch.search()
    assert outcomes(store) == ["lost"]


def test_what_is_cancelled_while_it_runs_is_not_stopped_before_it_ends(watch: Watch, store: Store) -> None:
    put_run(store, JOB, "canceled", record=record(missing=1, missing_as="started"))
    store.client.zadd(f"rq:executions:{JOB}", {"e": 1})
    store.client.hset(f"rq:execution:{JOB}:e", "id", "e")
    watch.look()
    assert outcomes(store) == []
    put_job(store, JOB, "finished")
    watch.look()
    assert outcomes(store) == ["succeeded"]


def test_open_runs_whose_index_somebody_deleted_are_found_again(watch: Watch, store: Store) -> None:
    for n in range(3):
        put_run(store, f"open-{n}")
    put_closed(store, "closed")
    store.client.hset("beat:records", "garbage", "garbage")
    store.client.delete("beat:open")
    put_run(store, "fired-since")
    watch.search()
    assert [(event.name, event.fields) for event in watch.events] == [("repaired", {"count": 3})]
    assert set(open_runs(store)) == {"open-0", "open-1", "open-2", "fired-since"}
    watch.look()
    assert counts(store) == (4, 0, 0, 0)


@pytest.mark.parametrize("key", ["beat:open", "beat:closed", "beat:records"])
def test_an_index_that_is_none_cannot_be_built_again(key: str, watch: Watch, store: Store) -> None:
    put_run(store)
    put_closed(store, "closed")
    store.client.delete(key)
    store.client.set(key, "garbage")
    watch.search()
    assert store.client.get(key) == b"garbage"
    store.client.delete(key)


def test_an_index_that_is_whole_is_not_built_again(watch: Watch, store: Store) -> None:
    put_run(store, JOB, "queued")
    put_closed(store, "closed")
    calls = Calls(store)
    watch.search()
    assert "hscan" not in calls.count()
    assert watch.events == []


def test_a_job_that_moved_while_the_lists_were_read_is_found(watch: Watch, store: Store) -> None:
    kept = record(enqueued=minutes_ago(store, 5), missing=1, missing_as="scheduled")
    put_run(store, JOB, "scheduled", record=kept)
    store.client.zadd("rq:scheduled:default", {JOB: 1})
    watch.search()
    assert outcomes(store) == []
    assert "missing" not in records(store)[JOB]


def test_a_young_job_is_not_looked_for(watch: Watch, store: Store) -> None:
    put_run(store, JOB, "queued", record=record(enqueued=clock.text(store.time())))
    watch.search()
    assert "missing" not in records(store)[JOB]


def test_a_job_is_looked_for_that_was_enqueued_in_the_future(watch: Watch, store: Store) -> None:
    """Redis' clock has gone back since."""
    put_run(store, JOB, "queued", record=record(enqueued=minutes_ago(store, -60)))
    watch.search()
    assert "missing" in records(store)[JOB]


def test_it_is_searched_every_so_often_and_by_one(watch: Watch, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[str] = []

    def search(_: Runs, before: str, now: str) -> Iterator[list[tuple[str, ...]]]:
        assert before < now
        searches.append(before)
        yield from ()

    monkeypatch.setattr(Runs, "search", search)
    other = Watch(store, "beat-2")
    for each in (watch, other):
        each.look()
    assert searches == [], "not at the start: what was enqueued just now is in its queue"
    for each in (watch, other):
        each.watcher._searched_at -= SEARCH_S  # noqa: SLF001 (as if the time had passed)
        each.look()
        each.look()
    assert len(searches) == 1
    assert SEARCH_MS - 10_000 < store.client.pttl("beat:searched") <= SEARCH_MS


# --- one looks -------------------------------------------------------------------------------------------------------


def test_who_comes_second_does_not_look(watch: Watch, store: Store) -> None:
    other = Watch(store, "beat-2")
    put_run(store)
    store.client.set("beat:watching", "somebody", px=60_000)
    watch.watcher.turn()
    other.watcher.turn()
    assert (watch.events, other.events) == ([], [])
    assert list(open_runs(store)) == [JOB]
    store.client.delete("beat:watching")
    other.watcher.turn()
    assert other.names == ["run_succeeded"]
    assert 0 < store.client.pttl("beat:watching") <= WATCH_MS


def test_who_looks_and_dies_keeps_nobody_from_looking(store: Store, watch: Watch) -> None:
    """The lock runs out by itself, and so does the time until the run is looked at again."""
    put_run(store)
    assert [each.job for each in Runs(store).observe(limit=500, interval=INTERVAL_MS).sightings] == [JOB]
    store.client.set("beat:watching", "the dead one", px=WATCH_MS)

    def is_told() -> bool:
        watch.watcher.turn()
        return watch.names == ["run_succeeded"]

    wait_until(is_told)
    assert counts(store) == (1, 0, 0, 0)


def together(*acts: Callable[[], object]) -> None:
    """All of them at the same time; raises what one of them raised."""
    ready, failed = threading.Barrier(len(acts)), list[Exception]()

    def run(act: Callable[[], object]) -> None:
        ready.wait()
        try:
            act()
        except Exception as e:  # noqa: BLE001 (handed on below)
            failed.append(e)

    threads = [threading.Thread(target=run, args=[act]) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def test_of_ten_that_saw_the_same_one_closes_each_run(store: Store) -> None:
    put_schedule(store)
    ends = ["finished", "failed", "stopped"]
    for n in range(60):
        put_run(store, f"job-{n}", ends[n % 3])
    watches = [Watch(Store(another_client(store), store.keys), f"beat-{n}") for n in range(10)]
    seen = Runs(store).observe(limit=500, interval=0)
    assert len(seen.sightings) == 60
    together(*(lambda each=each: each.watcher.settle(seen) for each in watches))
    assert counts(store)[:3] == (20, 20, 20)
    assert len(ledger(store)) == 61
    assert sum(len(each.events) for each in watches) == 60
    assert open_runs(store) == {}


def test_ten_beats_that_look_at_once_close_each_run_once(store: Store) -> None:
    put_schedule(store)
    for n in range(60):
        put_run(store, f"job-{n}", "finished")
    watches = [Watch(Store(another_client(store), store.keys), f"beat-{n}") for n in range(10)]
    together(*(each.watcher.turn for each in watches))
    assert counts(store) == (60, 0, 0, 0)
    assert sorted(len(each.events) for each in watches) == [0] * 9 + [60]


def test_a_run_that_is_requeued_while_ten_look_is_reopened_once(store: Store, watch: Watch) -> None:
    put_run(store, JOB, "failed")
    watch.look()
    put_job(store, JOB, "queued")
    watches = [Watch(Store(another_client(store), store.keys), f"beat-{n}") for n in range(10)]
    seen = Runs(store).observe(limit=500, interval=0, closed_limit=200)
    together(*(lambda each=each: each.watcher.settle(seen) for each in watches))
    assert outcomes(store) == ["failed", "reopened"]
    assert counts(store) == (0, 0, 0, 0)


# --- faults ----------------------------------------------------------------------------------------------------------


def lose_the_reply(monkeypatch: pytest.MonkeyPatch, script: str, *, before: bool) -> None:
    """The next call of that script fails, before or after Redis has done it."""
    run, calls = connection.run, list[str]()

    def failing(client: Any, name: str, /, *items: Any, **named: Any) -> Any:
        if name == script and not calls:
            calls.append(name)
            if not before:
                run(client, name, *items, **named)
            raise RedisConnectionError("the reply is lost")
        return run(client, name, *items, **named)

    monkeypatch.setattr(connection, "run", failing)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("script", ["acquire", "observe", "close"])
def test_whatever_is_lost_on_the_wire_a_run_is_closed_once(
    script: str, when: str, watch: Watch, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_run(store)
    put_run(store, "other", "failed")
    lose_the_reply(monkeypatch, script, before=when == "before")
    with pytest.raises(RedisConnectionError):
        watch.look()
    watch.look()
    assert (outcomes(store), outcomes(store, "other")) == (["succeeded"], ["failed"])
    assert counts(store)[:3] == (1, 1, 0)
    assert open_runs(store) == {}


def test_the_same_sent_again_changes_nothing(watch: Watch, store: Store) -> None:
    for n, status in enumerate(["finished", "failed", "stopped", "canceled"]):
        put_run(store, f"job-{n}", status)
    put_closed(store, "again", "queued")
    seen = Runs(store).observe(limit=500, interval=0, closed_limit=200)
    watch.watcher.settle(seen)
    before, told_before = everything(store), len(watch.events)
    watch.watcher.settle(seen)
    assert not changed(before, store)
    assert len(watch.events) == told_before == 5


def test_what_changed_between_the_look_and_the_word_is_looked_at_again(watch: Watch, store: Store) -> None:
    put_run(store, JOB, "failed")
    seen = Runs(store).observe(limit=500, interval=0)
    put_job(store, JOB, "queued")
    watch.watcher.settle(seen)
    assert outcomes(store) == []
    put_job(store, JOB, "finished", **LATER)
    watch.look()
    assert outcomes(store) == ["succeeded"]


@pytest.mark.parametrize("key", ["beat:runs:bad", "beat:schedule:bad"])
def test_what_cannot_be_written_is_told_once_and_hinders_nobody(key: str, watch: Watch, store: Store) -> None:
    put_schedule(store, "bad")
    store.client.delete(key)
    store.client.set(key, "garbage")
    for n in range(3):
        put_run(store, f"bad-{n}", record=record("bad"))
    put_run(store)
    for _ in range(3):
        watch.look()
    assert outcomes(store) == ["succeeded"]
    assert sorted(set(watch.names)) == ["run_succeeded", "unclosed"]
    (unclosed,) = [event for event in watch.events if event.name == "unclosed"]
    assert key in unclosed.fields["error"]
    assert set(open_runs(store)) == {"bad-0", "bad-1", "bad-2"}
    store.client.delete(key)
    put_schedule(store, "bad") if key == "beat:schedule:bad" else None
    watch.look()
    assert open_runs(store) == {}


def test_two_keys_that_are_wrong_are_each_told_once(watch: Watch, store: Store) -> None:
    for each in ("bad1", "bad2"):
        put_schedule(store, each)
        store.client.delete(f"beat:runs:{each}")
        store.client.set(f"beat:runs:{each}", "garbage")
        put_run(store, each, record=record(each))
    for _ in range(3):
        watch.look()
    assert watch.names == ["unclosed"] * 2
    store.client.delete("beat:runs:bad1", "beat:runs:bad2")


HOSTILE = [
    "", "garbage", "[]", "{}", '{"schedule":3}', '{"schedule":"report","result_ttl":"5"}', '{"schedule":"\\ud800"}',
    '{"schedule":"report","enqueued":5}', '{"schedule":"report","outcome":["x"]}', "\x00", "[" * 5000,
    '{"schedule":"report","retries":1e999}', '{"schedule":"report","tick":"\\ud800"}',
]  # fmt: skip


def test_records_that_make_no_sense_are_forgotten_and_hinder_nobody(watch: Watch, store: Store) -> None:
    for n, garbage in enumerate(HOSTILE):
        put_run(store, f"open-{n}", record=garbage)
        put_closed(store, f"closed-{n}", "queued", record=garbage)
        put_run(store, f"waits-{n}", "queued", record=garbage)
    store.client.hset("beat:records", "open-0", b"\xff\xfe")
    put_run(store)
    watch.look()
    watch.search()
    assert outcomes(store) == ["succeeded"]
    assert set(open_runs(store)) == {f"waits-{n}" for n in range(len(HOSTILE))}
    for n in range(len(HOSTILE)):
        put_job(store, f"waits-{n}", "finished")
    watch.look()
    assert not is_watched(store)
    assert sorted(watch.names) == ["run_forgotten"] * 3 * len(HOSTILE) + ["run_succeeded"]


FIELDS = ("status", "started_at", "ended_at", "worker_name", "origin", "retries_left", "number_of_retries")


@pytest.mark.parametrize(
    "garbage", [b"", b'"', b"\\", b"\x00\n", "é🎉".encode(), b"9" * 400, b"-1", b"nan", b"\xff"], ids=repr
)
def test_whatever_stands_in_rqs_records_a_run_is_closed_once(garbage: bytes, watch: Watch, store: Store) -> None:
    for n, field in enumerate(FIELDS):
        for status in ("finished", "failed"):
            job = f"{status}-{n}"
            put_run(store, job, status)
            store.client.hset(f"rq:job:{job}", field, garbage)
            put_result(store, job, worker_name=garbage, return_value=garbage, exc_string=garbage,
                       execution_started_at=garbage, execution_ended_at=garbage, type=garbage)  # fmt: skip
    for _ in range(3):
        watch.look()
    assert set(open_runs(store)) == {"finished-0", "failed-0"}, "in a state that nobody knows: not ended"
    assert sum(counts(store)[:3]) == 2 * len(FIELDS) - 2
    assert len(ledger(store)) == 2 * len(FIELDS) - 2 + 1, "and each line is JSON"


def test_a_job_whose_id_is_no_text_is_looked_at_looked_for_and_closed(watch: Watch, store: Store) -> None:
    odd = "\udcff"  # as Python reads the byte 255
    kept = record(enqueued=minutes_ago(store, 5))
    for job in (b"\xff", b"other"):
        store.client.zadd("beat:open", {job: 0})
        store.client.hset("beat:records", job, kept)
        store.client.hset(b"rq:job:" + job, "status", "queued")
    watch.search()
    marked: Any = store.client.hvals("beat:records")
    assert [b"missing" in each for each in marked] == [True, True]
    for job in (b"\xff", b"other"):
        store.client.hset(b"rq:job:" + job, "status", "finished")
    store.client.delete("beat:watching")
    watch.watcher.turn()
    assert sorted(event.fields["job_id"] for event in watch.events) == ["other", odd]
    assert not is_watched(store)
    assert len(ledger(store)) == 3


def test_a_result_from_the_end_of_time_is_no_trouble(watch: Watch, store: Store) -> None:
    put_run(store, JOB, "finished", ended_at="")
    store.client.xadd(f"rq:results:{JOB}", {"type": "1"}, id="18446744073709551614-1")
    watch.look()
    assert outcomes(store) == ["succeeded"]


# --- many ------------------------------------------------------------------------------------------------------------


def test_thousands_that_ended_at_once_are_closed_in_one_turn(watch: Watch, store: Store) -> None:
    for n in range(2300):
        put_run(store, f"job-{n}", "finished")
    watch.look()
    assert open_runs(store) == {}
    assert counts(store) == (2300, 0, 0, 0)


def test_long_tracebacks_are_taken_a_few_at_a_time_and_all_in_one_turn(watch: Watch, store: Store) -> None:
    for n in range(9):
        put_run(store, f"job-{n}", "failed")
        put_result(store, f"job-{n}", exc_string="x" * 290_000)
    assert len(Runs(store).observe(limit=500, interval=0).sightings) == 4
    watch.look()
    assert counts(store) == (0, 9, 0, 9)


@pytest.mark.parametrize(("minutes", "least", "most"), [(0, 0, 2_000), (60, 3_500, 4_500)])
def test_in_a_long_backlog_who_has_waited_long_is_looked_at_less_often(
    minutes: int, least: int, most: int, watch: Watch, store: Store
) -> None:
    put_run(store, JOB, "queued", enqueued_at=minutes_ago(store, minutes))
    not_yet(store, (f"other-{n}" for n in range(20_000)))
    before = clock.to_ms(store.time())
    watch.watcher.turn()
    score: Any = store.client.zscore("beat:open", JOB)
    assert least < score - before < most


def test_a_thousand_open_runs_cost_redis_little(watch: Watch, store: Store) -> None:
    """Ten milliseconds, says the design; three times that is allowed to a machine that is busy elsewhere."""
    for n in range(1000):
        put_run(store, f"job-{n}", "queued" if n % 5 else "started", worker_name="w1")
        store.client.zadd(f"rq:executions:job-{n}", {"e": 1})
        store.client.hset(f"rq:execution:job-{n}:e", "id", "e")
    spent = []
    for _ in range(5):
        store.client.delete("beat:watching")
        store.client.zadd("beat:open", dict.fromkeys((f"job-{n}" for n in range(1000)), 0))
        Calls(store)
        watch.watcher.turn()
        spent.append(spent_us(store) / 1000)
    assert min(spent) < 30
    assert watch.events == []


# --- for any life of runs --------------------------------------------------------------------------------------------


class Lives:
    """Runs that go through all that RQ, workers and people do to them, at random."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store, self.dice = store, random.Random(seed)  # noqa: S311 (no secret)
        self.watch = Watch(store)
        self.at, self.made = 0, 0
        self.ends: dict[str, str] = {}
        """How each run stands, by what was done to it."""

    def step(self) -> None:
        job = self.dice.choice([*self.ends, ""])
        if not job:
            job, self.made = f"job-{self.made}", self.made + 1
            self.store.client.hset("beat:schedule:report", "run_count", self.made)
            put_run(self.store, job, "queued")
            self.store.client.rpush(QUEUE, job)
        status = self.dice.choice(["queued", "started", "finished", "failed", "stopped", "canceled"])
        if self.ends.get(job) == "finished":
            return  # RQ does not run it again
        self.at += 2
        times = {"started_at": clock.text(clock.at(1_794_819_600 + self.at)),
                 "ended_at": clock.text(clock.at(1_794_819_601 + self.at))}  # fmt: skip
        put_job(self.store, job, status, **times if status in {"finished", "failed", "stopped"} else {})
        if status == "started":
            self.store.client.zadd(f"rq:executions:{job}", {"e": 1})
            self.store.client.hset(f"rq:execution:{job}:e", "id", "e")
        else:
            self.store.client.delete(f"rq:execution:{job}:e")
        self.ends[job] = status
        if self.dice.random() < 0.7:
            self.watch.look()


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_done_to_runs_the_counters_and_the_ledger_agree(seed: int, store: Store) -> None:
    put_schedule(store)
    lives = Lives(store, seed)
    for _ in range(120):
        lives.step()
    lives.watch.look()
    ended = {"finished": "succeeded", "failed": "failed", "stopped": "stopped", "canceled": "stopped"}
    expected = {job: ended[status] for job, status in lives.ends.items() if status in ended}
    newest = {job: outcomes(store, job)[-1] for job in expected}
    assert newest == expected
    found = list(expected.values())
    assert counts(store)[:3] == (found.count("succeeded"), found.count("failed"), found.count("stopped"))
    assert open_runs(store).keys() == lives.ends.keys() - expected.keys()
    for job in lives.ends:
        lines = outcomes(store, job)
        assert all(line != "reopened" for line in lines[:1])
        assert not any(one == other == "reopened" for one, other in pairwise(lines))
    assert int(hash_of(store)["run_count"]) == sum(counts(store)[:3]) + len(open_runs(store))
