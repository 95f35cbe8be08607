"""What `beat.testing` gives to the tests of an application, tried without a server."""

from __future__ import annotations

import itertools
import random
import re
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
import rq

from beat import Registry, get_current_run, testing
from beat.engine import pacing
from beat.errors import BadDuration, BadInstant, BeatError, ConfigError, UnknownSchedule
from beat.schedule import registry as registries
from beat.storage import lock, scripts
from beat.storage.keys import Keys
from beat.storage.store import Store
from beat.testing import Fired, ManualBeat, ManualClock, Skipped, Tick, assert_fires, assert_silent, simulate
from beat.testing.fake_redis import ClockedRedis
from beat.timing import clock
from tests.support import declared
from tests.support.chance import LONG
from tests.support.refusals import refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from beat.schedule.options import Priority

ROOT = Path(__file__).parent.parent.parent.parent
START = datetime(2026, 11, 16, 9, tzinfo=UTC)  # a Monday
PARIS = "Europe/Paris"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def tell_the_run() -> tuple[str, datetime | None] | None:
    run = get_current_run()
    return (run.schedule_id, run.scheduled_for) if run else None


async def tell_the_run_slowly() -> tuple[str, datetime | None] | None:
    return tell_the_run()


def spoil(things: list[str]) -> list[str]:
    things.append("spoilt")
    return things


def fail() -> None:
    raise LookupError("on purpose")


def ticks_of(fired: list[Fired]) -> list[Tick]:
    return [Tick(each.schedule_id, each.scheduled_for) for each in fired]


def failure(assertion: Callable[[], None]) -> str:
    with pytest.raises(AssertionError) as caught:
        assertion()
    return str(caught.value)


# The clock


def test_a_manual_clock_shows_its_start_in_utc_until_it_is_moved() -> None:
    clock = ManualClock(datetime(2026, 11, 16, 10, tzinfo=ZoneInfo(PARIS)))
    assert clock.now == START
    assert clock.now.tzinfo is UTC
    assert repr(clock) == "ManualClock(2026-11-16T09:00:00Z)"


@pytest.mark.parametrize("by", ["1h30m", timedelta(minutes=90), 5400, 5400.0, "5400"])
def test_a_manual_clock_advances_by_whatever_is_a_length_of_time(by: Any) -> None:
    clock = ManualClock(START)
    assert clock.advance(by) == clock.now == START + timedelta(minutes=90)


def test_a_manual_clock_can_be_set() -> None:
    clock = ManualClock(START)
    assert clock.set(datetime(2026, 11, 16, 11, tzinfo=ZoneInfo(PARIS))) == clock.now == START + timedelta(hours=1)


def test_a_manual_clock_goes_back_only_when_told_so() -> None:
    clock, earlier = ManualClock(START), START - timedelta(seconds=1)
    assert "backwards=True" in refused(BadInstant, lambda: clock.set(earlier))
    assert "backwards=True" in refused(BadDuration, lambda: clock.advance(-1))
    assert clock.now == START
    clock.set(earlier, backwards=True)
    assert clock.now == earlier


@pytest.mark.parametrize("naive", [datetime(2026, 11, 16), "2026-11-16", None])  # noqa: DTZ001 (what is refused)
def test_a_manual_clock_refuses_what_is_no_aware_datetime(naive: Any) -> None:
    refused(BadInstant, lambda: ManualClock(naive))
    refused(BadInstant, lambda: ManualClock(START).set(naive))


@pytest.mark.parametrize("by", ["soon", True, None, "500w" * 9, timedelta.max])
def test_a_manual_clock_refuses_what_is_no_length_of_time(by: Any) -> None:
    refused(BadDuration, lambda: ManualClock(START).advance(by))


# The simulation


