"""Metrics: what Redis holds about schedules, events and beats, as Prometheus reads it; each thing counts once."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from redis import exceptions

from beat.config import settings
from beat.engine import services
from beat.engine.events import Event
from beat.engine.health import Health
from beat.errors import ConfigError, NoRedis
from beat.schedule.registry import Registry
from beat.scheduler import Scheduler
from beat.storage.operations import Operations, Stretch
from beat.storage.runs import Runs
from beat.telemetry.metrics import Collector, Metrics, Tally, collector, folding, page, schedules
from tests.support.builders import TOKEN, hash_of, put, put_and_claim, restricted, second, shows, text, verdict
from tests.support.facts import wait_until
from tests.support.hand_made import JOB, close, closing, put_closed, put_run, put_schedule, record
from tests.support.process_pool import ROOT
from tests.support.scraping import Page, free_port, get, samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

DAY_MS = 86_400_000


def scraped(store: Store, *globs: str) -> Page:
    return samples(page.text(collector.read(store, globs or ("*",))))


def tell(redis: Redis, type_: str, /, **line: Any) -> str:
    """One event of the outbox."""
    fields: dict[Any, Any] = {"type": type_, "schedule": "x", "entry": json.dumps({"type": type_, **line})}
    return str(redis.xadd("beat:events", fields))


def lateness(store: Store) -> tuple[float, float]:
    """How many ticks became jobs, and how late they were together."""
    found = scraped(store)
    return found["beat_enqueue_lateness_seconds_count"], found["beat_enqueue_lateness_seconds_sum"]


# --- histograms, folded from events ----------------------------------------------------------------------------------


@shows("fold", "OK")
def test_events_are_folded_into_histograms(store: Store, redis: Redis) -> None:
    tell(redis, "enqueued", by="scheduler", late_ms=4)
    tell(redis, "enqueued", by="catchup", late_ms=5_000)
    tell(redis, "succeeded", duration=3.1, waited=0.016)
    tell(redis, "failed", duration=7200, waited=0)
    tell(redis, "lost", duration=None)
    tell(redis, "skipped", reason="misfire", count=3)
    assert folding.fold(store) == 6
    found = scraped(store)
    assert found['beat_enqueue_lateness_seconds_bucket{le="0.0025"}'] == 0
    assert found['beat_enqueue_lateness_seconds_bucket{le="0.005"}'] == 1
    assert found['beat_enqueue_lateness_seconds_bucket{le="5"}'] == 2
    assert found["beat_enqueue_lateness_seconds_sum"] == pytest.approx(5.004)
    assert found['beat_run_duration_seconds_bucket{le="3600"}'] == 1
    assert found['beat_run_duration_seconds_bucket{le="+Inf"}'] == found["beat_run_duration_seconds_count"] == 2
    assert found["beat_run_duration_seconds_sum"] == pytest.approx(7203.1)
    assert found['beat_queue_wait_seconds_bucket{le="0.001"}'] == 1
    assert found["beat_queue_wait_seconds_count"] == 2
    assert found["beat_events_missed_total"] == 0


def test_what_somebody_asked_for_is_late_for_nobody(store: Store, redis: Redis) -> None:
    for by in ("manual", "backfill", "follows"):
        tell(redis, "enqueued", by=by, late_ms=1000)
    folding.fold(store)
    assert lateness(store) == (0, 0)


@pytest.mark.parametrize(
    "told",
    [
        {"details": {"duration": 5, "waited": 3}},
        {"message": 'x","duration":5,"waited":3,"y":"'},
        {"error": {"traceback": '{"waited": 3}', "waited": 3}},
        {"worker": '\\", "waited": 3, "x": {', "details": {"waited": 3}},
    ],
    ids=["details", "message", "error", "worker"],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["narrow", "wide"])
def test_what_a_job_says_is_not_taken_for_times(
    told: dict[str, Any], separators: tuple[str, str], store: Store, redis: Redis
) -> None:
    entry = {"type": "failed", "duration": None, **told}
    redis.xadd("beat:events", {"type": "failed", "entry": json.dumps(entry, separators=separators)})
    folding.fold(store)
    found = scraped(store)
    assert (found["beat_run_duration_seconds_count"], found["beat_queue_wait_seconds_count"]) == (0, 0)


def test_each_event_counts_once_however_many_fold(store: Store, redis: Redis) -> None:
    for _ in range(1000):
        tell(redis, "enqueued", by="scheduler", late_ms=1000)
    threads = [threading.Thread(target=folding.fold_all, args=(store,)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    folding.fold_all(store)
    assert lateness(store) == (1000, 1000)


def test_a_page_is_bounded(store: Store, redis: Redis) -> None:
    for _ in range(5):
        tell(redis, "enqueued", by="scheduler", late_ms=1000)
    assert [folding.fold(store, count=2) for _ in range(4)] == [2, 2, 1, 0]


def test_what_was_trimmed_before_it_was_folded_is_counted_as_missed(store: Store, redis: Redis) -> None:
    for _ in range(10):
        tell(redis, "enqueued", by="scheduler", late_ms=1000)
    redis.xtrim("beat:events", maxlen=8, approximate=False)  # before the first look: nobody's loss
    assert folding.fold(store, count=3) == 3
    redis.xtrim("beat:events", maxlen=1, approximate=False)  # of the other five, four are gone
    assert folding.fold(store) == 1
    assert lateness(store) == (4, 4)
    assert scraped(store)["beat_events_missed_total"] == 4
    redis.xtrim("beat:events", maxlen=0, approximate=False)
    assert folding.fold(store) == 0
    assert scraped(store)["beat_events_missed_total"] == 4


def test_a_new_outbox_with_more_than_the_old_one_counts_once(store: Store, redis: Redis) -> None:
    tell(redis, "enqueued", by="scheduler", late_ms=1000)
    folding.fold(store)
    folded = redis.time()
    redis.delete("beat:events")
    wait_until(lambda: redis.time()[0] * 1000 + redis.time()[1] // 1000 > folded[0] * 1000 + folded[1] // 1000)
    for _ in range(5):
        tell(redis, "enqueued", by="scheduler", late_ms=1000)
    assert [folding.fold(store, count=2) for _ in range(5)] == [2, 2, 1, 0, 0]
    assert lateness(store) == (6, 6)


def test_after_the_outbox_was_deleted_the_new_one_is_folded(store: Store, redis: Redis) -> None:
    for _ in range(3):
        tell(redis, "enqueued", by="scheduler", late_ms=1000)
    folding.fold(store)
    redis.delete("beat:events")
    assert folding.fold(store) == 0
    redis.xadd("beat:events", {"type": "x"}, id="5-1")  # by a clock that was put back
    assert folding.fold(store) == 1
    tell(redis, "enqueued", by="scheduler", late_ms=1000)
    assert folding.fold(store) == 1
    assert lateness(store) == (4, 4)


GARBAGE = [
    {"type": "enqueued", "entry": "no JSON"},
    {"type": "enqueued", "entry": "3"},
    {"type": "enqueued", "entry": "[" * 5000},
    {"type": "enqueued", "entry": '{"by":"scheduler","late_ms":"4"}'},
    {"type": "enqueued", "entry": '{"by":"scheduler","late_ms":-4}'},
    {"type": "enqueued", "entry": '{"by":"scheduler","late_ms":1e300}'},
    {"type": "enqueued", "entry": '{"by":["scheduler"]}'},
    {"type": "succeeded", "entry": '{"duration":{"x":1},"waited":true}'},
    {"type": "enqueued"},
    {"x": "y"},
]


@pytest.mark.parametrize("fields", GARBAGE, ids=range(len(GARBAGE)))
def test_an_event_that_cannot_be_read_is_passed_over(fields: dict[Any, Any], store: Store, redis: Redis) -> None:
    redis.xadd("beat:events", fields)
    tell(redis, "enqueued", by="scheduler", late_ms=1000)
    assert folding.fold(store) == 2
    assert lateness(store) == (1, 1)


@pytest.mark.parametrize(
    "at", ["", "x", "99999999999999999999999-1", "18446744073709551615-18446744073709551615", f"1-{'9' * 23}"]
)
def test_a_place_that_somebody_has_garbled_counts_nothing_twice(at: str, store: Store, redis: Redis) -> None:
    tell(redis, "enqueued", by="scheduler", late_ms=1000)
    folding.fold(store)
    redis.hset("beat:metrics", mapping={"at": at, "seen": "many", "missed": "-1", "lateness:sum": "x"})
    folding.fold(store)
    tell(redis, "enqueued", by="scheduler", late_ms=1000)
    folding.fold_all(store)
    assert lateness(store) == (2, 1)
    assert redis.hget("beat:metrics", "at") == redis.xinfo_stream("beat:events")["last-generated-id"]


@shows("fold", "BADTYPE")
@pytest.mark.parametrize("key", ["beat:events", "beat:metrics"])
def test_a_key_of_another_kind_is_named(key: str, store: Store, redis: Redis) -> None:
    redis.set(key, "x")
    redis.xadd("beat:events" if key == "beat:metrics" else "beat:other", {"x": "y"})
    redis.delete("beat:other")
    with pytest.raises(NoRedis, match=f"{key} is a string"):
        folding.fold(store)


# --- what beats count ------------------------------------------------------------------------------------------------


def told(store: Store, name: str, *items: tuple[str, str, str], ttl: int = DAY_MS) -> None:
    folding.tell(store, name, items, ttl=ttl)


@shows("tally", "OK")
def test_totals_of_all_beats_are_added_up_and_a_lost_reply_counts_nothing_twice(store: Store, redis: Redis) -> None:
    for _ in range(2):
        told(store, "one", ("lock_failures", "3", "0"), ("pass:sum", "0.250000", "0"), ("pass:0.25", "1", "0"))
        told(store, "two", ("lock_failures", "4", "0"))
    told(store, "one", ("lock_failures", "5", "3"))
    found = scraped(store)
    assert found["beat_lock_failures_total"] == 9
    assert (found["beat_pass_duration_seconds_count"], found["beat_pass_duration_seconds_sum"]) == (1, 0.25)
    assert 0 < redis.pttl("beat:tally:one") <= DAY_MS


def test_what_a_beat_knows_to_be_told_is_not_told_again_when_redis_has_forgotten(store: Store, redis: Redis) -> None:
    told(store, "one", ("lock_failures", "3", "0"))
    redis.delete("beat:tally:one")
    told(store, "one", ("lock_failures", "5", "3"))
    assert scraped(store)["beat_lock_failures_total"] == 5


def test_numbers_beyond_all_measure_count_as_none(store: Store, redis: Redis) -> None:
    redis.hset("beat:metrics", mapping={"pass:1": "1e308", "pass:5": "1e308", "pass:10": "3", "lock_failures": "1e308"})
    found = scraped(store)
    assert (found["beat_pass_duration_seconds_count"], found["beat_lock_failures_total"]) == (3, 0)


def test_what_is_no_number_counts_as_none(store: Store, redis: Redis) -> None:
    redis.hset("beat:metrics", mapping={"lock_failures": "many", "redis_errors": "-3", "pass:inf": "nan", "\n": "x"})
    redis.hset("beat:tally:one", mapping={"lock_failures": "few"})
    redis.expire("beat:tally:one", 60)
    assert scraped(store)["beat_redis_errors_total"] == 0
    told(store, "one", ("lock_failures", "3", "0"), ("redis_errors", "x", "0"))
    found = scraped(store)
    assert (found["beat_lock_failures_total"], found["beat_redis_errors_total"]) == (3, 0)


@shows("tally", "BADTYPE")
def test_a_tally_of_another_kind_is_named(store: Store, redis: Redis) -> None:
    redis.set("beat:tally:one", "x", ex=60)
    with pytest.raises(NoRedis, match="beat:tally:one is a string"):
        told(store, "one", ("lock_failures", "3", "0"))


def test_a_tally_counts_locks_errors_and_passes() -> None:
    tally = Tally()
    tally.passes, tally.health = deque([0.002, 0.7]), Health(lambda _: None)
    for name in ("locked", "fenced", "fired", "locked"):
        tally.listen(Event(name))
    tally.health.failed("ticker", OSError("away"))
    tally.health.failed("ticker", OSError("away"))
    items = tally.items()
    assert {field: (total, known) for field, total, known in items} == {
        "lock_failures": ("3", "0"),
        "redis_errors": ("2", "0"),
        "pass:0.0025": ("1", "0"),
        "pass:1": ("1", "0"),
        "pass:sum": ("0.702000", "0"),
    }
    tally.known(items)
    assert all(total == known for _, total, known in tally.items())


@pytest.mark.parametrize("rights", [("-hset",), ("-hget",), ("-pexpire",)])
def test_a_user_who_may_not_do_all_of_it_does_nothing_of_it(
    rights: tuple[str, ...], store: Store, redis: Redis
) -> None:
    tell(redis, "enqueued", by="scheduler", late_ms=1000)
    with restricted(store, *rights) as few:
        with contextlib.suppress(exceptions.ResponseError):
            folding.fold(few)
        with pytest.raises(exceptions.ResponseError, match="does not let this user"):
            told(few, "one", ("lock_failures", "3", "0"))
    assert not redis.exists("beat:tally:one")
    assert redis.hget("beat:metrics", "lock_failures") is None


# --- what a schedule did ---------------------------------------------------------------------------------------------


def test_skipped_ticks_are_counted_by_reason(store: Store) -> None:
    at = put_and_claim(store)
    store.fire([verdict(at, kind="skip", number=60, last=text(at + 30))], token=TOKEN)
    put_and_claim(store, "other_one")
    store.fire([verdict(at, "other_one", kind="skip", number=1, reason="Not A Word")], token=TOKEN)
    found = scraped(store)
    assert found['beat_skips_total{reason="misfire",schedule="report"}'] == 60
    assert found['beat_skips_total{reason="other",schedule="other_one"}'] == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("overlap 2 misfire 3", "overlap 2 misfire 4"),
        ("misfire three", "misfire 1"),
        ("overlap 2 misfire 1234567890123456", "overlap 2 misfire 1"),
        ("x " * 1000, "misfire 1"),
        ("", "misfire 1"),
    ],
)
def test_counts_that_somebody_has_garbled_begin_anew(before: str, after: str, store: Store) -> None:
    at = put_and_claim(store)
    store.client.hset(store.keys.schedule("report"), "skips", before)
    [reply] = store.fire([verdict(at, kind="skip", number=1)], token=TOKEN).replies
    assert (reply.code, hash_of(store)["skips"]) == ("OK", after)


def test_a_tick_that_fires_is_told_nothing_of_skips(store: Store) -> None:
    at = put_and_claim(store)
    store.fire([verdict(at)], token=TOKEN)
    assert "skips" not in hash_of(store)
    assert scraped(store)['beat_enqueued_total{schedule="report"}'] == 1


def test_what_was_held_until_a_schedule_was_retired_is_counted(store: Store) -> None:
    at = second(store) // 60 * 60 - 120
    put(store, "report", at)
    stretch = Stretch("report", text(at), text(at + 120), 3, text(at + 180))
    Operations(store).retire([stretch], beat="tests", app="default", retire_after=0)
    assert hash_of(store)["skips"] == "retired 3"


def test_a_follower_that_cannot_wait_is_counted(store: Store, redis: Redis) -> None:
    put_schedule(store)
    put_schedule(store, "load", follows="report")
    redis.sadd("beat:followers:report", "load")
    redis.set("beat:waiting:load", "x")
    put_run(store)
    close(Runs(store), closing())
    assert hash_of(store, "load")["skips"] == "broken 1"


def test_ends_are_counted_by_status_and_only_grow(store: Store) -> None:
    put_schedule(store, failure_count=1, ends="failed 1")
    seen = put_closed(store, JOB, "started")
    runs = Runs(store)
    reopened = closing(kind="reopen", seen=seen, record=record(), sign="started||", outcome="reopened", was="failed")
    assert [reply.code for reply in close(runs, reopened)] == ["OK"]
    assert hash_of(store)["failure_count"] == "0"
    put_run(store)
    assert [reply.code for reply in close(runs, closing(outcome="lost"))] == ["OK"]
    found = scraped(store)
    ends = [found[f'beat_runs_total{{schedule="report",status="{status}"}}'] for status in schedules.STATUSES]
    assert ends == [0, 1, 0, 1]


# --- the page --------------------------------------------------------------------------------------------------------

STATE = {
    "state": "active",
    "due_at": "2026-11-16T09:00:01.500Z",
    "last_run": "2026-11-16T08:00:00Z",
    "last_success": "2026-11-16T08:00:09Z",
    "consecutive_failures": "2",
    "run_count": "9",
    "skip_count": "5",
    "ends": "succeeded 6 failed 2",
    "skips": "overlap 3",
}


def lay(redis: Redis, schedule_id: str, **changes: str) -> None:
    redis.sadd("beat:schedules", schedule_id)
    fields: dict[Any, Any] = {**STATE, **changes}
    redis.hset(f"beat:schedule:{schedule_id}", mapping=fields)


def test_the_page_tells_all_about_a_schedule(store: Store, redis: Redis) -> None:
    lay(redis, "report")
    found = {name: value for name, value in scraped(store).items() if 'schedule="' in name}
    assert found == {
        'beat_enqueued_total{schedule="report"}': 9,
        'beat_runs_total{schedule="report",status="succeeded"}': 6,
        'beat_runs_total{schedule="report",status="failed"}': 2,
        'beat_runs_total{schedule="report",status="stopped"}': 0,
        'beat_runs_total{schedule="report",status="lost"}': 0,
        'beat_skips_total{reason="overlap",schedule="report"}': 3,
        'beat_skips_total{reason="other",schedule="report"}': 2,
        'beat_consecutive_failures{schedule="report"}': 2,
        'beat_last_run_timestamp_seconds{schedule="report"}': 1794816000,
        'beat_last_success_timestamp_seconds{schedule="report"}': 1794816009,
        'beat_next_run_timestamp_seconds{schedule="report"}': 1794819601.5,
        'beat_period_seconds{schedule="report"}': 3601.5,
    }


@pytest.mark.parametrize(
    ("changes", "period"),
    [
        ({"last_skip": "2026-11-16T08:59:00Z"}, 61.5),
        ({"last_skip": "2026-11-16T07:00:00Z"}, 3601.5),
        ({"last_run": "", "last_skip": "2026-11-16T08:59:00Z"}, 61.5),
        ({"last_run": ""}, None),
        ({"last_run": "2026-11-16T09:30:00Z"}, None),
        ({"state": "paused"}, None),
    ],
    ids=["skipped since", "fired since", "never fired", "new", "moved back", "paused"],
)
def test_a_period_is_from_the_newest_tick_to_the_next(
    changes: dict[str, str], period: float | None, store: Store, redis: Redis
) -> None:
    lay(redis, "report", **changes)
    assert scraped(store).get('beat_period_seconds{schedule="report"}') == period


@pytest.mark.parametrize(
    "changes", [{"state": "paused"}, {"unannounced_at": "2026-11-16T08:00:00Z"}, {"due_at": "soon"}]
)
def test_what_waits_for_somebody_is_not_expected(changes: dict[str, str], store: Store, redis: Redis) -> None:
    lay(redis, "report", **changes)
    assert not [name for name in scraped(store) if name.startswith("beat_next_run")]


@pytest.mark.parametrize("state", ["retired", "disabled"])
def test_what_nobody_expects_to_run_any_more_fails_nobody(state: str, store: Store, redis: Redis) -> None:
    lay(redis, "report", state=state)
    assert not [name for name in scraped(store) if name.startswith("beat_consecutive_failures")]


def test_what_cannot_be_read_is_left_out_or_none(store: Store, redis: Redis) -> None:
    lay(redis, "report", **dict.fromkeys(STATE, "\xff\n"))
    redis.sadd("beat:schedules", "a_string", "gone")
    redis.set("beat:schedule:a_string", "x")
    found = {name: value for name, value in scraped(store).items() if 'schedule="' in name}
    assert set(found.values()) == {0}
    assert not [name for name in found if "a_string" in name or "gone" in name or "timestamp" in name]


def test_labels_are_escaped(store: Store, redis: Redis) -> None:
    lay(redis, 'a"b\\c\nd')
    assert 'beat_enqueued_total{schedule="a\\"b\\\\c\\nd"} 9\n' in page.text(collector.read(store, ["*"]))
    assert scraped(store)['beat_enqueued_total{schedule="a"b\\c\nd"}'] == 9  # as the parser reads it


def test_schedules_without_a_label_of_their_own_are_summed(store: Store, redis: Redis) -> None:
    for each in ("report_a", "report_b", "tenant_1", "tenant_2", "other"):
        lay(redis, each)
    found = scraped(store, "report*", "x", "other")
    assert found['beat_enqueued_total{schedule="report_a"}'] == 9
    assert found['beat_enqueued_total{schedule="other"}'] == 27
    assert found['beat_runs_total{schedule="other",status="failed"}'] == 6
    assert found['beat_skips_total{reason="overlap",schedule="other"}'] == 9
    named = {name.partition('schedule="')[2].partition('"')[0] for name in found if "beat_next_run" in name}
    assert named == {"report_a", "report_b"}
    assert scraped(store)['beat_consecutive_failures{schedule="other"}'] == 2


def test_states_beats_and_open_runs_are_counted(store: Store, redis: Redis) -> None:
    redis.sadd("beat:schedules", "a", "b", "c")
    redis.sadd("beat:in:paused", "a")
    redis.set("beat:in:broken", "x")
    redis.zadd("beat:open", {"job": 1, "another": 2})
    now = int(redis.time()[0]) * 1000
    for name, lapses in (("one", now + 60_000), ("two", now + 60_000), ("dead", now - 1)):
        redis.zadd("beat:instances", {name: lapses})
        redis.hset(f"beat:instance:{name}", mapping={"last_pass": "2026-11-16T08:00:00Z", "clock_offset_ms": "-250"})
        redis.expire(f"beat:instance:{name}", 60)
    redis.hset("beat:instance:two", mapping={"last_pass": "x", "clock_offset_ms": "x"})
    found = scraped(store)
    assert [found[f'beat_schedules{{state="{each}"}}'] for each in ("active", "paused", "broken")] == [2, 1, 0]
    assert (found["beat_open_runs"], found["beat_instances"]) == (2, 2)
    assert found['beat_last_pass_timestamp_seconds{beat="one"}'] == 1794816000
    assert found['beat_clock_offset_seconds{beat="one"}'] == -0.25
    assert not [name for name in found if 'beat="two"' in name or 'beat="dead"' in name]


# --- who shows it ----------------------------------------------------------------------------------------------------


def test_a_registry_of_ones_own_shows_the_same(store: Store, redis: Redis, server: PrivateRedis) -> None:
    lay(redis, "report")
    lay(redis, "tenant_1")
    tell(redis, "enqueued", by="scheduler", late_ms=1000)
    registry = CollectorRegistry()
    registry.register(Collector(server.url, metrics_schedules="r*"))
    theirs = samples(generate_latest(registry).decode())
    assert theirs == scraped(store, "r*")
    assert theirs["beat_enqueue_lateness_seconds_count"] == 1  # it folds, too


def test_while_redis_is_away_the_registry_shows_what_others_have_there(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    registry, nowhere = CollectorRegistry(), f"redis://127.0.0.1:{free_port()}"
    Gauge("mine", "Mine.", registry=registry).set(3)
    collector = Collector(nowhere)
    registry.register(collector)
    for _ in range(2):
        assert samples(generate_latest(registry).decode()) == {"mine": 3}
    assert len(caplog.records) == 1, "it is said once"
    assert "Redis cannot be asked for metrics" in caplog.text
    with mock.patch.object(collector, "_store", store):
        assert samples(generate_latest(registry).decode())["beat_instances"] == 0
    assert samples(generate_latest(registry).decode()) == {"mine": 3}
    assert len(caplog.records) == 2, "it worked between"


def test_without_an_outbox_the_rest_is_shown(redis: Redis, server: PrivateRedis) -> None:
    lay(redis, "report")
    redis.set("beat:events", "x")
    registry = CollectorRegistry()
    registry.register(Collector(server.url))
    with serving(server.url) as (port, _):
        for text_ in (get(port).text, generate_latest(registry).decode()):
            assert samples(text_)['beat_enqueued_total{schedule="report"}'] == 9


def test_without_the_extra_only_the_collector_is_refused(server: PrivateRedis) -> None:
    with (
        mock.patch.dict(sys.modules, {"prometheus_client": None}),
        pytest.raises(ConfigError, match=r"rq-beat\[metrics\]"),
    ):
        Collector(server.url)


def test_a_beat_never_imports_prometheus_client() -> None:
    code = "import sys, beat.scheduler; print('prometheus_client' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@contextlib.contextmanager
def serving(redis: Redis | str, events: list[Event] | None = None, **options: Any) -> Iterator[tuple[int, Metrics]]:
    port, stopping = free_port(), threading.Event()
    mine = settings.load({"metrics_port": port, **options}).settings
    metrics = Metrics(mine, redis, "beat-1", ([] if events is None else events).append, Tally(), stopping=stopping)
    thread = threading.Thread(target=metrics.run, args=(stopping,))
    thread.start()
    try:
        yield port, metrics
    finally:
        stopping.set()
        thread.join()


def test_metrics_are_served_and_nothing_else_is(store: Store, redis: Redis, server: PrivateRedis) -> None:
    lay(redis, "report")
    events: list[Event] = []
    with serving(server.url, events) as (port, _):
        answer = get(port)
        assert (answer.status, answer.kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert samples(answer.text) == scraped(store)
        assert get(port, "/metrics?x=y").status == 200
        assert get(port, "/").status == 404
        assert get(port, "/../etc/passwd").status == 404
    assert [(event.name, event.fields) for event in events] == [
        ("serving", {"address": f"http://127.0.0.1:{port}/metrics"})
    ]
    with pytest.raises(OSError, match="refused"):
        get(port)


def test_while_redis_is_away_the_server_says_so_and_goes_on(redis: Redis, server: PrivateRedis) -> None:
    with serving(server.url) as (port, metrics):
        with mock.patch.object(folding, "fold_all", side_effect=ConnectionError("away")):
            answer = get(port)
            assert (answer.status, answer.text) == (
                503, "Redis cannot be asked for metrics now: ConnectionError: away\n",
            )  # fmt: skip
        assert get(port).status == 200
        redis.set("beat:metrics", "x")
        assert "beat:metrics is not a hash: rename it, or delete it" in get(port).text
        redis.delete("beat:metrics")
        with mock.patch.object(collector, "read", side_effect=KeyError("x")):
            assert get(port).status == 500
        assert metrics.page()


def test_a_redis_that_takes_no_writes_still_shows_what_was_kept(redis: Redis, server: PrivateRedis) -> None:
    lay(redis, "report")
    with serving(server.url) as (port, _):
        redis.config_set("maxmemory", 1)
        try:
            answer = get(port)
        finally:
            redis.config_set("maxmemory", 0)
        assert (answer.status, samples(answer.text)['beat_enqueued_total{schedule="report"}']) == (200, 9)


def test_who_asks_while_others_get_no_answer_is_told_so(server: PrivateRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beat.telemetry.metrics.server._TURN_COMES_S", 0.1)
    asked, answered = threading.Event(), threading.Event()

    def hang(*_: object) -> list[Any]:
        asked.set()
        answered.wait()
        return []

    with serving(server.url) as (port, _):
        with mock.patch.object(collector, "read", hang):
            first = threading.Thread(target=get, args=(port,))
            first.start()
            assert asked.wait(10)
            answer = get(port)
            answered.set()
            first.join()
        assert (answer.status, "has not answered those who asked before" in answer.text) == (503, True)
        assert get(port).status == 200


def test_so_many_may_ask_at_once_and_no_more(server: PrivateRedis) -> None:
    with serving(server.url) as (port, _), contextlib.ExitStack() as silent:
        held = [silent.enter_context(socket.create_connection(("127.0.0.1", port), 10)) for _ in range(20)]
        one_more = silent.enter_context(socket.create_connection(("127.0.0.1", port), 10))
        assert one_more.recv(1) == b"", "it was not hung up on"
        for each in held:
            each.close()
        wait_until(lambda: _status(port) == 200)


def test_it_folds_every_second_though_nobody_asks(redis: Redis, server: PrivateRedis) -> None:
    with serving(server.url):
        tell(redis, "enqueued", by="scheduler", late_ms=1000)
        wait_until(lambda: redis.hget("beat:metrics", "lateness:1") == "1")


def test_a_user_who_may_not_keep_them_is_told_and_shown_what_is_there(store: Store, redis: Redis) -> None:
    lay(redis, "report")
    stopping, events = threading.Event(), list[Event]()
    with restricted(store, "-hset") as few:
        mine = settings.load({"metrics_port": (port := free_port())}).settings
        metrics = Metrics(mine, few.client, "beat-1", events.append, Tally(), stopping=stopping)
        services.start([metrics], events.append, stopping)
        wait_until(lambda: [event for event in events if event.name == "companion_failed"])
        assert (get(port).status, "does not let user 'few' keep metrics: " in events[-1].fields["error"]) == (200, True)
        stopping.set()
        wait_until(lambda: not [each for each in threading.enumerate() if each.name == "beat-metrics"])


def test_a_beat_that_waits_for_redis_answers_and_gives_the_port_back(server: PrivateRedis) -> None:
    port, nowhere = free_port(), f"redis://127.0.0.1:{free_port()}"
    mine = Registry()
    mine.periodic(every="1h")(subprocess.run)
    for url, status in ((nowhere, 503), (server.url, 200)):
        beat = Scheduler(mine, url, metrics_port=port)
        thread = threading.Thread(target=beat.run)
        thread.start()
        try:
            wait_until(lambda: _status(port) == status)  # noqa: B023 (it is over before the next turn)
        finally:
            beat.stop()
            thread.join()


def _status(port: int) -> int:
    with contextlib.suppress(OSError):
        return get(port).status
    return 0


def test_a_port_that_is_taken_is_refused_at_start(server: PrivateRedis) -> None:
    taken = "cannot be served at 127.0.0.1:.*: another process is there"
    with serving(server.url) as (port, _), pytest.raises(ConfigError, match=taken):
        Metrics(
            settings.load({"metrics_port": port}).settings, server.url, "x", print, Tally(), stopping=threading.Event()
        )


@pytest.mark.parametrize("host", ["203.0.113.7", "a..b", "::1::"])
def test_a_host_that_is_none_of_ours_is_refused_at_start(host: str, server: PrivateRedis) -> None:
    mine = settings.load({"metrics_port": free_port(), "metrics_host": host}).settings
    with pytest.raises(ConfigError, match=f"cannot be served at {re.escape(host)}"):
        Metrics(mine, server.url, "x", print, Tally(), stopping=threading.Event())
