"""Why an instant became a run, was skipped, or is no tick: answered from ledgers of every kind."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.client import schedule_info
from beat.client.describe import decisions
from beat.client.describe.why import sentence
from beat.client.explain import Explanation, Question
from beat.client.rule_periods import eras
from beat.history.history import assemble
from beat.history.ledger import Acted
from beat.schedule.serialize import ticking
from beat.timing import clock
from beat.timing.zones import zone
from tests.support.lines import MINUTE, NINE, SECOND, Ledger
from tests.unit.history.test_ledger import entries as any_entries

if TYPE_CHECKING:
    from beat.history.ledger import Entry

HOUR = timedelta(hours=1)
HOURLY = {"cron": "0 * * * *", "tz": "UTC"}
WRONG: list[dict[str, Any]] = [
    {},
    {"cron": 7, "tz": 8},
    {"every": "1s", "start": "x"},
    {"cron": "* * * * *", "tz": []},
]


POLICED = json.dumps({
    "id": "report", "func": "app.report", "cron": "* * * * *", "tz": "America/New_York", "misfire": "all",
    "overlap": "wait", "max_runs": 3, "exclude": ["2026-11-16", "app.is_holiday"], "jitter": "30s",
}).encode()  # fmt: skip


def stands(book: Ledger, **fields: str) -> schedule_info.Standing:
    following = clock.text(book.next) if book.next else ""
    told = {"state": "active", "next_run": following, "due_at": following, **fields}
    found = {name.encode(): value.encode() for name, value in told.items()}
    made = schedule_info.read(book.id, found)
    object.__setattr__(made, "rule", book.rule)
    return made


def why(book: Ledger, instant: datetime, *, now: datetime | None = None, **fields: Any) -> Explanation:
    known = {name: fields.pop(name) for name in ("holder", "beats") if name in fields}
    lines = assemble(book.id, book.newest_first)
    return Question(stands(book, **fields), lines, instant, now or (book.next or NINE) - SECOND, **known).answer()


def minutely() -> Ledger:
    """Registered at 8:30; 9:00 fired and failed, 9:01 fired and runs, 9:02 to 9:04 were skipped, 9:05 is next."""
    book = Ledger().registered(NINE - 30 * MINUTE, NINE)
    book.fired(NINE).fired(NINE + MINUTE).ended(NINE, "failed")
    return book.skipped(NINE + 2 * MINUTE, NINE + 4 * MINUTE, 3)


def trimmed(book: Ledger, first: int) -> Ledger:
    del book.entries[:first]
    return book


# What was decided


def test_a_fired_tick_is_told_with_its_run() -> None:
    told = why(minutely(), NINE)
    assert (told.answer, [run.state for run in told.runs]) == ("enqueued", ["failed"])


def test_a_run_that_has_not_ended_is_open() -> None:
    assert [run.state for run in why(minutely(), NINE + MINUTE).runs] == ["open"]


def test_a_tick_that_became_two_jobs_is_told_with_both() -> None:
    book = minutely().fired(NINE, job="beat_report_again")
    assert {run.job_id for run in why(book, NINE).runs} == {"beat_report_again", book.job(NINE)}


@pytest.mark.parametrize("minute", [2, 3, 4])
def test_a_skipped_tick_is_told_with_its_stretch(minute: int) -> None:
    told = why(minutely(), NINE + minute * MINUTE)
    assert told.answer == "skipped"
    assert told.passed is not None
    assert (told.passed.first, told.passed.count) == (NINE + 2 * MINUTE, 3)


def test_what_is_no_tick_within_a_skipped_stretch_was_not_skipped() -> None:
    told = why(minutely(), NINE + 2 * MINUTE + SECOND)
    assert (told.answer, told.before, told.after) == ("not_a_tick", NINE + 2 * MINUTE, NINE + 3 * MINUTE)


def test_a_skipped_tick_that_was_made_up_for_is_told_with_both() -> None:
    book = minutely().fired(NINE + 3 * MINUTE, job="beat_report_b1", by="backfill", beat="ann", at=NINE + HOUR)
    told = why(book, NINE + 3 * MINUTE)
    assert (told.answer, told.passed and told.passed.count) == ("enqueued", 3)
    assert "; made up for later: enqueued by ann in a backfill" in sentence(told, zone("UTC"), NINE + HOUR)


def test_a_tick_that_a_pause_made_pass_is_told_with_who_paused_it_and_why() -> None:
    book = Ledger().registered(NINE - MINUTE, NINE)
    acts = [
        Acted("paused", NINE - SECOND, "ann", "the disk is full", NINE + HOUR),
        Acted("paused", NINE + SECOND, "bob", "a new disk comes", NINE + HOUR),
        Acted("paused", NINE + 3 * HOUR, "eve", "another pause"),
    ]
    book.entries += acts[:2]
    book.skipped(NINE, NINE + MINUTE, 2, reason="paused", at=NINE + 2 * HOUR)
    book.entries += acts[2:]
    told = why(book, NINE + MINUTE)
    assert told.pause is not None
    assert (told.pause.by, told.pause.reason) == ("bob", "a new disk comes")
    assert "paused: bob had paused the schedule until 10:00 UTC (a new disk comes)" in sentence(told, zone("UTC"), NINE)


def test_a_tick_in_the_place_of_which_somebody_asked_for_a_run_says_who() -> None:
    book = Ledger().registered(NINE - MINUTE, NINE)
    book.skipped(NINE, NINE, 1, reason="instead", behind="beat_report_m1", at=NINE - SECOND, beat="ann")
    told = sentence(why(book, NINE), zone("UTC"), NINE)
    assert told == "skipped by ann: instead: ann asked for a run in its place, at 08:59:59 UTC: beat_report_m1"


# What is to come


def test_a_tick_ahead_is_not_due() -> None:
    told = why(minutely(), NINE + HOUR)
    assert (told.answer, told.next_run) == ("not_due", NINE + 5 * MINUTE)


def test_a_due_tick_is_told_with_how_late_it_is_and_who_is_at_work() -> None:
    told = why(minutely(), NINE + 5 * MINUTE, now=NINE + 5 * MINUTE + 7 * SECOND, holder="web-1", beats=3)
    assert (told.answer, told.late, told.holder, told.beats) == ("due", 7.0, "web-1", 3)


def test_a_tick_that_is_due_only_later_is_not_due() -> None:
    late = clock.text(NINE + 5 * MINUTE + 30 * SECOND)
    told = why(minutely(), NINE + 5 * MINUTE, now=NINE + 5 * MINUTE + 7 * SECOND, due_at=late)
    assert told.answer == "not_due"


def test_a_tick_behind_the_one_that_is_due_is_due_too() -> None:
    told = why(minutely(), NINE + 6 * MINUTE, now=NINE + 7 * MINUTE)
    assert (told.answer, told.late) == ("due", 60.0)


@pytest.mark.parametrize(
    ("until", "told"),
    [("", "until an operator resumes it"), (clock.text(NINE + HOUR), "until Mon 2026-11-16 10:00 UTC")],
)
def test_a_tick_that_a_pause_holds_says_who_paused_it_until_when_and_why(until: str, told: str) -> None:
    pause = {"state": "paused", "paused_by": "ann", "pause_until": until, "pause_reason": "disk", "paused_at": ""}
    held = why(minutely(), NINE + 5 * MINUTE, now=NINE + 6 * MINUTE, **pause)
    assert held.answer == "held"
    passes = "when that ends, the tick passes without a job"
    assert sentence(held, zone("UTC"), NINE) == f"not decided: the schedule is paused by ann, {told} (disk); {passes}"


def test_a_tick_that_somebody_has_moved_says_who_and_where_to() -> None:
    tick, due = NINE + 5 * MINUTE, NINE + 5 * MINUTE + 30 * SECOND
    moved = {"due_at": clock.text(due), "moved": clock.text(tick), "moved_by": "ann"}
    told = why(minutely(), tick, now=tick, **moved)
    assert (told.answer, told.moved_by) == ("not_due", "ann")
    said = sentence(told, zone("UTC"), tick)
    assert said == "not due yet: ann has moved it to 09:05:30 UTC, in 30 s"
    assert why(minutely(), tick + MINUTE, now=tick, **moved).moved_by == ""


@pytest.mark.parametrize("state", ["paused", "disabled", "retired", "broken"])
def test_a_schedule_that_rests_decides_nothing(state: str) -> None:
    told = why(minutely(), NINE + 5 * MINUTE, now=NINE + HOUR, state=state)
    assert (told.answer, told.state) == ("held", state)


def test_a_schedule_that_has_ended_has_no_ticks_after_its_end() -> None:
    rule = {"cron": "* * * * *", "tz": "UTC", "end": clock.text(NINE)}
    book = Ledger(rule=rule).registered(NINE - HOUR, NINE).fired(NINE)
    book.next = None
    told = why(book, NINE + MINUTE, now=NINE + HOUR, state="finished")
    assert (told.answer, told.before, told.after) == ("not_a_tick", NINE, None)


# What is no tick


def test_what_is_no_tick_is_told_with_the_nearest() -> None:
    told = why(minutely(), NINE + 30 * SECOND)
    assert (told.answer, told.before, told.after) == ("not_a_tick", NINE, NINE + MINUTE)


def test_the_nearest_may_lie_ahead() -> None:
    told = why(minutely(), NINE + 4 * MINUTE + SECOND)
    assert (told.before, told.after) == (NINE + 4 * MINUTE, NINE + 5 * MINUTE)


def test_half_a_second_after_a_tick_is_no_tick() -> None:
    assert why(minutely(), NINE + SECOND / 2).answer == "not_a_tick"


def test_before_the_first_tick_there_is_none() -> None:
    told = why(minutely(), NINE - 10 * MINUTE)
    assert (told.answer, told.before, told.after) == ("not_a_tick", None, NINE)


def test_a_tick_over_which_a_change_moved_is_told_with_the_change() -> None:
    book = minutely().changed(NINE + 4 * MINUTE + 30 * SECOND, HOURLY, NINE + HOUR)
    told = why(book, NINE + 6 * MINUTE, now=NINE + 2 * HOUR)
    assert (told.answer, told.before, told.after) == ("not_a_tick", NINE + 4 * MINUTE, NINE + HOUR)
    assert told.change is not None
    assert (told.change.before, told.change.next) == (NINE + 5 * MINUTE, NINE + HOUR)


def test_each_rule_decides_in_its_own_time() -> None:
    book = minutely().changed(
        NINE + 4 * MINUTE + 30 * SECOND, {"cron": "*/10 * * * *", "tz": "UTC"}, NINE + 10 * MINUTE
    )
    book.fired(NINE + 10 * MINUTE, NINE + 20 * MINUTE)
    assert why(book, NINE + 3 * MINUTE).answer == "skipped"
    assert why(book, NINE + 11 * MINUTE).answer == "not_a_tick"
    assert why(book, NINE + 20 * MINUTE).answer == "not_due"


def test_a_due_tick_that_a_change_kept_is_a_tick_though_the_new_rule_has_none_then() -> None:
    book = minutely().changed(NINE + 5 * MINUTE + SECOND, HOURLY, NINE + 5 * MINUTE, "updated")
    told = why(book, NINE + 5 * MINUTE, now=NINE + 5 * MINUTE + 2 * SECOND)
    assert told.answer == "due"
    assert why(book, NINE + 6 * MINUTE, now=NINE + 7 * MINUTE).after == NINE + HOUR


def test_a_fixed_time_that_the_clock_skips_ticks_right_after_the_jump() -> None:
    jump = datetime(2026, 3, 29, 1, tzinfo=UTC)
    book = Ledger(rule={"cron": "30 2 * * *", "tz": "Europe/Berlin"})
    book.registered(jump - 20 * HOUR, jump).fired(jump, jump + 23.5 * HOUR)
    assert why(book, jump).answer == "enqueued"
    assert why(book, jump + HOUR / 2).answer == "not_a_tick"


# What nobody knows


def test_before_it_was_registered_there_was_no_schedule() -> None:
    told = why(minutely(), NINE - HOUR)
    assert (told.answer, told.begins) == ("not_registered", NINE - 30 * MINUTE)


def test_a_schedule_older_than_its_ledger_has_a_birthday_all_the_same() -> None:
    told = why(trimmed(minutely(), 2), NINE - HOUR, created_at=clock.text(NINE - HOUR / 2))
    assert (told.answer, told.begins) == ("not_registered", NINE - HOUR / 2)


def test_what_was_trimmed_is_not_claimed() -> None:
    told = why(trimmed(minutely(), 2), NINE - HOUR, created_at=clock.text(NINE - 9 * HOUR))
    assert (told.answer, told.begins) == ("trimmed", NINE + MINUTE)


def test_a_run_whose_verdict_was_trimmed_is_told_all_the_same() -> None:
    told = why(trimmed(minutely(), 2), NINE)
    assert (told.answer, told.runs[0].state, told.runs[0].enqueued_at) == ("enqueued", "failed", None)


def test_after_a_trim_the_rule_of_then_decides() -> None:
    book = trimmed(minutely(), 2)
    book.changed(NINE + 4 * MINUTE + 30 * SECOND, HOURLY, NINE + HOUR)
    assert why(book, NINE + 90 * SECOND, now=NINE + HOUR).before == NINE + MINUTE


def test_an_empty_ledger_claims_nothing_but_what_is_to_come() -> None:
    book = Ledger()
    book.next = NINE
    assert why(book, NINE - MINUTE).answer == "trimmed"
    assert why(book, NINE + MINUTE).answer == "not_due"


def test_a_schedule_without_a_ledger_and_without_a_next_tick_claims_nothing() -> None:
    told = why(Ledger(), NINE, state="broken")
    assert (told.answer, told.begins) == ("trimmed", None)


def test_a_tick_without_a_verdict_is_missing() -> None:
    book = minutely()
    del book.entries[2]  # 9:01
    assert why(book, NINE + MINUTE).answer == "missing"


def test_a_tick_without_a_verdict_is_missing_also_when_the_schedule_has_finished() -> None:
    book = minutely()
    del book.entries[2]
    book.next = None
    assert why(book, NINE + MINUTE, state="finished").answer == "missing"


def test_a_rule_that_nobody_can_read_is_said_to_be_unreadable() -> None:
    book = Ledger(rule={"cron": "nonsense", "tz": "UTC"}).registered(NINE - HOUR, NINE)
    book.fired(NINE, NINE + MINUTE)
    assert why(book, NINE).answer == "enqueued"
    assert why(book, NINE + MINUTE / 2).answer == "unreadable"


@pytest.mark.parametrize(
    "rule", [{}, {"cron": 7, "tz": 8}, {"every": "1s", "start": "x"}, {"cron": "* * * * *", "tz": []}]
)
def test_any_rule_can_be_asked_about(rule: dict[str, Any]) -> None:
    book = Ledger(rule=rule).registered(NINE - HOUR, NINE)
    assert why(book, NINE).answer in {"due", "not_due"}


def test_the_ends_of_the_calendar_can_be_asked_about() -> None:
    for instant in (datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)):
        assert why(minutely(), instant).answer in {"not_registered", "not_a_tick", "not_due"}


# Whatever is asked, the ticks of a schedule are those of its rules


@given(
    seconds=st.integers(-5000, 20_000), moved=st.integers(1, 3000), rule=st.sampled_from(["*/7 * * * *", "5 * * * *"])
)
def test_the_nearest_ticks_are_ticks_and_there_is_none_between(seconds: int, moved: int, rule: str) -> None:
    first, second = ticking({"cron": "*/5 * * * *", "tz": "UTC"}), ticking({"cron": rule, "tz": "UTC"})
    at = NINE + moved * SECOND
    before = first.after(at)
    following = second.after(at)
    assert before
    assert following
    book = Ledger(rule={"cron": "*/5 * * * *", "tz": "UTC"}).registered(NINE - SECOND, NINE)
    book.next = before
    book.changed(at, {"cron": rule, "tz": "UTC"}, following)
    known = eras(stands(book), assemble(book.id, book.newest_first))
    ticks = sorted({*first.ticks(NINE, before), *second.ticks(following, NINE + 30_000 * SECOND)})
    instant = NINE + seconds * SECOND
    assert any(era.ticks_at(instant) for era in known) == (instant in ticks)
    assert max((t for era in known if (t := era.before(instant))), default=None) == max(
        (tick for tick in ticks if tick < instant), default=None
    )
    assert min((t for era in known if (t := era.after(instant))), default=None) == min(
        tick for tick in ticks if tick > instant
    )


# Whatever a ledger holds, it can be asked about


@given(st.lists(any_entries, max_size=12), st.datetimes(timezones=st.just(UTC)), st.booleans())
def test_any_ledger_can_be_asked_about_any_instant(found: list[Entry], instant: datetime, near: bool) -> None:  # noqa: FBT001
    lines = assemble("report", found)
    asked = found[0].at if near and found else instant
    active = {b"state": b"active", b"next_run": b"2026-11-16T09:00:00Z", b"due_at": b"2026-11-16T09:00:40Z"}
    for hash_ in ({}, active, {**active, b"definition": POLICED}, {b"state": b"finished", b"definition": POLICED}):
        known = schedule_info.read("report", hash_)
        for waiting in ((), (asked,)):
            told = Question(known, lines, asked, NINE, waiting=waiting).answer()
            assert sentence(told, zone("America/New_York"), NINE)
    for line in lines:
        assert decisions.story(line, zone("America/New_York"), NINE)
        assert isinstance(decisions.note(line, zone("Asia/Kolkata")), str)
        json.dumps(decisions.plain(line))