def test_a_simulation_lists_the_ticks_of_all_schedules_in_the_order_in_which_a_beat_fires_them(
    registry: Registry,
) -> None:
    registry.register(declared.plain, every="30m", id="b")
    registry.register(declared.plain, every="1h", id="low", priority="low")
    registry.register(declared.plain, every="1h", id="a")
    registry.register(declared.plain, every="1h", id="high", priority="high")
    registry.register(declared.plain, every="1m", id="disabled", enabled=False)
    ticks = list(simulate(registry, START, START + timedelta(hours=1)))
    assert [tick.schedule_id for tick in ticks] == ["high", "a", "b", "low", "b"]
    assert ticks[-1] == ("b", START + timedelta(minutes=30))  # the end is not in it


def test_a_simulation_takes_the_registry_of_periodic_unless_another_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registries, "default_registry", Registry())
    registries.default_registry.register(declared.plain, "@daily")
    end = START + timedelta(days=2)
    assert [tick.schedule_id for tick in simulate(None, START, end)] == ["plain", "plain"]
    assert list(simulate(Registry(), START, end)) == []


def test_a_simulation_is_lazy(registry: Registry) -> None:
    registry.register(declared.plain, every="1s")
    ticks = simulate(registry, START, datetime(9000, 1, 1, tzinfo=UTC))
    assert len(list(itertools.islice(ticks, 3))) == 3


def test_a_year_of_hourly_schedules_is_simulated_in_less_than_a_second(registry: Registry) -> None:
    for minute, tz in enumerate(["UTC", PARIS, "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe"]):
        registry.register(declared.plain, f"{minute} * * * *", id=f"hourly-{minute}", tz=tz)
    began = time.process_time()
    ticks = list(simulate(registry, START, START + timedelta(days=365)))
    assert time.process_time() - began < 1
    assert len(ticks) == 5 * 365 * 24 - 1  # Lord Howe's clocks jump over one minute 4, and repeat none
    assert ticks == sorted(ticks, key=lambda tick: tick.instant)


def test_a_simulation_refuses_a_span_that_is_none() -> None:
    refused(BadInstant, lambda: simulate(None, START, START - timedelta(seconds=1)))
    refused(BadInstant, lambda: simulate(None, START.replace(tzinfo=None), START))


# The assertions


CHANGES = [  # rule, zone, the day, the local times at which it ticks
    ("30 2 * * *", PARIS, "2026-03-29", ["2026-03-29T03:00"]),
    ("30 2 * * *", PARIS, "2026-10-25", ["2026-10-25T02:30+02:00"]),
    ("30 2 * * *", PARIS, "2026-10-25", ["2026-10-25T02:30"]),
    ("*/30 2 * * *", PARIS, "2026-03-29", []),
    ("*/30 2 * * *", PARIS, "2026-10-25", [f"2026-10-25T02:{m}+0{h}:00" for h in (2, 1) for m in ("00", "30")]),
    ("30 1 * * *", "America/New_York", "2026-11-01", ["2026-11-01T01:30-04:00"]),
    ("30 0 * * *", "Asia/Beirut", "2026-03-29", ["2026-03-29T01:00"]),  # the day has no midnight
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-04", ["2026-10-04T02:30"]),
]


@pytest.mark.parametrize(("rule", "tz", "day", "at"), CHANGES)
def test_a_schedule_is_asserted_by_the_clocks_of_its_zone(
    rule: str, tz: str, day: str, at: list[str], registry: Registry
) -> None:
    registry.register(declared.plain, rule, id="nightly", tz=tz)
    next_day = str((datetime.fromisoformat(day) + timedelta(days=1)).date())
    assert_fires("nightly", between=(day, next_day), at=at, registry=registry)
    failure(lambda: assert_fires("nightly", between=(day, next_day), at=f"{day}T12:00", registry=registry))
    if at:
        failure(lambda: assert_silent("nightly", between=(day, next_day), registry=registry))
    else:
        assert_silent("nightly", between=(day, next_day), registry=registry)


