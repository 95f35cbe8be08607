from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beat.errors import BadInstant, BadOption, BadZone
from beat.schedule.follows import Follows
from beat.schedule.requires import Requires
from beat.schedule.rq_options import Callback, Retry
from beat.schedule.schedule import Schedule
from beat.schedule.source_location import Place
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.support.chance import examples
from tests.support.declared import Colour, Point
from tests.support.refusals import refused

HOUR, MICROSECOND = timedelta(hours=1), timedelta(microseconds=1)
MONDAY = datetime(2026, 11, 16, 9, tzinfo=UTC)
HOURLY, DAILY = Every("1h"), Cron("0 9 * * *")


def schedule(**given: Any) -> Schedule:
    return Schedule(**{"id": "report", "func": "app.tasks.report", "timing": HOURLY, **given})


# --- what it is ------------------------------------------------------------------------------------------------------


def test_a_schedule_cannot_be_changed() -> None:
    made = schedule()
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.queue = "other"  # type: ignore[misc]  # that is the question


def test_a_schedule_takes_its_fields_by_name_only() -> None:
    with pytest.raises(TypeError, match="positional argument"):
        Schedule("report", "app.tasks.report", HOURLY)  # type: ignore[call-arg]  # that is the question


@pytest.mark.parametrize("name", ["id", "func", "timing"])
def test_a_schedule_needs_an_id_a_function_and_a_rule(name: str) -> None:
    given = {"id": "report", "func": "app.tasks.report", "timing": HOURLY}
    del given[name]
    with pytest.raises(TypeError, match=name):
        Schedule(**given)  # type: ignore[arg-type]  # of many types


def test_what_is_not_said_is_left_to_rq() -> None:
    made = schedule()
    left = (made.job_timeout, made.result_ttl, made.failure_ttl, made.ttl, made.retry, made.on_success)
    assert left == (None,) * len(left)


def test_an_expression_brings_its_own_zone() -> None:
    assert schedule(timing=Cron("0 9 * * *", tz="Europe/Paris")).tz == "Europe/Paris"


def test_a_zone_that_is_not_the_expressions_own_is_refused() -> None:
    message = refused(BadOption, lambda: schedule(timing=DAILY, tz="Europe/Paris"))
    assert "tz 'Europe/Paris' is not the expression's own 'UTC': write timing=Cron('…', tz='Europe/Paris')" in message


def test_a_zone_that_does_not_exist_is_refused_beside_an_expression_too() -> None:
    assert "is not known" in refused(BadZone, lambda: schedule(timing=DAILY, tz="Europe/Atlantis"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"timing": DAILY}, "at 09:00, every day, UTC"),
        ({"timing": Cron("0 9 * * *", tz="Europe/Paris")}, "at 09:00, every day, Europe/Paris time"),
        ({"timing": DAILY, "start": MONDAY}, "at 09:00, every day, UTC, from 2026-11-16T09:00:00Z on"),
        ({"timing": DAILY, "end": MONDAY}, "at 09:00, every day, UTC, until 2026-11-16T09:00:00Z"),
        ({"timing": Every("1h", start=MONDAY), "start": MONDAY}, "every hour, from 2026-11-16T09:00:00Z on"),
        (
            {"start": MONDAY.astimezone(ZoneInfo("Asia/Tokyo")), "end": MONDAY + HOUR, "timing": DAILY},
            "at 09:00, every day, UTC, from 2026-11-16T09:00:00Z on, until 2026-11-16T10:00:00Z",
        ),
    ],
)
def test_a_schedule_is_described_with_its_bounds(given: dict[str, Any], words: str) -> None:
    assert schedule(**given).describe() == words


def test_an_interval_that_begins_later_than_it_counts_from_says_so() -> None:
    assert "2026-11-16T09:00:00Z" in schedule(timing=HOURLY, start=MONDAY).describe()


def test_a_place_cannot_be_changed() -> None:
    place = Place("app/tasks.py", 12, "app.tasks")
    with pytest.raises(dataclasses.FrozenInstanceError):
        place.line = 13  # type: ignore[misc]  # that is the question


