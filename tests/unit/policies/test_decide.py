"""What becomes of late ticks: every one of them has one verdict, whatever the rule, the zone and the delay."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from beat.policies import jitter_and_capacity
from beat.policies.decide import Fire, Lateness, Skip, Verdict, prepare
from beat.schedule.schedule import Schedule
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.support.chance import examples

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
LIMIT = timedelta(seconds=20)
ALL = 100_000


def schedule(timing: Cron | Every, **given: Any) -> Schedule:
    return Schedule(id="report", func="app.tasks.report", timing=timing, **given)


MINUTELY, HOURLY = schedule(Cron("* * * * *")), schedule(Cron("0 * * * *"))


def decide(
    made: Schedule,
    tick: datetime,
    now: datetime,
    limit: timedelta = LIMIT,
    *,
    most: int = ALL,
    whole: bool = True,
) -> list[Verdict]:
    """The verdicts, after a look at what holds for all of them."""
    verdicts = prepare(made, tick, now, lateness=Lateness(limit), most=most)
    assert verdicts[0].tick == tick
    assert len(verdicts) <= most
    for one, other in pairwise(verdicts):
        assert one.next == other.tick, "a chain without a gap"
    for verdict in verdicts:
        assert verdict.next is None or verdict.next > verdict.tick
    if whole:
        assert verdicts[-1].next is None or verdicts[-1].next > now
    return verdicts


def fired(verdicts: list[Verdict]) -> list[datetime]:
    return [verdict.tick for verdict in verdicts if isinstance(verdict, Fire)]


def skips(verdicts: list[Verdict]) -> list[Skip]:
    return [verdict for verdict in verdicts if isinstance(verdict, Skip)]


# --- by example ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "now", [NINE, NINE + SECOND, NINE + LIMIT, NINE - SECOND], ids=["on time", "late", "as late as may be", "early"]
)
def test_a_tick_that_is_not_a_misfire_fires(now: datetime) -> None:
    assert decide(HOURLY, NINE, now) == [Fire(NINE, NINE + HOUR, by="scheduler")]


def test_ticks_within_the_limit_all_fire_oldest_first() -> None:
    every_second = schedule(Every("1s"))
    verdicts = decide(every_second, NINE, NINE + 15 * SECOND)
    assert fired(verdicts) == [NINE + n * SECOND for n in range(16)]
    assert not skips(verdicts)


def test_of_the_misfires_the_latest_fires_and_the_others_are_one_skip() -> None:
    now = NINE + timedelta(minutes=10, seconds=30)
    assert decide(MINUTELY, NINE, now) == [
        Skip(NINE, last=NINE + 9 * MINUTE, count=10, next=NINE + 10 * MINUTE, reason="misfire"),
        Fire(NINE + 10 * MINUTE, NINE + 11 * MINUTE, by="catchup"),
    ]


def test_after_the_latest_misfire_come_those_that_are_just_late() -> None:
    every_ten = schedule(Every("10s"))
    now = NINE + timedelta(seconds=65)
    verdicts = decide(every_ten, NINE, now)
    assert skips(verdicts) == [Skip(NINE, last=NINE + 30 * SECOND, count=4, next=NINE + 40 * SECOND)]
    assert fired(verdicts) == [NINE + n * SECOND for n in (40, 50, 60)]
    assert [each.by for each in verdicts if isinstance(each, Fire)] == ["catchup", "scheduler", "scheduler"]


def test_a_single_misfire_fires_and_nothing_is_skipped() -> None:
    assert decide(HOURLY, NINE, NINE + 30 * MINUTE) == [Fire(NINE, NINE + HOUR, by="catchup")]


@pytest.mark.parametrize(("late", "count"), [(LIMIT, 0), (LIMIT + timedelta(microseconds=1), 0)])
def test_the_limit_itself_is_not_late(late: timedelta, count: int) -> None:
    every_second = schedule(Every("1s"))
    verdicts = decide(every_second, NINE, NINE + late)
    assert sum(skip.count for skip in skips(verdicts)) == count


def test_the_tick_just_beyond_the_limit_is_the_latest_misfire() -> None:
    every_second = schedule(Every("1s"))
    verdicts = decide(every_second, NINE, NINE + LIMIT + 2 * SECOND)
    assert skips(verdicts) == [Skip(NINE, last=NINE, count=1, next=NINE + SECOND)]
    assert len(fired(verdicts)) == 22


def test_a_tick_whose_jitter_is_not_over_is_left_to_another_pass() -> None:
    spread = schedule(Every("1m"), jitter="10m")
    due = {tick: jitter_and_capacity.due(spread, tick) for tick in spread.ticks(NINE, NINE + HOUR)}
    first = next(tick for tick in due if due[tick] < due[tick + MINUTE])
    assert decide(spread, first, due[first], whole=False) == [Fire(first, first + MINUTE)]


def test_of_the_misfires_no_more_are_caught_up_with_when_pages_are_small() -> None:
    thorough = schedule(Cron("* * * * *"), misfire="all", catchup_limit=4)
    verdicts = prepare(thorough, NINE, NINE + HOUR, lateness=Lateness(LIMIT), most=3)
    assert fired(verdicts) == [NINE + n * MINUTE for n in range(4)]
    assert [each.not_before for each in verdicts if isinstance(each, Fire)] == [None] * 3 + [NINE + HOUR + SECOND]


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("first", ["missed", "too old", "paused", "paused, then too old"])
@pytest.mark.parametrize("parity", [0, 1])
def test_one_helping_has_exactly_catchup_limit_fires_when_days_between_are_excluded(
    first: str, most: int, parity: int
) -> None:
    begin, now, day = NINE - timedelta(days=100), NINE + HOUR, timedelta(days=1)
    rests = [(begin + n * day).date() for n in range(parity, 102, 2)]
    thorough = schedule(Cron("0 9 * * *"), misfire="all", catchup_limit=4, exclude=rests)
    lateness = Lateness(LIMIT, catchup_window=timedelta(days=50 if "old" in first else 365))
    paused = {"paused": now - 30 * day, "paused, then too old": now - 80 * day}.get(first)
    verdicts = prepare(thorough, begin, now, lateness=lateness, most=most, paused_until=paused)
    times = [verdict.not_before for verdict in verdicts if isinstance(verdict, Fire)]
    assert times == [None, None, None, now + SECOND]
    assert len(skips(verdicts)) >= 3


def test_an_early_tick_fires_and_brings_no_other() -> None:
    assert decide(MINUTELY, NINE + MINUTE, NINE + 59 * SECOND) == [Fire(NINE + MINUTE, NINE + 2 * MINUTE)]


def test_a_schedule_that_ends_has_no_next() -> None:
    ending = schedule(Cron("* * * * *"), end=NINE + 2 * MINUTE)
    assert decide(ending, NINE, NINE + HOUR) == [
        Skip(NINE, last=NINE + MINUTE, count=2, next=NINE + 2 * MINUTE),
        Fire(NINE + 2 * MINUTE, None, by="catchup"),
    ]


def test_a_due_tick_after_a_new_earlier_end_comes_first_and_then_the_end() -> None:
    assert decide(schedule(Cron("* * * * *"), end=NINE - HOUR), NINE, NINE + HOUR) == [Fire(NINE, None, by="catchup")]


def test_a_due_tick_before_a_new_later_start_fires_and_then_comes_the_start() -> None:
    later = schedule(Cron("* * * * *"), start=NINE + HOUR)
    assert decide(later, NINE, NINE + MINUTE) == [Fire(NINE, NINE + HOUR, by="catchup")]


def test_a_tick_of_the_old_timing_is_skipped_like_the_new_ones() -> None:
    stranger = NINE + 7 * MINUTE
    now = NINE + timedelta(hours=3, minutes=1)
    assert decide(HOURLY, stranger, now) == [
        Skip(stranger, last=NINE + 2 * HOUR, count=3, next=NINE + 3 * HOUR),
        Fire(NINE + 3 * HOUR, NINE + 4 * HOUR, by="catchup"),
    ]


def test_a_stretch_never_ends_before_it_begins() -> None:
    stranger = NINE + 7 * MINUTE
    assert decide(HOURLY, stranger, NINE + timedelta(hours=1, minutes=1)) == [
        Skip(stranger, last=stranger, count=1, next=NINE + HOUR),
        Fire(NINE + HOUR, NINE + 2 * HOUR, by="catchup"),
    ]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_chain_is_cut_where_it_can_go_on(most: int) -> None:
    every_second = schedule(Every("1s"))
    now = NINE + 90 * SECOND
    whole = decide(every_second, NINE, now)
    cut = decide(every_second, NINE, now, most=most, whole=False)
    assert cut == whole[:most]
    following = cut[-1].next
    assert following is not None
    assert decide(every_second, following, now) == whole[most:]


def test_a_year_of_missed_minutes_is_decided_at_once() -> None:
    berlin = schedule(Cron("* * * * *", "Europe/Berlin"))
    berlin.after(NINE)  # the zone's tables are made once
    spent = []
    for _ in range(3):
        begun = time.thread_time()
        verdicts = decide(berlin, NINE, NINE + timedelta(days=365, seconds=30))
        spent.append(time.thread_time() - begun)
    assert min(spent) < 0.05
    assert [skip.count for skip in skips(verdicts)] == [365 * 24 * 60]
    assert fired(verdicts) == [NINE + timedelta(days=365)]


@pytest.mark.parametrize(
    ("expression", "zone", "tick", "now", "expected"),
    [  # hours that do not exist, and hours that come twice
        ("30 2 * * *", "Europe/Berlin", "2026-03-29T01:00", "2026-03-29T01:00:05", ["2026-03-29T01:00"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30", "2026-10-25T01:35", ["2026-10-25T00:30"]),
        ("0 * * * *", "Europe/Berlin", "2026-10-25T00:00", "2026-10-25T00:00:10", ["2026-10-25T00:00"]),
        ("0 0 * * *", "America/Havana", "2026-11-01T04:00", "2026-11-01T05:00:10", ["2026-11-01T04:00"]),
    ],
)
def test_a_day_of_change_has_its_ticks_once(
    expression: str, zone: str, tick: str, now: str, expected: list[str]
) -> None:
    verdicts = decide(schedule(Cron(expression, zone)), at(tick), at(now))
    assert fired(verdicts) == [at(each) for each in expected]
    assert not skips(verdicts)


def at(written: str) -> datetime:
    return datetime.fromisoformat(written).replace(tzinfo=UTC)


# --- for any rule, zone, tick and delay ------------------------------------------------------------------------------

CHANGES = {  # around which clocks change
    "Europe/Berlin": ["2026-03-29T01:00", "2026-10-25T01:00"],
    "America/New_York": ["2026-03-08T07:00", "2026-11-01T06:00"],
    "Australia/Lord_Howe": ["2026-04-04T15:00", "2026-10-03T15:30"],
    "America/Havana": ["2026-03-08T05:00", "2026-11-01T05:00"],
    "Pacific/Apia": ["2011-12-30T10:00"],
    "Asia/Beirut": ["2026-03-28T22:00", "2026-10-24T21:00"],
    "UTC": ["2026-12-31T23:59", "2028-02-29T00:00"],
}
EXPRESSIONS = [
    "* * * * *", "*/5 * * * *", "0 * * * *", "30 1 * * *", "30 2 * * *", "0 0 * * *", "0 */2 * * *", "15,45 1-3 * * *",
    "0 9 * * mon-fri", "0 0 1 * *", "59 23 31 12 *", "@hourly", "0 0 29 2 *",
]  # fmt: skip
periods = st.sampled_from([1, 2, 7, 10, 59, 60, 61, 900, 3600, 5400, 86_400, 86_401])
SPAN = 3000
"""How many ticks a test walks over at most."""
near = st.timedeltas(timedelta(hours=-30), timedelta(hours=30))
delays = st.one_of(
    st.timedeltas(timedelta(seconds=-2), timedelta(seconds=40)),
    st.timedeltas(timedelta(), timedelta(minutes=40)),
    st.timedeltas(timedelta(), timedelta(days=3)),
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Schedule, datetime]:
    """A schedule and an instant near which its zone is interesting."""
    zone = draw(st.sampled_from(sorted(CHANGES)))
    around = at(draw(st.sampled_from(CHANGES[zone]))) + draw(near)
    if draw(st.booleans()):
        timing: Cron | Every = Cron(draw(st.sampled_from(EXPRESSIONS)), zone)
    elif draw(st.booleans()):
        timing = Every(period := draw(periods), phase=draw(st.integers(0, period - 1)))
    else:
        timing = Every(draw(periods), start=(around - draw(delays)).replace(microsecond=0))
    start = draw(st.one_of(st.none(), st.builds(lambda by: around + by, near)))
    end = draw(st.one_of(st.none(), st.builds(lambda by: around + timedelta(days=2) + by, near)))
    if start and end and start >= end:
        end = None
    return schedule(timing, start=start, end=end), around


limits = st.sampled_from([timedelta(seconds=1), LIMIT, MINUTE, HOUR, timedelta(days=7)])


@settings(max_examples=examples(300))
@given(cases(), delays, limits)
def test_every_tick_has_one_verdict(case: tuple[Schedule, datetime], delay: timedelta, limit: timedelta) -> None:
    made, around = case
    tick = made.after(around)
    if tick is None:
        return
    now = tick + delay
    assume(made.count(tick, now) < SPAN)
    check(made, tick, now, limit, decide(made, tick, now, limit))


@settings(max_examples=examples(200))
@given(cases(), st.integers(-100_000, 100_000), delays, limits)
def test_so_it_is_when_the_due_tick_is_none_of_the_new_timing(
    case: tuple[Schedule, datetime], off: int, delay: timedelta, limit: timedelta
) -> None:
    made, around = case
    tick = around.replace(microsecond=0) + timedelta(seconds=off)
    now = tick + delay
    assume(made.count(tick, now) < SPAN)
    check(made, tick, now, limit, decide(made, tick, now, limit))


def check(made: Schedule, tick: datetime, now: datetime, limit: timedelta, verdicts: list[Verdict]) -> None:
    """Against a plain walk over the ticks."""
    due = sorted({tick, *made.ticks(tick, now + timedelta(microseconds=1))})
    misfires = [each for each in due if each < now - limit]
    skipped, expected = misfires[:-1], misfires[-1:] + [each for each in due if each >= now - limit]
    assert fired(verdicts) == expected
    assert [each.tick for each in verdicts if isinstance(each, Fire) and each.by == "catchup"] == misfires[-1:]
    found = skips(verdicts)
    assert sum(skip.count for skip in found) == len(skipped)
    if skipped:
        assert [(skip.tick, skip.last) for skip in found] == [(skipped[0], skipped[-1])]
    assert verdicts[-1].next == made.after(due[-1])