@pytest.mark.parametrize(
    "at", ["2026-11-16T09:00Z", START, "2026-11-16T10:00", [START.astimezone(ZoneInfo("Asia/Tokyo"))]]
)
def test_an_instant_may_be_written_in_many_ways(at: Any, registry: Registry) -> None:
    registry.register(declared.plain, "0 10 * * *", tz=PARIS)
    assert_fires("plain", between=("2026-11-16", START + timedelta(hours=1)), at=at, registry=registry)


def test_what_was_expected_and_what_fires_stand_side_by_side(registry: Registry) -> None:
    registry.register(declared.plain, "30 2 * * *", id="backup", tz=PARIS)
    expected = ["2026-03-28T02:30", "2026-03-29T03:30", "2026-03-30T02:30"]
    days = ("2026-03-28", "2026-03-31")
    message = failure(lambda: assert_fires("backup", between=days, at=expected, registry=registry))
    span = "from Sat 2026-03-28 00:00 CET on and before Tue 2026-03-31 00:00 CEST"
    gap = "02:30 does not exist on 29 March: the clock jumps forward, and this runs right after"
    assert message.splitlines() == [
        f"schedule 'backup' does not fire as expected {span}",
        "(at 02:30, every day, Europe/Paris time)",
        "",
        "  expected                   fires",
        "  Sat 2026-03-28 02:30 CET   Sat 2026-03-28 02:30 CET",
        f"! -                          Sun 2026-03-29 03:00 CEST  ({gap})",
        "! Sun 2026-03-29 03:30 CEST  -",
        "  Mon 2026-03-30 02:30 CEST  Mon 2026-03-30 02:30 CEST",
    ]


def test_a_schedule_that_is_not_silent_is_shown_with_its_ticks(registry: Registry) -> None:
    registry.register(declared.plain, every="10s", phase="5s")
    span = (START, START + timedelta(seconds=20))
    message = failure(lambda: assert_silent("plain", between=span, registry=registry))
    assert "schedule 'plain' is not silent from Mon 2026-11-16 09:00 UTC on" in message
    assert message.splitlines()[-2:] == [
        "! -         Mon 2026-11-16 09:00:05 UTC",
        "! -         Mon 2026-11-16 09:00:15 UTC",
    ]


def test_a_long_comparison_shows_only_what_differs(registry: Registry) -> None:
    registry.register(declared.plain, "@hourly")
    hours = [START + timedelta(hours=n) for n in range(48)]
    at = [*hours[:40], hours[40] + timedelta(minutes=1), *hours[41:]]
    message = failure(
        lambda: assert_fires("plain", between=(START, START + timedelta(days=2)), at=at, registry=registry)
    )
    assert [line[0] for line in message.splitlines()[4:]] == ["!", "!", " "]
    assert message.endswith("… 49 in all, 2 of them not as expected")
    assert (
        len(
            failure(
                lambda: assert_silent("plain", between=("2026-01-01", "2027-01-01"), registry=registry)
            ).splitlines()
        )
        < 30
    )


def test_a_disabled_schedule_never_fires_and_a_failure_says_why(registry: Registry) -> None:
    registry.register(declared.plain, "@daily", enabled=False)
    span = (START, START + timedelta(days=1))
    assert_silent("plain", between=span, registry=registry)
    assert "but it is disabled" in failure(
        lambda: assert_fires("plain", between=span, at="2026-11-17", registry=registry)
    )