def test_a_place_is_printed_as_editors_read_it() -> None:
    assert str(Place("app/tasks.py", 12, "app.tasks")) == "app/tasks.py:12"


# --- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (MONDAY, MONDAY),
        (MONDAY + MICROSECOND, MONDAY),
        (MONDAY, MONDAY.astimezone(ZoneInfo("Europe/Paris"))),
        (datetime(2026, 11, 16, 9, 30, tzinfo=ZoneInfo("Europe/Paris")), datetime(2026, 11, 16, 8, 15, tzinfo=UTC)),
    ],
)
def test_a_start_that_is_not_before_the_end_is_refused(start: datetime, end: datetime) -> None:
    assert "must lie before end" in refused(BadInstant, lambda: schedule(start=start, end=end))


def test_bounds_are_kept_in_utc() -> None:
    made = schedule(start=MONDAY.astimezone(ZoneInfo("Asia/Tokyo")), end=(MONDAY + HOUR).astimezone(ZoneInfo("UTC")))
    assert (made.start, made.end) == (MONDAY, MONDAY + HOUR)
    assert {bound.tzinfo for bound in (made.start, made.end) if bound} == {UTC}


def test_a_tick_at_the_start_counts() -> None:
    made = schedule(start=MONDAY)
    assert made.after(MONDAY - MICROSECOND) == MONDAY
    assert made.before(MONDAY + MICROSECOND) == MONDAY
    assert made.count(MONDAY, MONDAY + MICROSECOND) == 1
    assert next(made.ticks(MONDAY)) == MONDAY


def test_a_tick_just_before_the_start_does_not_count() -> None:
    made = schedule(start=MONDAY + MICROSECOND)
    assert made.after(MONDAY - HOUR) == MONDAY + HOUR
    assert made.before(MONDAY + HOUR) is None
    assert made.count(MONDAY, MONDAY + HOUR) == 0
    assert next(made.ticks(MONDAY)) == MONDAY + HOUR


def test_a_tick_at_the_end_counts() -> None:
    made = schedule(end=MONDAY)
    assert made.after(MONDAY - MICROSECOND) == MONDAY
    assert made.before(MONDAY + HOUR) == MONDAY
    assert made.count(MONDAY, MONDAY + HOUR) == 1
    assert list(made.ticks(MONDAY)) == [MONDAY]


def test_a_tick_just_after_the_end_does_not_count() -> None:
    made = schedule(end=MONDAY - MICROSECOND)
    assert made.after(MONDAY - MICROSECOND) is None
    assert made.before(MONDAY + HOUR) == MONDAY - HOUR
    assert made.count(MONDAY, MONDAY + HOUR) == 0
    assert list(made.ticks(MONDAY)) == []


def test_without_an_end_the_ticks_do_not_stop() -> None:
    assert len(list(islice(schedule().ticks(MONDAY), 1_000))) == 1_000


FOREVER = {"start": datetime.min.replace(tzinfo=UTC), "end": datetime.max.replace(tzinfo=UTC)}


@pytest.mark.parametrize("timing", [HOURLY, DAILY])
def test_the_ends_of_the_calendar_are_bounds_like_others(timing: Any) -> None:
    made, free = schedule(timing=timing, **FOREVER), schedule(timing=timing)
    assert made.after(MONDAY) == free.after(MONDAY)
    assert made.before(MONDAY) == free.before(MONDAY)
    assert made.count(MONDAY, MONDAY + 99 * HOUR) == free.count(MONDAY, MONDAY + 99 * HOUR)
    assert next(made.ticks(MONDAY)) == next(free.ticks(MONDAY))


@pytest.mark.parametrize("bounds", [{}, {"start": MONDAY}, {"end": MONDAY}, {"start": MONDAY, "end": MONDAY + HOUR}])
@pytest.mark.parametrize("timing", [HOURLY, DAILY])
@pytest.mark.parametrize(
    "ask",
    [
        lambda made, at: made.after(at),
        lambda made, at: made.before(at),
        lambda made, at: made.count(at, MONDAY),
        lambda made, at: made.count(MONDAY, at),
        lambda made, at: next(made.ticks(at)),
        lambda made, at: list(made.ticks(MONDAY, at)),
    ],
)
def test_a_question_about_a_naive_time_is_refused(ask: Any, timing: Any, bounds: dict[str, Any]) -> None:
    naive = MONDAY.replace(tzinfo=None)
    assert "has no time zone" in refused(BadInstant, lambda: ask(schedule(timing=timing, **bounds), naive))


