"""Each rule of `beat check`, with what it warns about and the near neighbours that it leaves alone."""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from beat.policies.lint import lint
from beat.schedule.schedule import Schedule
from beat.schedule.source_location import Place
from beat.timing.cron import Cron
from beat.timing.interval import Every

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
DAY = timedelta(days=1)
RIGHT_AFTER = "when the clock jumps forward: it runs right after the jump"
NOT_AT_ALL = (
    "when the clock jumps forward: it does not run; "
    "with neither minute nor hour beginning with '*' it would, right after the jump"
)
BOTH_TIMES = "it runs both times; with neither minute nor hour beginning with '*' it would run once"


def schedule(timing: Cron | Every, name: str = "job", **options: Any) -> Schedule:
    return Schedule(id=name, func="app.tasks.job", timing=timing, declared=Place("app/tasks.py", 7, "app"), **options)


cron, six = Cron, functools.partial(Cron, seconds=True)


def said(*schedules: Schedule) -> list[tuple[str, str, str]]:
    return [(finding.level, finding.schedule.id, finding.message) for finding in lint(schedules, NOW)]


def warnings(timing: Cron | Every, **options: Any) -> list[str]:
    found = lint([schedule(timing, **options)], NOW)
    assert {finding.level for finding in found} <= {"warning"}
    return [finding.message for finding in found]


