"""The policies of time, by table: which ticks fire, which are skipped and why, and when each is due."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.engine.fire_items import chain
from beat.errors import BadFunction, BadOption
from beat.policies import jitter_and_capacity
from beat.policies.decide import Fire, Lateness, Skip, Verdict, prepare
from beat.schedule import exclusions
from beat.schedule.schedule import Schedule
from beat.storage.keys import Keys
from beat.storage.messages import Claim
from beat.timing import clock
from beat.timing.cron import Cron

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.timing.interval import Every

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)  # a Monday
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=n) for n in (1, 60, 3600, 86400))
LATENESS = Lateness(misfire_after=20 * SECOND)


def schedule(timing: Cron | Every | str = "* * * * *", **given: Any) -> Schedule:
    made = Cron(timing, given.get("tz", "UTC")) if isinstance(timing, str) else timing
    return Schedule(id=given.pop("id", "report"), func="app.tasks.report", timing=made, **given)


def decided(made: Schedule, tick: datetime, now: datetime, *, most: int = 1000) -> list[Verdict]:
    """What all of them have in common is looked at here."""
    found = prepare(made, tick, now, lateness=LATENESS, most=most)
    assert found[0].tick == tick
    assert all(one.next == other.tick for one, other in pairwise(found)), "a chain without a gap"
    return found


def told(verdicts: Sequence[Verdict], since: datetime = NINE) -> list[str]:
    """Each in a few words, in minutes since nine: `fire 3 catchup`, `skip 0-2 (3) misfire`."""

    def minutes(tick: datetime) -> str:
        return f"{(tick - since) / MINUTE:g}"

    return [
        f"fire {minutes(each.tick)} {each.by}"
        if isinstance(each, Fire)
        else f"skip {minutes(each.tick)}-{minutes(each.last)} ({each.count}) {getattr(each, 'reason', 'paused')}"
        for each in verdicts
    ]


# --- misfire ---------------------------------------------------------------------------------------------------------

TEN = NINE + 10 * MINUTE + 30 * SECOND  # half a minute after the tick of ten past nine, which is a misfire by then


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["skip 0-9 (10) misfire", "fire 10 catchup"]),
        ({"misfire": "once"}, ["skip 0-9 (10) misfire", "fire 10 catchup"]),
        ({"misfire": "skip"}, ["skip 0-10 (11) misfire"]),
        ({"misfire": "all"}, [f"fire {n} catchup" for n in range(10)]),
        ({"misfire": "all", "catchup_limit": 3}, [f"fire {n} catchup" for n in range(3)]),
        ({"misfire": "all", "catchup_limit": 100}, [f"fire {n} catchup" for n in range(11)]),
        ({"misfire_after": "1m"}, ["skip 0-8 (9) misfire", "fire 9 catchup", "fire 10 scheduler"]),
        (
            {"misfire": "skip", "misfire_after": "5m"},
            ["skip 0-5 (6) misfire", *(f"fire {n} scheduler" for n in range(6, 11))],
        ),
        ({"misfire_after": "1h"}, [f"fire {n} scheduler" for n in range(11)]),
        ({"catchup_window": "5m"}, ["skip 0-5 (6) too_old", "skip 6-9 (4) misfire", "fire 10 catchup"]),
        ({"catchup_window": "10s"}, ["skip 0-10 (11) too_old"]),
        ({"misfire": "all", "catchup_window": "2m"}, ["skip 0-8 (9) too_old", "fire 9 catchup", "fire 10 catchup"]),
        (
            {"misfire_after": "1h", "catchup_window": "2m"},
            ["skip 0-8 (9) too_old", "fire 9 scheduler", "fire 10 scheduler"],
        ),
        ({"end": NINE + 4 * MINUTE}, ["skip 0-3 (4) misfire", "fire 4 catchup"]),
        ({"end": NINE + 4 * MINUTE, "misfire": "skip"}, ["skip 0-4 (5) misfire"]),
        ({"jitter": "1m"}, ["skip 0-8 (9) misfire", "fire 9 catchup", "fire 10 scheduler"]),
    ],
    ids=str,
)  # fmt: skip
def test_what_becomes_of_ticks_that_were_missed(given: dict[str, Any], expected: list[str]) -> None:
    assert told(decided(schedule(**given), NINE, TEN)) == expected


def test_what_is_caught_up_with_comes_in_helpings() -> None:
    made = schedule(misfire="all", catchup_limit=3)
    verdicts = decided(made, NINE, TEN)
    assert [each.not_before for each in verdicts if isinstance(each, Fire)] == [None, None, TEN + SECOND]
    claim = Claim("report", made.rev, clock.text(NINE), clock.to_ms(NINE), "normal")
    items = chain(claim, made.rev, made, verdicts, Keys()).items
    assert [item.next_due for item in items[:2]] == [item.due for item in items[1:]]
    assert items[2].next_due == clock.to_ms(TEN + SECOND)


@pytest.mark.parametrize("misfire", ["once", "skip", "all"])
@pytest.mark.parametrize("exclude", [(), ("2026-12-24..2027-11-01",), ("2026-12-25", "2027-01-01")], ids=str)
def test_a_year_of_missed_minutes_is_decided_in_milliseconds(misfire: Any, exclude: tuple[str, ...]) -> None:
    made = schedule(Cron("* * * * *", "Europe/Berlin"), misfire=misfire, exclude=exclude)
    made.after(NINE)
    spent = []
    for _ in range(3):
        begun = time.thread_time()
        verdicts = decided(made, NINE, NINE + 365 * DAY)
        spent.append(time.thread_time() - begun)
    assert min(spent) < 0.05
    assert len(verdicts) < 20


# --- days of rest ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exclude", "now", "expected"),
    [
        (["2026-11-16"], NINE, ["skip 0-0 (1) excluded"]),
        (["2026-11-17"], NINE, ["fire 0 scheduler"]),
        (["2026-11-16"], NINE - SECOND, ["skip 0-0 (1) excluded"]),
        (["2026-11-16"], NINE + 5 * HOUR, ["skip 0-240 (5) excluded", "skip 300-300 (1) excluded"]),
        (["2026-11-16"], NINE + 15 * HOUR + SECOND, ["skip 0-840 (15) excluded", "fire 900 scheduler"]),
        (
            ["2026-11-17"],
            NINE + DAY,
            [
                "skip 0-780 (14) misfire", "fire 840 catchup", "skip 900-1380 (9) excluded",
                "skip 1440-1440 (1) excluded",
            ],
        ),
        (
            [(date(2026, 11, 16), date(2026, 11, 20))],
            NINE + 2 * DAY,
            ["skip 0-2820 (48) excluded", "skip 2880-2880 (1) excluded"],
        ),
    ],
    ids=str,
)  # fmt: skip
def test_nothing_fires_on_a_day_of_rest(exclude: Any, now: datetime, expected: list[str]) -> None:
    assert told(decided(schedule("0 * * * *", exclude=exclude), NINE, now)) == expected


def test_each_missed_tick_but_those_of_a_day_of_rest_is_caught_up_with() -> None:
    made = schedule("0 */6 * * *", exclude=["2026-11-17"], misfire="all", catchup_limit=50)
    six = NINE.replace(hour=6)
    found = decided(made, six, six + 2 * DAY + MINUTE)
    assert told(found, six) == [
        "fire 0 catchup", "fire 360 catchup", "fire 720 catchup", "skip 1080-2160 (4) excluded", "fire 2520 catchup",
        "fire 2880 catchup",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tz", "hour", "rests"),
    [
        ("UTC", 0, True), ("UTC", 23, True), ("America/New_York", 4, False), ("America/New_York", 5, True),
        ("Asia/Tokyo", 14, True), ("Asia/Tokyo", 15, False),
    ],
)  # fmt: skip
def test_a_day_is_one_of_the_schedules_zone(tz: str, hour: int, rests: bool) -> None:  # noqa: FBT001 (a table's)
    made = schedule("0 * * * *", tz=tz, exclude=["2026-11-16"])
    assert jitter_and_capacity.is_excluded(made, NINE.replace(hour=hour)) is rests


@given(
    st.sampled_from(["UTC", "America/New_York", "Europe/Berlin", "America/Havana", "Asia/Beirut", "Pacific/Apia"]),
    st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC)),  # noqa: DTZ001 (hypothesis adds it)
)
def test_a_day_begins_and_ends_where_its_neighbours_do(tz: str, instant: datetime) -> None:
    made, tick = schedule(tz=tz), instant.replace(second=0, microsecond=0)
    day = jitter_and_capacity.day_of(made, tick)
    assert jitter_and_capacity.day_of(made, jitter_and_capacity.night(made, tick)) in {day, day + DAY}
    assert (
        jitter_and_capacity.day_of(made, jitter_and_capacity.night(made, tick) - SECOND) == day
        or jitter_and_capacity.night(made, tick) == tick
    )
    assert jitter_and_capacity.day_of(made, jitter_and_capacity.morning(made, tick) - SECOND) in {day, day - DAY}
    assert jitter_and_capacity.day_of(made, jitter_and_capacity.morning(made, tick)) == day


def weekends(day: date) -> bool:
    return day.weekday() >= 5


weekends_in_words = "no function"
HERE = f"{__name__}.weekends"


def test_a_function_says_which_days_are_of_rest() -> None:
    made = schedule("0 9 * * *", exclude=weekends)
    assert made.exclude == (HERE,)
    assert [jitter_and_capacity.is_excluded(made, NINE + n * DAY) for n in range(7)] == [False] * 5 + [True] * 2
    assert exclusions.functions(made.exclude) == [HERE]


@pytest.mark.parametrize(
    "path", ["no.such.module", f"{__name__}.nobody", f"{__name__}.weekends_in_words", "datetime.nothing.at_all"]
)
def test_a_function_that_is_not_there_is_named(path: str) -> None:
    with pytest.raises(BadFunction, match=path.replace(".", r"\.")):
        jitter_and_capacity.is_excluded(schedule(exclude=path), NINE)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (None, ()),
        ([], ()),
        (date(2026, 12, 25), ("2026-12-25",)),
        ("2026-12-25", ("2026-12-25",)),
        (["2026-12-25", date(2026, 12, 25)], ("2026-12-25",)),
        (["2027-01-01", "2026-12-25"], ("2026-12-25", "2027-01-01")),
        ("2026-12-24 .. 2027-01-01", ("2026-12-24..2027-01-01",)),
        ([("2026-12-24", date(2027, 1, 1))], ("2026-12-24..2027-01-01",)),
        ([(date(2026, 12, 25), date(2026, 12, 25))], ("2026-12-25",)),
        (["app.calendar.is_holiday", "2026-12-25"], ("2026-12-25", "app.calendar.is_holiday")),
    ],
    ids=str,
)
def test_what_is_excluded_is_kept_as_text(value: Any, kept: tuple[str, ...]) -> None:
    assert schedule(exclude=value).exclude == kept


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("2026-13-01", "must be a date"),
        ("2026-02-30", "must be a date"),
        ("25.12.2026", "must be a date"),
        (["2026-12-25", 7], "must be a date"),
        (NINE, "must be a date"),
        ("2026-12-25..", "must be a date"),
        ("2027-01-01..2026-12-24", "ends before it begins"),
        ([("2027-01-01", "2026-12-24")], "ends before it begins"),
        ("christmas", "is not a dotted path"),
        (lambda _: True, "lambda"),
        ({"2026-12-25": 1}, "must be a list"),
        (7, "must be a list"),
        ([f"2026-01-{n % 28 + 1:02}" for n in range(1001)], "may have 1,000"),
    ],
    ids=lambda value: "a lambda" if callable(value) else f"{value!s:.30}",
)
def test_what_cannot_be_excluded_is_refused(value: Any, words: str) -> None:
    with pytest.raises(BadOption, match=words):
        schedule(exclude=value)


def in_words(day: date) -> str:
    return f"{day} is none"


def ends_it_all(day: date) -> bool:
    sys.exit(f"no {day}")


@pytest.mark.parametrize(
    ("name", "words"), [("in_words", "must return True or False"), ("ends_it_all", "SystemExit: no 2026-11-16")]
)
def test_a_function_that_gives_no_answer_is_named(name: str, words: str) -> None:
    with pytest.raises(BadFunction, match=words):
        jitter_and_capacity.is_excluded(schedule(exclude=f"{__name__}.{name}"), NINE)


def test_days_in_words() -> None:
    assert exclusions.words(["2026-12-25", "2026-12-31..2027-01-01", "app.f"]) == (
        "2026-12-25, 2026-12-31 to 2027-01-01, the days of app.f"
    )


# --- jitter ----------------------------------------------------------------------------------------------------------


def test_without_jitter_a_tick_is_due_at_its_own_time() -> None:
    assert jitter_and_capacity.due(schedule(), NINE) == NINE


@given(st.integers(0, 10_000), st.sampled_from([1, 999, 30_000, 86_400_000]))
def test_a_tick_is_due_within_its_jitter(minutes: int, milliseconds: int) -> None:
    made, tick = schedule(jitter=timedelta(milliseconds=milliseconds)), NINE + minutes * MINUTE
    late = jitter_and_capacity.due(made, tick) - tick
    assert timedelta(0) <= late <= timedelta(milliseconds=milliseconds)
    assert late % timedelta(milliseconds=1) == timedelta(0)


def test_a_tick_that_was_placed_is_due_as_it_was_placed_whatever_the_jitter_is_now() -> None:
    made = schedule(jitter="50m", id="s3")
    assert jitter_and_capacity.due(made, NINE) > NINE
    claim = Claim("s3", made.rev, clock.text(NINE), clock.to_ms(NINE), "normal")
    [item] = chain(claim, made.rev, made, [Fire(NINE, NINE + HOUR)], Keys()).items
    assert (item.due, item.next_due) == (clock.to_ms(NINE), clock.to_ms(jitter_and_capacity.due(made, NINE + HOUR)))


def test_schedules_and_ticks_are_spread() -> None:
    one = [jitter_and_capacity.due(schedule(jitter="60s"), NINE + n * MINUTE) - (NINE + n * MINUTE) for n in range(300)]
    many = [jitter_and_capacity.due(schedule(id=f"s{n}", jitter="60s"), NINE) - NINE for n in range(300)]
    for found in (one, many):
        tenths = [0] * 10
        for late in found:
            tenths[min(9, int(late / (6 * SECOND)))] += 1
        assert min(tenths) > 10
        assert max(tenths) < 60


def test_every_process_computes_the_same_jitter() -> None:
    code = (
        "from datetime import UTC, datetime; from beat.policies import jitter_and_capacity as policies;"
        "from beat.timing.interval import Every;"
        "from beat.schedule.schedule import Schedule;"
        "made = Schedule(id='report', func='a.b', timing=Every('1m'), jitter='30s');"
        "print(policies.due(made, datetime(2026, 11, 16, 9, tzinfo=UTC)).isoformat())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }  # fmt: skip
    assert (
        said
        == {jitter_and_capacity.due(schedule(jitter="30s"), NINE).isoformat()}
        == {"2026-11-16T09:00:26.164000+00:00"}
    )


# --- slots, and what says nothing together ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "slot"),
    [
        ({}, ""),
        ({"overlap": "skip"}, "skip 1 0"),
        ({"overlap": "skip", "max_running": 3}, "skip 3 0"),
        ({"overlap": "wait"}, "wait 1 1"),
        ({"overlap": "wait", "max_running": 2, "max_waiting": 5}, "wait 2 5"),
        ({"overlap": "replace"}, "replace 1 1"),
    ],
    ids=str,
)
def test_the_slot_of_a_schedule(given: dict[str, Any], slot: str) -> None:
    assert str(jitter_and_capacity.slot(schedule(**given)) or "") == slot


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_running": 2}, "overlap='skip' or overlap='wait'"),
        ({"max_running": 2, "overlap": "replace"}, "overlap='skip' or overlap='wait'"),
        ({"max_waiting": 2}, "only with overlap='wait'"),
        ({"max_waiting": 2, "overlap": "skip"}, "only with overlap='wait'"),
        ({"catchup_limit": 2}, "only misfire='all'"),
        ({"catchup_window": "1h", "misfire": "skip"}, "no late tick fires"),
        ({"misfire": "never"}, "must be one of 'once', 'skip', 'all'"),
        ({"overlap": "waits"}, "Did you mean 'wait'"),
        ({"max_runs": 0}, "whole number from 1"),
        ({"max_runs": True}, "whole number from 1"),
        ({"max_running": 101, "overlap": "skip"}, "from 1 to 100"),
        ({"jitter": "2d"}, "from 1ms to 1d"),
        ({"jitter": -1}, "from 1ms to 1d"),
        ({"jitter": timedelta(microseconds=5)}, "from 1ms to 1d"),
        ({"misfire_after": "soon"}, "must be a length of time"),
        ({"catchup_window": "400d"}, "to 52w2d"),
    ],
    ids=str,
)
def test_what_says_nothing_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadOption, match=words):
        schedule(**given)


def test_skips_keep_their_reason_on_the_way_to_redis() -> None:
    made = schedule(exclude=["2026-11-16"])
    [item] = chain(Claim("report", made.rev, clock.text(NINE), clock.to_ms(NINE), "normal"), made.rev, made,
                   [Skip(NINE, NINE, 1, None, "excluded")], Keys()).items  # fmt: skip
    assert (item.kind, item.reason, item.next) == ("skip", "excluded", "")