SUMMER_ENDS = datetime(2026, 10, 25, 1, tzinfo=UTC)
instants = st.integers(-5 * 86_400 * 10**6, 5 * 86_400 * 10**6).map(lambda n: SUMMER_ENDS + n * MICROSECOND)
seconds = st.integers(-5 * 86_400, 5 * 86_400).map(lambda n: SUMMER_ENDS + timedelta(seconds=n))
timings = st.sampled_from(
    [
        HOURLY,
        DAILY,
        Every("37m", phase="5m"),
        Every("6h", start=SUMMER_ENDS),
        Cron("*/20 * * * *"),
        Cron("30 2 * * *", tz="Europe/Paris"),
        Cron("0 */3 * * *", tz="America/New_York"),
    ]
)
minutes = st.integers(-100, 100).map(lambda n: SUMMER_ENDS + n * HOUR)  # where ticks are
bounds = st.none() | instants | seconds | minutes


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    start, end = draw(bounds), draw(bounds)
    if start and end and start >= end:
        start, end = end, start + MICROSECOND
    return schedule(timing=draw(timings), start=start, end=end)


@given(schedules(), instants | minutes, instants | minutes)
@settings(max_examples=examples(150), deadline=None)
def test_the_ticks_lie_between_what_is_asked_and_within_the_bounds(made: Schedule, a: datetime, b: datetime) -> None:
    low, high = made.start or a, made.end or b
    expected = [tick for tick in made.timing.ticks(a, b) if low <= tick <= high]
    assert list(made.ticks(a, b)) == expected


@given(schedules(), instants | minutes, instants | minutes)
@settings(max_examples=examples(150), deadline=None)
def test_count_is_the_number_of_ticks(made: Schedule, a: datetime, b: datetime) -> None:
    assert made.count(a, b) == len(list(made.ticks(a, b)))


@given(schedules(), instants | minutes)
@settings(max_examples=examples(150), deadline=None)
def test_after_is_the_first_of_the_ticks_that_follow(made: Schedule, instant: datetime) -> None:
    assert made.after(instant) == next(made.ticks(instant + MICROSECOND), None)


@given(schedules(), instants | minutes)
@settings(max_examples=examples(150), deadline=None)
def test_before_undoes_after(made: Schedule, instant: datetime) -> None:
    tick = made.after(instant)
    if tick is None:
        assert made.count(instant + MICROSECOND, SUMMER_ENDS + timedelta(days=30)) == 0
        return
    assert made.before(tick + MICROSECOND) == tick
    previous = made.before(tick)
    assert previous is None or previous <= instant
    assert previous is None or made.after(previous) == tick


@given(schedules(), instants | minutes)
@settings(max_examples=examples(150), deadline=None)
def test_where_nothing_is_before_the_count_is_nought(made: Schedule, instant: datetime) -> None:
    long_ago = SUMMER_ENDS - timedelta(days=30)
    assert (made.before(instant) is None) <= (made.count(long_ago, instant) == 0)


# --- digests ---------------------------------------------------------------------------------------------------------