WARNED = [
    # two days
    (
        cron("0 9 13 * fri"),
        (
            "day-of-month '13' and day-of-week '5' are both set: it runs when either matches, as in cron; "
            "set one to '*' if both must match, and let the job look at the other"
        ),
    ),
    (
        cron("0 9 1-31 * fri"),
        (
            "day-of-month '1-31' and day-of-week '5' are both set and one of them is every day, "
            "so that it runs every day: write '*' for that one"
        ),
    ),
    (
        cron("0 9 13 * 0-6"),
        (
            "day-of-month '13' and day-of-week '0-6' are both set and one of them is every day, "
            "so that it runs every day: write '*' for that one"
        ),
    ),
    # steps
    (cron("*/7 * * * *"), "minute '*/7' is uneven: from 56 on to 0 it takes 4, not 7"),
    (cron("*/40 * * * *"), "minute '*/40' is uneven: from 40 on to 0 it takes 20, not 40"),
    (cron("*/60 * * * *"), "minute '*/60' is 0 alone: write '0'"),
    (cron("0 */5 * * *"), "hour '*/5' is uneven: from 20 on to 0 it takes 4, not 5"),
    (cron("0 9 1 */5 *"), "month '*/5' is uneven: from 11 on to 1 it takes 2, not 5"),
    (cron("0 9 * * */2"), "day-of-week '*/2' is uneven: from 6 on to 0 it takes 1, not 2"),
    (cron("0 9 */2 * *"), "day-of-month '*/2' begins anew on the 1st of each month, so steps differ at its end"),
    (cron("0 9 */31 * *"), "day-of-month '*/31' is 1 alone: write '1'"),
    (six("*/7 * * * * *"), "second '*/7' is uneven: from 56 on to 0 it takes 4, not 7"),
    # more often than meant
    (cron("* 9 * * *"), "it runs 60 times, from 09:00 to 09:59; for once an hour write minute '0'"),
    (cron("0-59 9 * * mon"), "it runs 60 times, from 09:00 to 09:59; for once an hour write minute '0'"),
    (six("*/30 * 9 * * *"), "it runs 120 times, from 09:00 to 09:59; for once an hour write minute '0'"),
    (six("* 5 9 * * *"), "it runs 60 times in the minute :05; for once a minute write second '0'"),
    # months that are too short
    (cron("0 9 31 * *"), "months without a day 31 are left out (feb, apr, jun, sep, nov)"),
    (cron("0 9 30,31 * *"), "months without a day 30 are left out (feb)"),
    (cron("0 9 29 * *"), "months without a day 29 are left out (feb, but not in leap years)"),
    (cron("0 9 31 1-4 *"), "months without a day 31 are left out (feb, apr)"),
    (cron("0 9 29 2 *"), "the 29th of February comes only in leap years"),
    # changes of the clocks
    (cron("30 2 * * *", "America/New_York"), f"02:30 does not exist in America/New_York on 2026-03-08, {RIGHT_AFTER}"),
    (cron("*/30 2 * * *", "America/New_York"), f"02:00 does not exist in America/New_York on 2026-03-08, {NOT_AT_ALL}"),
    (cron("*/30 1 * * *", "America/New_York"), f"01:00 comes twice in America/New_York on 2026-11-01: {BOTH_TIMES}"),
    (
        cron("15 2 * * *", "Australia/Lord_Howe"),
        f"02:15 does not exist in Australia/Lord_Howe on 2026-10-04, {RIGHT_AFTER}",
    ),
    (
        cron("30 2 * * *", "Africa/Casablanca"),
        f"02:30 does not exist in Africa/Casablanca on 2026-03-22, {RIGHT_AFTER}",
    ),
    # abbreviations that are zones
    (
        cron("0 9 * * *", "EST"),
        (
            "tz='EST' is UTC-05:00 all year: write 'America/New_York', whose clock changes in summer, "
            "or 'America/Panama', whose clock does not"
        ),
    ),
    (
        cron("0 9 * * *", "HST"),
        "tz='HST' is UTC-10:00 all year: write 'Pacific/Honolulu', whose clock does not change either",
    ),
    # intervals of days
    (
        Every("1d"),
        (
            "every='1d' is counted from 1970-01-01T00:00:00Z, so that it next runs at 2026-01-16T00:00:00Z; "
            "say start= to choose the time"
        ),
    ),
    (
        Every("2w"),
        (
            "every='2w' is counted from 1970-01-01T00:00:00Z, so that it next runs at 2026-01-29T00:00:00Z; "
            "say start= to choose the time"
        ),
    ),
]
LEFT_ALONE = [
    cron("0 9 * * *", "GMT"),
    cron("0 9 * * *", "Etc/GMT+5"),
    # two days
    cron("0 9 13 * *"),
    cron("0 9 * * fri"),
    cron("0 9 * * mon-fri"),
    cron("0 9 * * 0-6"),
    cron("0 9 1-31 * *"),
    # steps
    cron("*/15 * * * *"),
    cron("*/30 * * * *"),
    cron("0-59/7 * * * *"),  # whoever writes the range has seen it
    cron("3-59/7 * * * *"),
    cron("0 */6 * * *"),
    cron("0 9 1 */3 *"),
    cron("0 9 1-30/2 * *"),
    six("*/20 * * * * *"),
    # more often than meant
    cron("0 9 * * *"),
    cron("* 9-17 * * *"),
    cron("*/2 9 * * *"),
    cron("* * * * *"),
    six("0 0 9 * * *"),
    six("* * * * * *"),
    # months that are too short
    cron("0 9 28 * *"),
    cron("0 9 28-31 * *"),
    cron("0 9 30 1,3 *"),
    cron("0 9 31 1,3,5 *"),
    # changes of the clocks
    cron("30 2 * * *"),
    cron("30 2 * * *", "Asia/Tokyo"),
    cron("30 3 * * *", "America/New_York"),
    cron("30 1 * * *", "America/New_York"),  # a fixed time in the hour that is repeated: once, as anybody expects
    cron("30 2 * * mon", "America/New_York"),  # the clocks change on Sundays
    cron("*/15 * * * *", "America/New_York"),
    cron("0 * * * *", "America/New_York"),
    # intervals of days
    Every("23h"),
    Every("1d", phase="9h"),
    Every("1d", start=datetime(2026, 1, 1, 9, tzinfo=UTC)),
]


@pytest.mark.parametrize(("timing", "words"), WARNED, ids=lambda value: str(value)[:40])
def test_what_may_surprise_is_said(timing: Cron | Every, words: str) -> None:
    assert warnings(timing) == [words]


@pytest.mark.parametrize("timing", LEFT_ALONE, ids=str)
def test_what_cannot_surprise_is_left_alone(timing: Cron | Every) -> None:
    assert warnings(timing) == []


@pytest.mark.parametrize(("day", "weekday"), [("*/2", "5"), ("1-7", "*/5")])
def test_two_days_of_which_one_begins_with_a_star_must_both_match(day: str, weekday: str) -> None:
    words = f"day-of-month {day!r} and day-of-week {weekday!r} must both match, because one begins with '*'"
    assert words in warnings(cron(f"0 9 {day} * {weekday}"))


def test_a_day_that_some_months_lack_is_no_matter_when_a_weekday_is_enough() -> None:
    (only,) = warnings(cron("0 9 31 * fri"))
    assert "it runs when either matches" in only


def test_several_rules_speak_about_one_schedule() -> None:
    assert len(warnings(cron("*/7 2 8 * fri", "America/New_York"))) == 3