def test_a_schedule_that_is_not_there_is_named_with_its_nearest_neighbour(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.register(declared.report, "@daily", args=["daily"])
    span = (START, START + timedelta(days=1))
    with pytest.raises(UnknownSchedule, match=r"no schedule 'raport'\. Did you mean 'report'\?"):
        assert_silent("raport", between=span, registry=registry)
    with pytest.raises(UnknownSchedule, match="Did you mean 'report'"):
        ManualBeat(START, registry=registry).assert_fired("raport", at=[])
    monkeypatch.setattr(registries, "default_registry", Registry())
    with pytest.raises(UnknownSchedule, match="nor any other: import the module that declares them"):
        assert_silent("report", between=span)


@pytest.mark.parametrize(
    ("between", "at", "words"),
    [
        (("2026-03-29", "2026-03-30"), "2026-03-29T02:30", "does not exist in Europe/Paris"),
        (("2026-03-29", "2026-03-30"), "2026-03-30T00:00", "is not from Sun 2026-03-29 00:00 CET on"),
        (("2026-03-30", "2026-03-29"), [], "there is no time from"),
        (("2026-03-29", "tomorrow"), [], "'tomorrow' is not a time"),
        (("2026-03-29", "2026-03-30"), datetime(2026, 3, 29, 3), "has no time zone"),  # noqa: DTZ001
        (("2026-03-29", "2026-03-30"), [None], "must be a datetime"),
        (("2026-03-29", "2026-03-30"), None, "must be a datetime"),
    ],
)
def test_an_assertion_that_can_prove_nothing_is_refused(between: Any, at: Any, words: str, registry: Registry) -> None:
    registry.register(declared.plain, "30 2 * * *", tz=PARIS)
    assert words in refused(BadInstant, lambda: assert_fires("plain", between=between, at=at, registry=registry))


# The beat


def test_a_manual_beat_fires_everything_on_the_way(registry: Registry) -> None:
    registry.register(declared.report, every="20m", kwargs={"kind": "daily"}, queue="reports")
    beat = ManualBeat(START, registry=registry)
    fired = beat.tick_until("1h")
    assert [each.scheduled_for for each in fired] == [START + timedelta(minutes=n) for n in (20, 40, 60)]
    assert fired[0] == Fired(
        schedule_id="report",
        scheduled_for=START + timedelta(minutes=20),
        enqueued_at=START + timedelta(minutes=20),
        job_id="beat_report_1794820800",
        queue="reports",
        func="tests.support.declared.report",
        kwargs={"kind": "daily"},
    )
    assert {each.late for each in fired} == {timedelta(0)}
    assert beat.clock.now == START + timedelta(hours=1)
    assert beat.tick() == []
    assert len(beat.tick_until(START + timedelta(hours=2))) == 3
    assert len(beat.fired) == 6
    assert beat.skipped == []


def test_the_jobs_are_those_that_rq_finds_in_its_queue(registry: Registry) -> None:
    registry.register(declared.report, every="20m", kwargs={"kind": "daily"}, queue="reports", meta={"owner": "me"})
    beat = ManualBeat(START, registry=registry)
    fired = beat.tick_until("20m")
    (job,) = rq.Queue("reports", connection=beat.redis).jobs
    assert (job.id, job.func_name, job.kwargs) == (fired[0].job_id, fired[0].func, fired[0].kwargs)
    assert job.meta["owner"] == "me"
    assert job.meta["beat"] == f"{fired[0].schedule_id} 2026-11-16T09:20:00Z"
    assert job.created_at is not None
    assert job.created_at.replace(tzinfo=UTC) == fired[0].enqueued_at


def test_what_becomes_of_one_job_becomes_of_no_other(registry: Registry) -> None:
    registry.register(declared.anything, every="1m", overlap="skip")
    beat = ManualBeat(START, registry=registry)
    beat.tick_until("1m")
    beat.run_jobs()
    beat.tick_until("2m")
    first, second = beat.fired
    assert beat.redis.hget(f"rq:job:{second.job_id}", "status") == b"queued", "it is in the way of the tick after it"
    assert first.job_id != second.job_id


def test_who_waits_for_a_run_that_a_worker_has_ended_has_its_turn_though_the_clock_stands_still(
    registry: Registry,
) -> None:
    registry.register(tell_the_run, every="1m", overlap="wait")
    beat = ManualBeat(START, registry=registry)
    beat.tick_until("2m")
    assert (len(beat.fired), beat.tick()) == (1, []), "the second tick waits"
    rq.SimpleWorker([rq.Queue(connection=beat.redis)], connection=beat.redis).work(burst=True)
    assert [fired.scheduled_for for fired in beat.tick()] == [START + timedelta(minutes=2)]


def test_an_rq_worker_can_work_on_them(registry: Registry) -> None:
    registry.register(tell_the_run, every="20m")
    beat = ManualBeat(START, registry=registry)
    fired = beat.tick_until("20m")
    queue = rq.Queue(connection=beat.redis)
    job = queue.fetch_job(fired[0].job_id)
    assert rq.SimpleWorker([queue], connection=beat.redis).work(burst=True)
    assert job is not None
    assert job.return_value() == ("tell_the_run", START + timedelta(minutes=20))
    assert beat.run_jobs() == []  # the worker had it


@pytest.mark.parametrize("seed", range(12 if LONG else 4))
def test_a_manual_beat_fires_what_a_simulation_lists(seed: int, registry: Registry) -> None:
    chance = random.Random(seed)  # noqa: S311 (no secret)
    start = datetime(2026, chance.choice([3, 10, 11]), chance.randint(20, 30), 23, 59, 59, tzinfo=UTC)
    for n in range(6):
        options: dict[str, Any] = {
            "id": f"{chance.choice('abAB')}-{n}",
            "priority": chance.choice(["high", "normal", "low"]),
            "enabled": chance.random() < 0.9,
            "tz": chance.choice([PARIS, "America/New_York", "Australia/Lord_Howe", "UTC"]),
            "end": chance.choice([None, start + timedelta(hours=30)]),
        }
        if chance.random() < 0.4:
            registry.register(declared.plain, every=f"{chance.randint(1, 9)}h", **options)
        else:
            minute, hour = chance.choice(["0", "30", "*/40"]), chance.choice(["*/3", "2", "1-3", "*"])
            registry.register(declared.plain, f"{minute} {hour} * * *", **options)
    end, instant = start + timedelta(days=2), timedelta(microseconds=1)
    beat = ManualBeat(start, registry=registry)
    # A beat begins after its start, and fires what is due at the end.
    listed = list(simulate(registry, start + instant, end + instant))
    assert ticks_of(beat.tick_until(end)) == listed
    assert listed
    assert beat.skipped == []


@pytest.mark.parametrize(("rule", "tz", "day", "at"), CHANGES)
def test_a_manual_beat_keeps_the_days_on_which_clocks_change(
    rule: str, tz: str, day: str, at: list[str], registry: Registry
) -> None:
    registry.register(declared.plain, rule, tz=tz)
    midnight = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(tz))
    beat = ManualBeat(midnight - timedelta(seconds=1), registry=registry)
    beat.tick_until("23h")
    beat.assert_fired("plain", at=at)
    assert "was not fired as expected after" in failure(lambda: beat.assert_fired("plain", at=f"{day}T12:00"))