OTHER: list[dict[str, Any]] = [
    {"id": "other"},
    {"func": "app.tasks.other"},
    {"timing": Every("2h")},
    {"timing": Every("1h", phase="1m")},
    {"timing": DAILY},
    {"timing": Cron("0 9 * * *", tz="Europe/Paris")},
    {"tz": "Europe/Paris"},
    {"start": MONDAY},
    {"end": MONDAY},
    {"args": [1]},
    {"args": [True]},
    {"args": [[1]]},
    {"kwargs": {"a": 1}},
    {"kwargs": {"a": 1.0}},
    {"enabled": False},
    {"description": "other"},
    {"priority": "high"},
    {"queue": "other"},
    {"job_timeout": 5},
    {"result_ttl": 5},
    {"failure_ttl": 5},
    {"ttl": 5},
    {"retry": 5},
    {"retry": {"max": 5, "interval": 5}},
    {"retry": {"max": 5, "enqueue_at_front": True}},
    {"at_front": True},
    {"meta": {"a": 1}},
    {"on_success": "app.hooks.done"},
    {"on_failure": "app.hooks.done"},
    {"on_stopped": "app.hooks.done"},
    {"on_stopped": Callback(func="app.hooks.done", timeout=5)},
    {"serializer": "json"},
    {"misfire": "all"},
    {"misfire_after": "5s"},
    {"catchup_window": "5s"},
    {"misfire": "all", "catchup_limit": 5},
    {"overlap": "skip"},
    {"overlap": "skip", "max_running": 5},
    {"overlap": "wait", "max_waiting": 5},
    {"max_runs": 5},
    {"exclude": ["2026-12-25"]},
    {"jitter": "5s"},
    {"timing": Follows("extract")},
    {"timing": Follows("load")},
    {"queues": ["a", "b"], "route": "first"},
    {"queues": ["a", "b"], "route": "last"},
    {"queues": ["a", "c"], "route": "first"},
    {"group": "reports"},
    {"slow_queue": "slow"},
    {"slow_queue": "slow", "slow_after": "5s"},
    {"slow_queue": "slow", "slow_times": 5},
    {"slow_queue": "slow", "slow_window": "5s"},
    {"requires": "extract"},
    {"requires": Requires("extract", within="1h")},
    {"requires": ["extract", "load"]},
    {"requires": ["load", "extract"]},
    {"monitor": "https://hc-ping.com/5f3c"},
    {"monitor": "sentry"},
    {"monitor": "sentry:report"},
    {"monitor": "sentry grace=5m"},
]


def test_each_field_changes_the_rev() -> None:
    assert {name for given in OTHER for name in given} == {f.name for f in dataclasses.fields(Schedule)} - {
        "declared",
    }
    revs = [schedule().rev, *(schedule(**given).rev for given in OTHER)]
    assert len(set(revs)) == len(revs)


@pytest.mark.parametrize("given", OTHER, ids=[json.dumps(given, default=str) for given in OTHER])
def test_only_what_decides_the_ticks_changes_the_timing_rev(given: dict[str, Any]) -> None:
    decides = bool({"timing", "start", "end"} & set(given))
    assert (schedule(**given).timing_rev != schedule().timing_rev) == decides


def test_the_place_of_the_declaration_changes_nothing() -> None:
    assert schedule(declared=Place("app/tasks.py", 12, "app.tasks")).rev == schedule().rev


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Cron("@daily"), Cron("0 0 * * *")),
        (Cron("@weekly"), Cron("0 0 * * sun")),
        (Cron("0 9 * * MON-FRI"), Cron("0 9 * * 1,2,3,4,5")),
        (Cron("0  9 * * *"), Cron("00 09 * * *")),
        (Cron("@daily", seconds=True), Cron("0 0 0 * * *", seconds=True)),
        (Every("90m"), Every("1h30m")),
        (Every(3600), Every(timedelta(hours=1))),
    ],
)
def test_one_meaning_has_one_timing_rev(a: Any, b: Any) -> None:
    assert schedule(timing=a).timing_rev == schedule(timing=b).timing_rev


def test_another_way_to_write_an_expression_is_another_rev() -> None:
    assert schedule(timing=Cron("@daily")).rev != schedule(timing=Cron("0 0 * * *")).rev


def test_those_of_a_kind_have_their_revs_by_id_and_arguments() -> None:
    made = [schedule(**given) for given in ({}, {"id": "b"}, {"args": [1]}, {"kwargs": {"a": 1}}, {"meta": {"a": 1}})]
    assert len({each.kind for each in made}) == len({each.timing_rev for each in made}) == 1
    assert len({each.rev for each in made}) == len(made)


