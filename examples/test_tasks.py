"""Test the schedules of tasks.py without Redis and without waiting: `pytest examples/test_tasks.py`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from beat import default_registry
from beat.testing import ManualBeat, assert_fires, assert_silent, simulate
from examples import tasks  # to import it is to declare its schedules


def test_a_scheduled_function_is_still_a_function() -> None:
    """Call the function directly."""
    assert tasks.report("weekly") == "sent the weekly report"


def test_the_report_is_sent_on_working_days_in_new_york() -> None:
    """Times as text are in the schedule's zone: the clocks went back on 1 November, and 09:00 stayed 09:00."""
    days = ["2026-10-30", "2026-11-02", "2026-11-03"]
    assert_fires("report", between=("2026-10-30", "2026-11-04"), at=[f"{day}T09:00" for day in days])
    assert_silent("report", between=("2026-10-31", "2026-11-02"))


def test_a_year_has_52_backups() -> None:
    """Simulate a year of all schedules in a moment."""
    year = simulate(default_registry, datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    assert sum(tick.schedule_id == "backup" for tick in year) == 52


def test_the_report_is_of_the_daily_kind() -> None:
    """Run a whole scheduler, whose clock jumps from tick to tick."""
    beat = ManualBeat(datetime(2026, 11, 16, 13, 50, tzinfo=UTC))
    fired = beat.tick_until("15m")
    assert [(each.schedule_id, each.queue) for each in fired] == [("poll", "high"), ("report", "reports")]
    assert beat.run_jobs() == [0, "sent the daily report"]


def test_after_an_hour_without_a_beat_the_mail_is_polled_once() -> None:
    """Fire only the latest of the missed ticks."""
    beat = ManualBeat(datetime(2026, 11, 15, 12, 1, tzinfo=UTC))
    beat.clock.advance("1h")
    assert [each.late for each in beat.tick()] == [timedelta(minutes=1)]
    assert [each.count for each in beat.skipped] == [3]
