"""Where a schedule goes on when its definition comes from the code."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beat.policies.reconcile import KEEP, Placement, place
from beat.schedule.follows import Follows
from beat.schedule.schedule import Schedule
from beat.schedule.state import State
from beat.timing import clock
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.support.chance import examples

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
NOW = NINE + timedelta(minutes=20)
HOUR = timedelta(hours=1)


def schedule(**given: Any) -> Schedule:
    return Schedule(**{"id": "report", "func": "app.tasks.report", "timing": Cron("0 * * * *"), **given})


HOURLY = schedule()


def seen(made: Schedule = HOURLY, state: str = "active", **given: str | datetime | None) -> State:
    """What Redis has when all is well: fired at nine, next at ten."""
    values: dict[str, Any] = {"next_run": NINE + HOUR, "last_run": NINE, **given}
    values.setdefault("due_at", values["next_run"])
    texts = {name: clock.text(v) if isinstance(v, datetime) else v or "" for name, v in values.items()}
    fields: dict[str, Any] = {"rev": made.rev, "timing_rev": made.timing_rev, "state": state, **texts}
    return State(**fields)


def at(tick: datetime, state: str = "active") -> Placement:
    return Placement(state, clock.text(tick), clock.to_ms(tick))


# --- what is new, and what has not changed ---------------------------------------------------------------------------


@pytest.mark.parametrize("now", [NOW, NINE, NINE + HOUR - timedelta(microseconds=1)])
def test_a_new_schedule_begins_with_the_first_tick_after_now(now: datetime) -> None:
    assert place(HOURLY, None, now) == at(NINE + HOUR)


def test_a_new_schedule_that_is_over_is_finished() -> None:
    assert place(schedule(end=NINE), None, NOW) == Placement("finished", "")


def test_a_new_schedule_that_is_not_enabled_is_disabled() -> None:
    assert place(schedule(enabled=False), None, NOW) == at(NINE + HOUR, "disabled")


@pytest.mark.parametrize("due", [NINE + HOUR, NINE, NINE - 100 * HOUR], ids=["to come", "due", "long due"])
@pytest.mark.parametrize("state", ["active", "paused"])
def test_what_has_not_changed_is_not_written(due: datetime, state: str) -> None:
    before = seen(state=state, next_run=due, last_run=due - HOUR)
    assert place(HOURLY, before, NOW) is None


def test_what_is_disabled_and_stays_so_is_not_written() -> None:
    off = schedule(enabled=False)
    assert place(off, seen(off, "disabled"), NOW) is None


def test_what_is_finished_and_stays_so_is_not_written() -> None:
    over = schedule(end=NINE)
    assert place(over, seen(over, "finished", next_run=None), NOW) is None


def test_what_has_never_run_is_not_written_either() -> None:
    assert place(HOURLY, seen(last_run=None), NOW) is None


# --- what is edited --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [{"job_timeout": 600}, {"queue": "other"}, {"kwargs": {"a": 1}}, {"description": "x"}, {"priority": "high"}],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("due", [NINE + HOUR, NINE, NINE - 100 * HOUR], ids=["to come", "due", "long due"])
def test_a_change_that_is_not_of_timing_moves_nothing(change: dict[str, Any], due: datetime) -> None:
    assert place(schedule(**change), seen(next_run=due, last_run=due - HOUR), NOW) == Placement("active", KEEP)


def test_a_change_of_timing_moves_to_the_first_tick_after_now() -> None:
    assert place(schedule(timing=Every("5m")), seen(), NOW) == at(NINE + timedelta(minutes=25))


def test_or_after_the_last_run_if_that_is_later() -> None:
    ahead = seen(last_run=NOW + 5 * HOUR, next_run=NOW + 6 * HOUR)
    assert place(schedule(timing=Every("5m")), ahead, NOW) == at(NINE + timedelta(hours=5, minutes=25))


def test_a_new_end_that_has_passed_finishes() -> None:
    assert place(schedule(end=NINE), seen(), NOW) == Placement("finished", "")


def test_a_longer_end_revives_what_was_finished() -> None:
    over, longer = schedule(end=NINE), schedule(end=NINE + 10 * HOUR)
    assert place(longer, seen(over, "finished", next_run=None), NOW) == at(NINE + HOUR)


TWICE = schedule(max_runs=2)
ENOUGH = {"next_run": None, "run_count": "3", "manual_count": "1"}


@pytest.mark.parametrize(
    "change",
    [
        {}, {"queue": "other"}, {"description": "x"}, {"kwargs": {"a": 1}}, {"job_timeout": 60}, {"misfire": "all"},
        {"timing": Cron("*/5 * * * *")}, {"timing": Every("1h"), "jitter": "1m"}, {"end": NINE + 100 * HOUR},
        {"start": NINE - HOUR}, {"tz": "UTC", "priority": "high"}, {"max_runs": 1}, {"monitor": "https://hc-ping.com/x"},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("anew", [False, True])
def test_nothing_but_max_runs_revives_a_schedule_that_has_run_often_enough(change: dict[str, Any], anew: bool) -> None:  # noqa: FBT001 (a table's)
    made = schedule(**{"max_runs": 2, **change})
    placed = place(made, seen(TWICE, "finished", **ENOUGH), NOW, anew=anew)
    unchanged = not change and not anew
    assert placed == (None if unchanged else Placement("finished", ""))


@pytest.mark.parametrize("most", [3, 1_000, None])
def test_a_raised_max_runs_revives_a_finished_schedule(most: int | None) -> None:
    before = seen(TWICE, "finished", **ENOUGH)
    assert place(schedule(max_runs=most), before, NOW) == at(NINE + HOUR)
    assert place(schedule(max_runs=most, end=NINE), before, NOW) == Placement("finished", "")
    assert place(schedule(max_runs=most, enabled=False), before, NOW) == Placement("disabled", KEEP)


def test_a_finished_schedule_with_the_same_definition_stays_finished() -> None:
    fewer = seen(TWICE, "finished", next_run=None, run_count="1")
    assert place(TWICE, fewer, NOW) is None


def test_another_spelling_of_the_same_rule_moves_nothing() -> None:
    one, other = schedule(timing=Cron("0 0-23 * * *")), schedule(timing=Cron("0 0-23/1 * * *"))
    assert place(one, seen(other), NOW) == Placement("active", KEEP)


# --- enabling, disabling, pausing ------------------------------------------------------------------------------------


def test_what_is_disabled_keeps_its_place() -> None:
    assert place(schedule(enabled=False), seen(), NOW) == Placement("disabled", KEEP)


@pytest.mark.parametrize("next_run", [NINE - 50 * HOUR, NINE + HOUR, None])
@pytest.mark.parametrize("state", ["disabled", "retired"])
def test_what_is_enabled_goes_on_from_now_and_does_not_fire_at_once(state: str, next_run: datetime | None) -> None:
    off = schedule(enabled=False)
    before = seen(off, state, next_run=next_run, last_run=NINE - 51 * HOUR)
    assert place(HOURLY, before, NOW) == at(NINE + HOUR)


def test_enabling_never_goes_back_before_the_last_run() -> None:
    off = schedule(enabled=False)
    assert place(HOURLY, seen(off, "disabled", last_run=NINE + 5 * HOUR), NOW) == at(NINE + 6 * HOUR)


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("timing", [Cron("0 * * * *"), Every("5m")], ids=["same", "new"])
@pytest.mark.parametrize("next_run", [NINE + HOUR, NINE - HOUR, None])
def test_what_a_person_has_paused_stays_paused(*, enabled: bool, timing: Any, next_run: datetime | None) -> None:
    placed = place(schedule(timing=timing, enabled=enabled), seen(state="paused", next_run=next_run), NOW)
    assert placed is None or placed.state == "paused"


# --- what is lost or spoilt ------------------------------------------------------------------------------------------

GARBLED = ["", "abc", "-1", "1763283600", "2026-02-31T00:00:00Z", "2026-11-16", "2026-11-16T10:00:00", "\x00", "9" * 99]


@pytest.mark.parametrize("garbled", GARBLED)
@pytest.mark.parametrize("field", ["next_run", "due_at"])
@pytest.mark.parametrize("state", ["active", "broken", "", "banana"])
def test_a_lost_or_garbled_next_run_goes_on_after_the_last_run(field: str, garbled: str, state: str) -> None:
    change: dict[str, Any] = {field: garbled}
    broken = replace(seen(state=state, last_run=NINE - 5 * HOUR), **change)
    assert place(HOURLY, broken, NOW) == at(NINE - 4 * HOUR), "nothing after the last run is lost"


@pytest.mark.parametrize("garbled", GARBLED)
def test_what_never_ran_goes_on_from_now(garbled: str) -> None:
    assert place(HOURLY, seen(next_run=garbled, last_run=garbled), NOW) == at(NINE + HOUR)


def test_a_broken_schedule_that_can_be_read_again_keeps_its_place() -> None:
    assert place(HOURLY, seen(state="broken"), NOW) == Placement("active", KEEP)


def test_a_finished_schedule_with_a_garbled_next_run_goes_on() -> None:
    assert place(HOURLY, seen(state="finished", next_run="abc"), NOW) == at(NINE + HOUR)


@pytest.mark.parametrize("off", [HOUR, -timedelta(minutes=30), 24 * HOUR], ids=str)
def test_a_tick_that_is_none_because_the_zones_data_changed_moves(off: timedelta) -> None:
    daily = schedule(timing=Cron("0 12 * * *", "Europe/Berlin"))
    tick = daily.after(NOW)
    assert tick is not None
    assert place(daily, seen(daily, next_run=tick + off), NOW) == at(tick)
    assert place(daily, seen(daily, "paused", next_run=tick + off), NOW) == at(tick, "paused")


def test_a_due_tick_stays_even_if_the_zones_data_changed() -> None:
    daily = schedule(timing=Cron("0 12 * * *", "Europe/Berlin"))
    assert place(daily, seen(daily, next_run=NOW - timedelta(minutes=7), last_run=NINE - 24 * HOUR), NOW) is None


def test_what_was_claimed_by_a_clock_ahead_of_ours_stays() -> None:
    assert place(HOURLY, seen(last_run=NINE + HOUR, next_run=NINE + 2 * HOUR), NOW) is None


# --- for whatever Redis holds ----------------------------------------------------------------------------------------

instants = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC)).map(  # noqa: DTZ001 (hypothesis')
    lambda instant: instant.replace(microsecond=0)
)
texts = st.one_of(st.sampled_from(GARBLED), instants.map(clock.text))
schedules = st.builds(
    schedule,
    timing=st.sampled_from([Cron("0 * * * *"), Cron("30 2 * * *", "Europe/Berlin"), Every("7m"), Every("1d")]),
    enabled=st.booleans(),
    start=st.one_of(st.none(), st.just(datetime(2026, 6, 1, tzinfo=UTC))),
    end=st.one_of(st.none(), st.just(datetime(2027, 6, 1, tzinfo=UTC))),
)
states = st.builds(
    State,
    rev=st.sampled_from(["", "other", HOURLY.rev]),
    timing_rev=st.sampled_from(["", "other", HOURLY.timing_rev]),
    state=st.sampled_from(["active", "paused", "disabled", "finished", "broken", "retired", "", "\ufffd"]),
    next_run=texts,
    due_at=texts,
    last_run=texts,
)


@settings(max_examples=examples(500))
@given(made=schedules, found=states, now=instants, same=st.booleans())
def test_no_tick_comes_before_the_last_run_or_twice(*, made: Schedule, found: State, now: datetime, same: bool) -> None:
    if same:
        found = State(made.rev, made.timing_rev, found.state, found.next_run, found.due_at, found.last_run)
    placed = place(made, found, now)
    if placed is None:
        assert (found.rev, found.timing_rev) == (made.rev, made.timing_rev)
        assert found.state in {"active", "paused", "disabled", "finished"}
        return
    assert placed.state in {"active", "paused", "disabled", "finished"}
    assert (placed.state == "paused") == (found.state == "paused")
    if placed.next in {KEEP, ""}:
        assert placed.next_due == 0
        assert placed.next != KEEP or found.next is not None or placed.state != "active"
        return
    tick = clock.read(placed.next)
    assert clock.to_ms(tick) == placed.next_due
    assert list(made.ticks(tick, tick + timedelta(seconds=1))) == [tick]
    assert found.last is None or tick > found.last


@given(schedules, states, instants)
def test_what_was_placed_is_placed_for_good(made: Schedule, found: State, now: datetime) -> None:
    placed = place(made, found, now)
    if placed is None:
        return
    next_run = found.next_run if placed.next == KEEP else placed.next
    due_at = found.due_at if placed.next == KEEP else placed.next
    written = State(made.rev, made.timing_rev, placed.state, next_run, due_at, found.last_run)
    assert place(made, written, now) is None


# --- what follows another --------------------------------------------------------------------------------------------

FOLLOWER = schedule(timing=Follows("extract"))


@pytest.mark.parametrize(("enabled", "state"), [(True, "active"), (False, "disabled")])
def test_a_new_follower_has_no_next_tick(*, enabled: bool, state: str) -> None:
    assert place(replace(FOLLOWER, enabled=enabled), None, NOW) == Placement(state, "")


@pytest.mark.parametrize("state", ["active", "paused"])
def test_a_follower_that_has_not_changed_is_not_written(state: str) -> None:
    assert place(FOLLOWER, seen(FOLLOWER, state, next_run=None), NOW) is None


@pytest.mark.parametrize("state", ["retired", "disabled", "finished", "broken"])
def test_a_follower_comes_back_as_active(state: str) -> None:
    assert place(FOLLOWER, seen(FOLLOWER, state, next_run=None), NOW) == Placement("active", "")


@pytest.mark.parametrize(("state", "then"), [("active", "active"), ("paused", "paused"), ("finished", "active")])
def test_an_expression_that_becomes_follows_loses_its_tick(state: str, then: str) -> None:
    assert place(FOLLOWER, seen(HOURLY, state), NOW) == Placement(then, "")


def test_an_expression_that_becomes_follows_and_is_disabled() -> None:
    off = replace(FOLLOWER, enabled=False)
    assert place(off, seen(HOURLY), NOW) == Placement("disabled", "")
    assert place(off, seen(off, "disabled", next_run=None), NOW) is None


@pytest.mark.parametrize(("state", "then"), [("active", "active"), ("paused", "paused"), ("disabled", "active")])
def test_follows_that_becomes_an_expression_goes_on_from_now(state: str, then: str) -> None:
    last = NINE + timedelta(minutes=7, milliseconds=250)
    assert place(HOURLY, seen(FOLLOWER, state, next_run=None, last_run=last), NOW) == at(NINE + HOUR, then)


def test_a_follower_that_has_run_often_enough_is_finished() -> None:
    twice = replace(FOLLOWER, max_runs=2)
    assert place(twice, seen(twice, next_run=None, run_count="2"), NOW) == Placement("finished", "")
    assert place(twice, seen(twice, "finished", next_run=None, run_count="2"), NOW) is None
    assert place(twice, seen(twice, "paused", next_run=None, run_count="2"), NOW) is None
    more = replace(FOLLOWER, max_runs=3)
    assert place(more, seen(twice, "finished", next_run=None, run_count="2"), NOW) == Placement("active", "")