def test_an_hour_that_is_both_skipped_and_repeated_is_warned_of_twice() -> None:
    assert warnings(cron("*/30 2 * * *", "Europe/Paris")) == [
        f"02:00 does not exist in Europe/Paris on 2026-03-29, {NOT_AT_ALL}",
        f"02:00 comes twice in Europe/Paris on 2026-10-25: {BOTH_TIMES}",
    ]


@pytest.mark.parametrize(
    ("bounds", "count"),
    [
        ({}, 1),
        ({"end": datetime(2026, 3, 9, tzinfo=UTC)}, 1),
        ({"end": datetime(2026, 3, 8, tzinfo=UTC)}, 0),
        ({"start": datetime(2026, 3, 8, tzinfo=UTC)}, 1),
        ({"start": datetime(2026, 3, 9, tzinfo=UTC), "end": datetime(2026, 12, 1, tzinfo=UTC)}, 0),
    ],
)
def test_a_change_of_the_clocks_before_the_start_or_after_the_end_is_nobodys_business(
    bounds: dict[str, Any], count: int
) -> None:
    assert len(warnings(cron("30 2 * * *", "America/New_York"), **bounds)) == count


# Schedules that never run


@pytest.mark.parametrize(
    ("timing", "bounds", "message"),
    [
        (
            cron("0 9 * * *"),
            {"end": NOW - DAY},
            "its end 2026-01-14T12:00:00Z is past: it will not run again; remove it, or move its end",
        ),
        (
            cron("0 9 * * *"),
            {"end": NOW},
            "its end 2026-01-15T12:00:00Z is past: it will not run again; remove it, or move its end",
        ),
        (
            Every("1h"),
            {"end": NOW - DAY},
            "its end 2026-01-14T12:00:00Z is past: it will not run again; remove it, or move its end",
        ),
        (
            cron("0 9 * * *"),
            {"end": NOW + timedelta(hours=20)},
            "no tick lies between 2026-01-15T12:00:00Z and its end 2026-01-16T08:00:00Z",
        ),
        (
            cron("0 9 1 2 *"),
            {"start": datetime(2026, 2, 2, tzinfo=UTC), "end": datetime(2026, 12, 1, tzinfo=UTC)},
            "no tick lies between 2026-02-02T00:00:00Z and its end 2026-12-01T00:00:00Z",
        ),
        (
            cron("0 9 * * *"),
            {"start": datetime(9995, 1, 1, tzinfo=UTC)},
            "no tick lies after 9995-01-01T00:00:00Z: there are no ticks before the year 1800 or after 9990",
        ),
    ],
)
def test_a_schedule_that_never_runs_is_a_problem_and_the_only_thing_said(
    timing: Cron | Every, bounds: dict[str, Any], message: str
) -> None:
    assert said(schedule(timing, **bounds)) == [("problem", "job", message)]


@pytest.mark.parametrize(
    "bounds",
    [
        {"end": NOW + timedelta(hours=21)},  # 09:00 exactly: the end is included
        {"end": NOW + DAY},
        {"start": NOW + DAY},
        {"start": NOW - DAY},
    ],
)
def test_a_schedule_with_a_tick_to_come_is_no_problem(bounds: dict[str, Any]) -> None:
    assert said(schedule(cron("0 9 * * *"), **bounds)) == []


# Policies


ROOM = "each goes after the one before it, so that several may come at once"


@pytest.mark.parametrize(
    ("timing", "options", "words"),
    [
        (
            Every("1m"),
            {"jitter": "90s"},
            f"jitter='1m30s' is longer than the 1m between its ticks: {ROOM}",
        ),
        (
            cron("0,5 * * * *"),
            {"jitter": "6m"},
            f"jitter='6m' is longer than the 5m between its ticks: {ROOM}",
        ),
        (
            Every("1m"),
            {"catchup_window": "30s", "misfire_after": "5m"},
            (
                "catchup_window='30s' is shorter than misfire_after='5m': "
                "a tick between the two is not missed yet, and is dropped all the same"
            ),
        ),
        (
            Every("1m"),
            {"overlap": "skip", "job_timeout": -1},
            (
                "with overlap='skip' and job_timeout=-1 a run that hangs has every later tick skipped: "
                "say how long a run may take"
            ),
        ),
        (
            Every("1m"),
            {"overlap": "wait", "job_timeout": -1},
            (
                "with overlap='wait' and job_timeout=-1 a run that hangs has every later tick kept waiting or skipped: "
                "say how long a run may take"
            ),
        ),
        (
            Every("1h"),
            {"exclude": ["2025-12-25", "2025-12-31..2026-01-14"]},
            "the last day of its exclude, 2026-01-14, is past: it rests no more",
        ),
    ],
    ids=str,
)
def test_policies_that_may_surprise_are_said(timing: Cron | Every, options: dict[str, Any], words: str) -> None:
    assert warnings(timing, **options) == [words]


