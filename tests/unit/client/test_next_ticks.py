"""The ticks that a schedule has to come, as far as its hash tells."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from beat.client import schedule_info
from beat.client.upcoming import due, held, next_ticks
from beat.timing import clock

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)  # a Monday
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def found(definition: dict[str, Any] | None = None, **fields: str) -> schedule_info.Standing:
    """A schedule that ticks at nine, every day; the next tick is that of today."""
    own = {"id": "report", "func": "app.report", "cron": "0 9 * * *", "tz": "UTC", **(definition or {})}
    told = {"state": "active", "next_run": clock.text(NINE), "due_at": clock.text(NINE), "definition": json.dumps(own)}
    return schedule_info.read("report", {name.encode(): value.encode() for name, value in {**told, **fields}.items()})


def test_they_begin_with_the_next_one() -> None:
    assert next_ticks(found(), 3, NINE - HOUR) == [NINE, NINE + DAY, NINE + 2 * DAY]


def test_days_of_rest_are_passed_over() -> None:
    assert next_ticks(found({"exclude": ["2026-11-16", "2026-11-18"]}), 2, NINE) == [NINE + DAY, NINE + 3 * DAY]


def test_there_are_no_more_than_the_schedule_has() -> None:
    assert next_ticks(found({"end": "2026-11-17T09:00:00Z"}), 5, NINE) == [NINE, NINE + DAY]
    assert next_ticks(found({"max_runs": 3}, run_count="3", manual_count="1"), 5, NINE) == [NINE]
    assert next_ticks(found(next_run="", due_at="", state="finished"), 5, NINE) == []
    assert next_ticks(found({"cron": 7}), 5, NINE) == []  # which cannot be read


def test_of_what_is_paused_those_after_the_pause_are_told() -> None:
    until = clock.text(NINE + 2 * DAY)
    assert next_ticks(found(state="paused", pause_until=until), 2, NINE) == [NINE + 2 * DAY, NINE + 3 * DAY]
    assert next_ticks(found(state="paused"), 1, NINE + HOUR) == [NINE + DAY]


def test_a_pause_holds_what_lies_before_its_end() -> None:
    stretch = held(found(), NINE + 2 * DAY)
    assert stretch is not None
    assert (stretch.count, stretch.last, stretch.next) == (2, NINE + DAY, NINE + 2 * DAY)
    none = held(found(), NINE)
    assert none is not None
    assert (none.count, none.next) == (0, NINE)
    assert held(found(next_run="", due_at=""), NINE) is None


def test_a_tick_is_due_at_its_own_time_unless_somebody_has_moved_it() -> None:
    later = clock.text(NINE + HOUR)
    assert due(found(due_at=later)) == NINE  # its jitter
    assert due(found(due_at=later, moved=clock.text(NINE), moved_by="ann")) == NINE + HOUR
    assert due(found(due_at=later, moved=clock.text(NINE - DAY), moved_by="ann")) == NINE


def always(_day: object) -> bool:
    return True
