"""The drawings of the schedule page: a calendar, the way of a run, and how long runs took."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest

from beat.client.describe import tick_notes
from beat.history.history import Fired, Passed, Waits
from beat.schedule.schedule import Schedule
from beat.timing.cron import Cron
from beat.timing.zones import zone
from beat.web.charts import calendar, durations, run_bar, shapes

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
TODAY = date(2026, 11, 16)
EVIL = "<script>\"'&\u202e"
RUN = Fired(
    schedule_id="x", tick=NINE, job_id="j", at=NINE, beat="b", triggered_by="scheduler", late_ms=4, state="succeeded",
    enqueued_at=NINE + SECOND, started_at=NINE + 3 * SECOND, ended_at=NINE + 9 * SECOND, duration=6.0, closed_at=NINE,
)  # fmt: skip
OPEN = replace(RUN, state="started", ended_at=None, duration=None, closed_at=None)


def titles(drawing: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(drawing).iter("title")]  # noqa: S314 (ours, and that it is XML)


# The calendar


def test_ticks_belong_to_the_day_of_the_schedules_zone() -> None:
    late = replace(RUN, tick=datetime(2026, 11, 16, 23, 30, tzinfo=UTC))
    assert list(calendar.by_day([late], zone("UTC"))) == [date(2026, 11, 16)]
    assert list(calendar.by_day([late], zone("Asia/Tokyo"))) == [date(2026, 11, 17)]


def test_what_became_of_a_day_is_counted() -> None:
    lines = [RUN, replace(RUN, state="failed"), OPEN, replace(RUN, tick=None, at=NINE - DAY)]
    skip = Passed(schedule_id="x", first=NINE, last=NINE, count=7, reason="misfire", at=NINE, beat="b")
    wait = Waits(schedule_id="x", tick=NINE, job_id="j", behind="", at=NINE, beat="b")
    found = calendar.by_day([*lines, skip, wait], zone("UTC"))
    assert found[TODAY] == {"succeeded": 1, "failed": 1, "open": 2, "skipped": 7}
    assert found[TODAY - DAY] == {"succeeded": 1}
    assert calendar.told(found[TODAY]) == "1 failed, 7 skipped, 2 open, 1 succeeded"


def test_a_stretch_of_days_is_on_each_of_them_and_never_on_a_million() -> None:
    skip = Passed(schedule_id="x", first=NINE - 2 * DAY, last=NINE, count=9000, reason="misfire", at=NINE, beat="b")
    assert sorted(calendar.by_day([skip], zone("UTC"))) == [TODAY - 2 * DAY, TODAY - DAY, TODAY]
    assert calendar.is_of(skip, TODAY - DAY, zone("UTC"))
    ages = replace(skip, first=datetime(1, 1, 1, tzinfo=UTC))
    assert len(calendar.by_day([ages], zone("UTC"))) <= 1001


@pytest.mark.parametrize("today", [TODAY + n * DAY for n in range(0, 60, 7)], ids=str)
def test_a_calendar_has_ninety_days_and_says_what_each_was(today: date) -> None:
    found = {today: Counter(succeeded=3, failed=1), today - 10 * DAY: Counter(skipped=2)}
    reach = calendar.Reach(today - 20 * DAY, "not known")
    told = titles(calendar.drawn(found, today, reach, lambda day: f"?day={day}&x=<"))
    assert len(told) == 90
    assert told[-1] == f"{today:%a %Y-%m-%d}: 1 failed, 3 succeeded"
    assert sum(each.endswith(": nothing") for each in told) == 19
    assert sum(each.endswith(": not known") for each in told) == 69


def test_a_day_is_filled_by_its_worst_outcome_and_links_to_its_lines() -> None:
    for worst in ("failed", "lost", "stopped", "skipped", "open"):
        found = {TODAY: Counter({"succeeded": 100, worst: 1})}
        drawing = calendar.drawn(found, TODAY, calendar.Reach(TODAY, ""), lambda day: f"?day={day}")
        assert f'fill="url(#p-{worst})"' in drawing
        assert drawing.count("<a ") == 1
        assert 'href="?day=2026-11-16"' in drawing


def test_the_more_ran_the_stronger_is_a_day() -> None:
    found = {TODAY - n * DAY: Counter(succeeded=10 * n + 1) for n in range(8)}
    drawing = calendar.drawn(found, TODAY, calendar.Reach(None, ""), str)
    levels = [float(each) for each in re.findall(r'fill-opacity="([\d.]+)" class="f-succeeded"', drawing)]
    assert levels == sorted(levels, reverse=True)
    assert len(set(levels)) == 4


def test_nothing_at_all_is_a_calendar_too() -> None:
    told = titles(calendar.drawn({}, TODAY, calendar.Reach(None, EVIL), str))
    assert told[0].endswith(EVIL)


# The way of a run


def test_a_bar_has_a_piece_for_each_step_as_long_as_it_took() -> None:
    drawing = run_bar.drawn(RUN, NINE, width=90)
    widths = [float(each) for each in re.findall(r'<rect [^>]*width="([\d.]+)"', drawing)]
    assert len(widths) == 3
    assert sum(widths) == pytest.approx(90, abs=0.1)
    assert widths[0] < widths[1] < widths[2]
    assert "1 s from its tick until it was enqueued, 2 s in the queue, ran 6 s, succeeded" in drawing


def test_a_run_on_its_way_is_as_long_as_it_has_come() -> None:
    now = NINE + 63 * SECOND
    assert run_bar.told(OPEN, now).endswith("has been running 1m, started")
    queued = replace(OPEN, state="queued", started_at=None)
    assert run_bar.told(queued, now) == "1 s from its tick until it was enqueued, 1m2s in the queue, queued"
    assert 'fill="url(#p-open)"' in run_bar.drawn(OPEN, now)


def test_a_run_that_somebody_asked_for_is_not_late() -> None:
    assert [each.name for each in run_bar.steps(replace(RUN, triggered_by="manual", tick=None), NINE)] == [
        "queue",
        "run",
    ]
    assert [each.name for each in run_bar.steps(replace(RUN, triggered_by="backfill"), NINE)] == ["queue", "run"]


def test_where_no_time_is_known_there_is_no_bar() -> None:
    bare = Fired(schedule_id="x", tick=None, job_id="j", at=NINE, beat="b", state="lost", closed_at=NINE)
    assert run_bar.drawn(bare, NINE) == ""


def test_clocks_that_disagree_make_no_bar_shorter_than_nothing() -> None:
    odd = replace(RUN, enqueued_at=NINE - DAY, started_at=NINE - 2 * DAY, duration=-5.0)
    assert not re.search(r'width="-', run_bar.drawn(odd, NINE))


def test_whatever_a_state_is_called_it_is_drawn_as_one_that_there_is() -> None:
    evil = replace(RUN, state=EVIL)
    for drawing in (run_bar.drawn(evil, NINE), durations.drawn([evil, evil], zone("UTC"))):
        assert "<script" not in drawing
        assert any(EVIL in each for each in titles(drawing)) or EVIL in ET.fromstring(drawing).attrib["aria-label"]  # noqa: S314
    assert shapes.outcome(EVIL) == "open"


# How long runs took


def test_the_last_hundred_runs_have_a_bar_each_oldest_first() -> None:
    runs = [replace(RUN, tick=NINE - n * DAY, duration=float(n)) for n in range(150)]
    told = titles(durations.drawn([*runs, OPEN], zone("UTC")))
    assert len(told) == 100
    assert told[-1] == "2026-11-16 09:00: succeeded after 0 ms"
    assert told[0] == "2026-08-09 09:00: succeeded after 1m39s"
    assert durations.drawn(runs[:1], zone("UTC")) == ""


# Notes of DST


def test_ticks_have_notes_where_the_clocks_jump() -> None:
    nightly = Schedule(id="x", func="a.b", timing=Cron("30 2 * * *", "Europe/Berlin"))
    days_around = [datetime(2026, 3, 28, 1, 30, tzinfo=UTC), datetime(2026, 3, 29, 1, tzinfo=UTC)]
    first, second = tick_notes.notes(nightly, days_around)
    assert first == ""
    assert "02:30" in second