def test_of_ticks_that_were_missed_the_latest_fires_and_the_others_are_counted(registry: Registry) -> None:
    registry.register(declared.plain, every="15m")
    beat = ManualBeat(START, registry=registry)
    beat.clock.advance("1h5m")
    (fired,) = beat.tick()
    assert fired.scheduled_for == START + timedelta(hours=1)
    assert fired.late == timedelta(minutes=5)
    assert beat.skipped == [Skipped("plain", START + timedelta(minutes=15), 3, "misfire")]
    assert ticks_of(beat.tick_until("10m")) == [("plain", START + timedelta(minutes=75))]


def test_ticks_that_are_late_by_less_than_the_limit_all_fire_oldest_first(registry: Registry) -> None:
    registry.register(declared.plain, every="15m")
    beat = ManualBeat(START, registry=registry, misfire_after="2h")
    beat.clock.advance("1h5m")
    assert [each.late for each in beat.tick()] == [timedelta(minutes=n) for n in (50, 35, 20, 5)]
    assert beat.skipped == []


def test_what_is_overdue_fires_before_the_clock_moves_on(registry: Registry) -> None:
    registry.register(declared.plain, every="1h")
    beat = ManualBeat(START, registry=registry)
    beat.clock.advance("90m")
    assert [each.late for each in beat.tick_until("30m")] == [timedelta(minutes=30), timedelta(0)]