@pytest.mark.parametrize(
    "options",
    [
        {"jitter": "1m"},
        {"jitter": "59s", "misfire": "all"},
        {"catchup_window": "5m", "misfire_after": "5m"},
        {"catchup_window": "30s"},
        {"misfire_after": "5m"},
        {"overlap": "skip"},
        {"overlap": "wait", "job_timeout": "5m"},
        {"overlap": "replace", "job_timeout": -1},
        {"job_timeout": -1},
        {"exclude": ["2025-12-25", "2026-01-15"]},
        {"exclude": ["2025-12-31..2026-01-15"]},
        {"exclude": ["2025-12-25", "tests.support.declared.is_monday"]},
    ],
    ids=str,
)
def test_policies_that_cannot_surprise_are_left_alone(options: dict[str, Any]) -> None:
    assert warnings(Every("1m"), **options) == []


def test_the_day_of_a_zone_decides_whether_a_day_is_past() -> None:
    late = schedule(cron("0 * * * *", "Pacific/Kiritimati"), exclude=["2026-01-15"])
    assert [finding.message for finding in lint([late], NOW)] == [
        "the last day of its exclude, 2026-01-15, is past: it rests no more"
    ]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nowhere.at.all", "cannot be called: No module named 'nowhere'"),
        ("tests.support.declared.missing", "cannot be called: there is no such function"),
        ("tests.support.declared.__doc__", "cannot be called: there is no such function"),
        ("broken_calendar.is_holiday", "cannot be imported: ZeroDivisionError: division by zero"),
    ],
)
def test_a_function_of_days_of_rest_that_cannot_be_imported_is_a_problem(
    path: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_calendar.py").write_text("1 / 0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert said(schedule(cron("0 9 * * *"), exclude=[path])) == [
        ("problem", "job", f"exclude {path!r} {words}: no tick could be decided")
    ]


def test_a_function_of_days_of_rest_is_imported_and_not_called() -> None:
    assert said(schedule(cron("0 9 * * *"), exclude=["tests.support.declared.report"])) == []


# Twins


def test_two_schedules_that_make_the_same_call_are_twins() -> None:
    assert said(schedule(cron("0 9 * * *"), "daily"), schedule(cron("30 17 * * fri"), "weekly")) == [
        (
            "warning",
            "weekly",
            "it calls app.tasks.job with the same arguments as 'daily' (app/tasks.py:7): are both meant?",
        )
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (schedule(cron("0 9 * * *"), "a", args=[1]), schedule(cron("0 9 * * *"), "b", args=[2])),
        (schedule(cron("0 9 * * *"), "a", kwargs={"x": 1}), schedule(cron("0 9 * * *"), "b")),
        (schedule(cron("0 9 * * *"), "new"), schedule(cron("0 9 * * *"), "old", enabled=False)),
        (schedule(cron("0 9 * * *"), "old", enabled=False), schedule(cron("0 9 * * *"), "new")),
    ],
    ids=lambda value: value.id,
)
def test_schedules_that_make_different_calls_or_are_disabled_are_no_twins(one: Schedule, other: Schedule) -> None:
    assert said(one, other) == []


def test_another_function_is_no_twin() -> None:
    other = Schedule(id="other", func="app.tasks.other", timing=cron("0 9 * * *"))
    assert said(schedule(cron("0 9 * * *")), other) == []


def test_of_three_twins_the_second_and_the_third_are_told() -> None:
    three = [schedule(cron("0 9 * * *"), name) for name in ("a", "b", "c")]
    assert [name for _, name, _ in said(*three)] == ["b", "c"]


def test_findings_come_in_the_order_of_the_schedules() -> None:
    past = schedule(cron("0 9 * * *"), "past", end=NOW - DAY)
    found = said(schedule(cron("*/7 1 * * *"), "first"), past, schedule(Every("1d"), "last", args=[1]))
    assert [(level, name) for level, name, _ in found] == [
        ("warning", "first"),
        ("problem", "past"),
        ("warning", "last"),
    ]