def test_a_rev_can_be_read_by_people_and_machines() -> None:
    assert all(len(rev) == 16 and int(rev, 16) for rev in (schedule().rev, schedule().timing_rev))


def test_the_definition_is_plain_data() -> None:
    made = schedule(kwargs={"a": {1, 2}}, retry=3, start=MONDAY, on_success="app.hooks.done", timing=DAILY)
    assert json.loads(json.dumps(made.definition()))["start"] == "2026-11-16T09:00:00Z"


# --- equality and copies ---------------------------------------------------------------------------------------------


def test_schedules_of_one_definition_are_equal_wherever_they_stand() -> None:
    a, b = schedule(declared=Place("a.py", 1, "a")), schedule(declared=Place("b.py", 2, "b"))
    assert a == b
    assert hash(a) == hash(b)


@pytest.mark.parametrize("given", OTHER, ids=[json.dumps(given, default=str) for given in OTHER])
def test_schedules_of_different_definitions_are_different(given: dict[str, Any]) -> None:
    assert schedule(**given) != schedule()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"timing": Cron("@daily")}, {"timing": Cron("0 0 * * *")}),
        ({"kwargs": {"a": 1}}, {"kwargs": {"a": True}}),
        ({"kwargs": {"a": 0.0}}, {"kwargs": {"a": -0.0}}),
        ({"kwargs": {"a": float("nan")}}, {"kwargs": {"a": float("nan")}}),
        ({"kwargs": {"a": 1, "b": 2}}, {"kwargs": {"b": 2, "a": 1}}),
    ],
)
def test_equal_schedules_hash_the_same_and_have_one_rev(a: dict[str, Any], b: dict[str, Any]) -> None:
    first, second = schedule(**a), schedule(**b)
    assert (first == second) == (hash(first) == hash(second)) == (first.rev == second.rev)


def test_a_schedule_is_equal_to_nothing_else() -> None:
    assert schedule() != "report"
    assert schedule() != schedule().rev


FULL = {
    "timing": Cron("0 9 * * *", tz="Europe/Paris"),
    "start": MONDAY,
    "end": MONDAY + HOUR,
    "args": [[1], Colour.RED, Point(1)],
    "kwargs": {"a": [1]},
    "meta": {"team": "data"},
    "retry": Retry(max=3, intervals=(1, 2)),
    "on_success": Callback(func="app.hooks.done", timeout=5),
    "declared": Place("app/tasks.py", 12, "app.tasks"),
}
COPIES = [copy.copy, copy.deepcopy, dataclasses.replace, lambda made: pickle.loads(pickle.dumps(made))]  # noqa: S301 (our own bytes)


@pytest.mark.parametrize("given", [{}, FULL], ids=["plain", "full"])
@pytest.mark.parametrize("copied", COPIES, ids=["copy", "deepcopy", "replace", "pickle"])
def test_a_copy_is_equal_in_every_field(given: dict[str, Any], copied: Any) -> None:
    made, names = schedule(**given), [field.name for field in dataclasses.fields(Schedule)]
    other = copied(made)
    assert [getattr(other, name) for name in names] == [getattr(made, name) for name in names]
    assert other == made


@pytest.mark.parametrize("copied", COPIES, ids=["copy", "deepcopy", "replace", "pickle"])
def test_a_copy_is_as_unchangeable_as_the_original(copied: Any) -> None:
    made = copied(schedule(kwargs={"a": 1}))
    with pytest.raises(TypeError, match="does not support item assignment"):
        made.kwargs["a"] = 2


@pytest.mark.parametrize("copied", [copy.deepcopy, dataclasses.replace, COPIES[-1]])
def test_a_change_inside_a_copy_does_not_reach_the_original(copied: Any) -> None:
    made = schedule(kwargs={"a": [1]})
    copied(made).kwargs["a"].append(2)
    assert made.kwargs == {"a": [1]}


def test_a_replaced_field_is_checked() -> None:
    assert "must be a queue's name" in refused(BadOption, lambda: dataclasses.replace(schedule(), queue=""))


def test_a_replaced_field_changes_the_rev() -> None:
    made = schedule()
    assert made.rev != dataclasses.replace(made, queue="other").rev