def test_nothing_is_claimed_ahead_and_kept_from_the_next_pass(registry: Registry) -> None:
    registry.register(declared.plain, every="10s")
    registry.register(declared.plain, every="10s", phase="1s", id="next")
    beat = ManualBeat(START, registry=registry, misfire_after="10s")
    assert [each.schedule_id for each in beat.tick_until("10s")] == ["next", "plain"]
    assert beat.redis.keys("beat:lock:*") == []
    beat.clock.advance("1m")
    assert [(each.schedule_id, each.late.seconds) for each in beat.tick()] == [
        *(("next", late) for late in (19, 9)),
        *(("plain", late) for late in (20, 10, 0)),
    ]
    assert [(each.schedule_id, each.count) for each in beat.skipped] == [("next", 4), ("plain", 3)]


def test_a_tick_is_not_late_because_the_test_is_slow(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = itertools.count(step=3600)
    monkeypatch.setattr(pacing, "time", SimpleNamespace(monotonic=lambda: next(hours)))
    registry.register(declared.plain, every="15m")
    beat = ManualBeat(START, registry=registry)
    assert [each.late for each in beat.tick_until("1h")] == [timedelta(0)] * 4
    assert beat.skipped == []


def test_a_clock_that_goes_back_repeats_no_tick(registry: Registry) -> None:
    registry.register(declared.plain, every="15m")
    beat = ManualBeat(START, registry=registry)
    first = beat.tick_until("1h")
    beat.clock.set(START, backwards=True)
    assert beat.tick_until("1h") == []
    assert len(first) == 4


def test_of_schedules_that_are_due_together_the_high_priority_goes_first(registry: Registry) -> None:
    priorities: list[Priority] = ["low", "normal", "high"]
    for n, priority in enumerate(priorities):
        registry.register(declared.plain, "@hourly", id=f"{n}-{priority}", priority=priority)
    fired = ManualBeat(START, registry=registry).tick_until("1h")
    assert [each.schedule_id for each in fired] == ["2-high", "1-normal", "0-low"]
    assert [each.queue for each in fired] == ["high", "default", "low"]


def test_more_schedules_than_a_page_holds_all_fire(registry: Registry) -> None:
    for n in range(7):
        registry.register(declared.plain, "@hourly", id=f"n{n}")
    fired = ManualBeat(START, registry=registry, page_size=2).tick_until("2h")
    assert sorted(ticks_of(fired)) == sorted(
        simulate(registry, START + timedelta(seconds=1), START + timedelta(hours=3))
    )


def test_a_schedule_ends_where_it_says(registry: Registry) -> None:
    registry.register(declared.plain, every="1h", end=START + timedelta(hours=2))
    beat = ManualBeat(START, registry=registry)
    assert len(beat.tick_until("5h")) == 2
    assert beat.clock.now == START + timedelta(hours=5)
    assert beat.redis.hget("beat:schedule:plain", "state") == b"finished"


def test_two_beats_share_nothing_and_a_clock_may_be_shared(registry: Registry) -> None:
    registry.register(declared.plain, every="1h")
    clock = ManualClock(START)
    one, other = ManualBeat(clock, registry=registry), ManualBeat(clock, registry=registry)
    assert one.clock is other.clock is clock
    assert len(one.tick_until("1h")) == len(other.tick()) == 1
    one.redis.flushall()
    assert len(other.tick_until("1h")) == 1


def test_a_manual_beat_takes_the_registry_of_periodic_unless_another_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registries, "default_registry", Registry())
    with pytest.raises(ConfigError, match="no schedule to test: import the module"):
        ManualBeat(START)
    registries.default_registry.register(declared.plain, "@hourly")
    assert len(ManualBeat(START).tick_until("1h")) == 1
    with pytest.raises(ConfigError, match="no schedule to test"):
        ManualBeat(START, registry=Registry())


