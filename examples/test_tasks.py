"""How the schedules of tasks.py are tested: `pytest examples/test_tasks.py`. No Redis is needed, and no waiting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from beat import default_registry
from beat.testing import ManualBeat, assert_fires, assert_silent, simulate
from examples import tasks  # to import it is to declare its schedules


def test_a_scheduled_function_is_still_a_function() -> None:
    """Call it."""
    assert tasks.report("weekly") == "sent the weekly report"


def test_the_report_is_sent_on_working_days_in_new_york() -> None:
    """Text is read in the zone of the schedule: on the 1st of November the clocks went back, and nine stayed nine."""
    days = ["2026-10-30", "2026-11-02", "2026-11-03"]
    assert_fires("report", between=("2026-10-30", "2026-11-04"), at=[f"{day}T09:00" for day in days])
    assert_silent("report", between=("2026-10-31", "2026-11-02"))


def test_a_year_has_52_backups() -> None:
    """A year of all schedules takes a moment."""
    year = simulate(default_registry, datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    assert sum(tick.schedule_id == "backup" for tick in year) == 52


def test_the_report_is_of_the_daily_kind() -> None:
    """A whole beat, whose clock goes from tick to tick as fast as it can."""
    beat = ManualBeat(datetime(2026, 11, 16, 13, 50, tzinfo=UTC))
    fired = beat.tick_until("15m")
    assert [(each.schedule_id, each.queue) for each in fired] == [("poll", "high"), ("report", "reports")]
    assert beat.run_jobs() == [0, "sent the daily report"]


def test_after_an_hour_without_a_beat_the_mail_is_polled_once() -> None:
    """Of ticks that were missed, the latest fires."""
    beat = ManualBeat(datetime(2026, 11, 15, 12, 1, tzinfo=UTC))
    beat.clock.advance("1h")
    assert [each.late for each in beat.tick()] == [timedelta(minutes=1)]
    assert [each.count for each in beat.skipped] == [3]