@pytest.mark.parametrize("until", ["soon", -1, timedelta(-1), None])
def test_an_until_that_is_no_time_ahead_is_refused(until: Any, registry: Registry) -> None:
    registry.register(declared.plain, "@hourly")
    beat = ManualBeat(START, registry=registry)
    refused(BadDuration, lambda: beat.tick_until(until))
    refused(BadInstant, lambda: beat.tick_until(START - timedelta(seconds=1)))
    assert beat.clock.now == START


def test_what_a_beat_would_log_as_an_error_is_raised(registry: Registry) -> None:
    registry.register(declared.plain, "@hourly")
    beat = ManualBeat(START, registry=registry)
    beat.redis.hset("beat:schedule:plain", "run_count", "abc")
    with pytest.raises(BeatError, match="schedule 'plain': broken: run_count is not a number: abc"):
        beat.tick_until("1h")


def test_a_wrong_setting_is_refused_as_everywhere(registry: Registry) -> None:
    registry.register(declared.plain, "@hourly")
    with pytest.raises(ConfigError, match="Did you mean 'misfire_after'"):
        ManualBeat(START, registry=registry, misfire_afer="5m")


# The jobs, run in this process


def test_run_jobs_calls_what_waits_once_and_returns_the_results(registry: Registry) -> None:
    registry.register(declared.report, every="30m", args=["daily"], kwargs={"copies": 2}, queue="reports")
    registry.register(declared.poll, every="1h", priority="low")
    beat = ManualBeat(START, registry=registry)
    beat.tick_until("1h")
    assert beat.run_jobs() == [("daily", 2), ("daily", 2), "polled"]
    assert beat.run_jobs() == []
    assert list(beat.redis.scan_iter("rq:job:*")) == []
    assert rq.Queue("reports", connection=beat.redis).count == 0
    beat.tick_until("30m")
    assert beat.run_jobs() == [("daily", 2)]


def test_a_function_that_is_run_knows_its_tick(registry: Registry) -> None:
    registry.register(tell_the_run, every="1h")
    registry.register(tell_the_run_slowly, every="1h")
    beat = ManualBeat(START, registry=registry)
    beat.tick_until("1h")
    hour = START + timedelta(hours=1)
    assert beat.run_jobs() == [("tell_the_run", hour), ("tell_the_run_slowly", hour)]
    assert get_current_run() is None


def test_every_run_has_arguments_of_its_own(registry: Registry) -> None:
    registry.register(spoil, every="30m", args=[["fresh"]])
    beat = ManualBeat(START, registry=registry)
    beat.tick_until("1h")
    assert beat.run_jobs() == [["fresh", "spoilt"], ["fresh", "spoilt"]]


def test_what_a_job_raises_comes_through_with_its_tick_and_the_others_still_wait(registry: Registry) -> None:
    registry.register(fail, every="1h")
    registry.register(declared.plain, every="1h", priority="low")
    beat = ManualBeat(START, registry=registry)
    beat.tick_until("1h")
    with pytest.raises(LookupError, match="on purpose") as caught:
        beat.run_jobs()
    assert caught.value.__notes__ == ["in the run of schedule 'fail' for 2026-11-16T10:00:00Z"]
    assert beat.run_jobs() == ["plain"]


# The fake Redis


@pytest.mark.parametrize("name", scripts.names())
def test_a_script_asks_for_the_time_only_where_the_fake_can_answer(name: str) -> None:
    text = scripts.script(name).text
    assert re.findall(r"\bTIME\b.*", re.sub(r"--.*", "", text).replace("redis.call('TIME')", "")) == []


def test_the_redis_of_a_manual_beat_goes_by_its_clock_and_runs_other_scripts_as_they_are(registry: Registry) -> None:
    registry.register(declared.plain, "@hourly")
    beat = ManualBeat(START + timedelta(microseconds=1500), registry=registry)
    assert beat.redis.time() == (int(START.timestamp()), 1500)
    assert beat.redis.hget("beat:schedule:plain", "created_at") == b"2026-11-16T09:00:00.001Z"
    assert beat.redis.eval("return {#KEYS, #ARGV, ARGV[1]}", 1, "k", "v") == [1, 1, b"v"]
    assert beat.redis.evalsha(beat.redis.script_load("return #ARGV"), 0, "v") == 1
    asks = "return {#ARGV, redis.call('TIME')[1]}"
    assert beat.redis.eval(asks, 0, "v") == [1, str(int(START.timestamp())).encode()]


def test_what_is_written_about_a_job_is_about_no_other(registry: Registry) -> None:
    registry.register(declared.plain, every="1h")
    beat = ManualBeat(START, registry=registry)
    [first] = beat.tick_until("1h")
    beat.redis.hset(f"rq:job:{first.job_id}", "status", "finished")
    [second] = beat.tick_until("1h")
    assert beat.redis.hget(f"rq:job:{second.job_id}", "status") == b"queued"
    assert beat.redis.hget(f"rq:job:{first.job_id}", "status") == b"finished"


def test_a_script_copies_only_as_the_fake_can() -> None:
    texts = [scripts.script(name).text for name in scripts.names()]
    assert sum(text.count("redis.call('COPY'") for text in texts) == 3  # two statements, and an expression
    fake = ClockedRedis(ManualClock(START))
    assert all("redis.call('COPY'" not in fake.told(text) for text in texts)


def test_every_script_of_beat_runs_on_it_twice(registry: Registry) -> None:
    registry.register(declared.plain, "@hourly")
    beat = ManualBeat(START, registry=registry)
    store, held = Store(beat.redis, Keys()), lock.Lock(beat.redis, "held", 10_000)
    for _ in range(2):  # by its text, and then by its digest
        assert (held.acquire(), held.acquire(), held.extend(), held.release()) == (True, False, True, True)
        assert [reply.code for reply in store.repair(["plain"])] == ["SAME"]
        reply = store.heartbeat(
            {"host": "here"}, name="n", ttl=1000, digest="", announced_ttl=1000, judged=7_000, mark="-"
        )
        assert reply.code == "OK"
        assert clock.read(store.high_water()[0]) == clock.at(7)
        assert len(beat.tick_until("1h")) == 1


def test_no_server_is_asked(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object) -> None:
        raise AssertionError("somebody wants a server")

    monkeypatch.setattr(socket.socket, "connect", connect)
    registry.register(declared.plain, "@hourly")
    beat = ManualBeat(START, registry=registry)
    beat.tick_until("1h")
    assert beat.run_jobs() == ["plain"]


def test_a_year_of_a_daily_schedule_takes_seconds(registry: Registry) -> None:
    registry.register(declared.plain, "0 9 * * *", tz=PARIS)
    began = time.process_time()
    fired = ManualBeat(START, registry=registry).tick_until("365d")
    assert time.process_time() - began < 10  # 2 on the machine where this was written
    assert len(fired) == 365


WITHOUT = """\
import sys
sys.modules[sys.argv[1]] = None
from beat.testing import ManualClock, assert_fires, assert_silent, simulate
try:
    from beat.testing import ManualBeat
except ImportError as e:
    print(e)
"""


@pytest.mark.parametrize("missing", ["fakeredis", "lupa"])
def test_without_fakeredis_only_the_beat_is_missing_and_says_what_to_install(missing: str) -> None:
    done = _python("-c", WITHOUT, missing)
    assert "pip install 'rq-beat[testing]'" in done.stdout, done.stderr
    assert missing in done.stdout


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Beat'"):
        getattr(testing, "Beat")  # noqa: B009 (mypy knows that it is not there)
    assert all(hasattr(testing, name) for name in testing.__all__)


def test_the_example_tests_its_schedules() -> None:
    done = _python("-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/test_tasks.py")
    assert done.returncode == 0, done.stdout
    assert " passed in " in done.stdout


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
