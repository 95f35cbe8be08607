"""The ticks that a schedule has to come: as its pause, its days of rest, its bounds and an operator leave them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from beat.client import schedule_info, upcoming
from beat.errors import BadOption
from beat.timing import clock

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)  # a Monday
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def found(
    cron: str = "0 9 * * *", *, definition: dict[str, Any] | None = None, **fields: str
) -> schedule_info.Standing:
    whole = {"id": "report", "func": "app.tasks.report", "cron": cron, "tz": "UTC", **(definition or {})}
    told = {"state": "active", "next_run": clock.text(NINE), "due_at": clock.text(NINE), **fields}
    told["definition"] = json.dumps(whole)
    return schedule_info.read("report", {name.encode(): value.encode() for name, value in told.items()})


CASES: dict[str, tuple[schedule_info.Standing, list[datetime]]] = {
    "every day": (found(), [NINE, NINE + DAY, NINE + 2 * DAY]),
    "one that is due comes first": (found(next_run=clock.text(NINE - DAY)), [NINE - DAY, NINE, NINE + DAY]),
    "until its end": (found(definition={"end": clock.text(NINE + DAY)}), [NINE, NINE + DAY]),
    "as many as are left": (found(definition={"max_runs": 7}, run_count="9", manual_count="3"), [NINE]),
    "no day of rest": (
        found(definition={"exclude": ["2026-11-16", "2026-11-18..2026-11-30"]}),
        [NINE + DAY, NINE + 15 * DAY, NINE + 16 * DAY],
    ),
    "paused until a time": (
        found(state="paused", pause_until=clock.text(NINE + DAY)),
        [NINE + DAY, NINE + 2 * DAY, NINE + 3 * DAY],
    ),
    "paused until before the next": (
        found(state="paused", pause_until=clock.text(NINE - HOUR)),
        [NINE, NINE + DAY, NINE + 2 * DAY],
    ),
    "paused": (found(state="paused"), []),
    "retired": (found(state="retired"), []),
    "finished": (found(state="finished", next_run=""), []),
    "unreadable": (found("at nine"), []),
}


@pytest.mark.parametrize("case", CASES)
def test_the_ticks_that_are_to_come(case: str) -> None:
    known, expected = CASES[case]
    assert [each.tick for each in upcoming.ticks(known, 3)] == expected


def test_a_stretch_of_rest_is_stepped_over_however_often_it_ticks() -> None:
    often = found("* * * * * *", definition={"seconds": True, "exclude": ["2026-11-16..2036-11-16"]})
    assert upcoming.ticks(often, 1)[0].tick == datetime(2036, 11, 17, tzinfo=UTC)


def test_each_is_due_when_it_fires() -> None:
    moved = found(due_at=clock.text(NINE + HOUR), moved=clock.text(NINE), moved_by="ann@here")
    assert [each.due_at for each in upcoming.ticks(moved, 2)] == [NINE + HOUR, NINE + DAY]
    spread = upcoming.ticks(found(definition={"jitter": "1h"}), 5)
    assert all(each.tick <= each.due_at <= each.tick + HOUR for each in spread)
    assert any(each.tick < each.due_at for each in spread)


def test_what_only_the_application_knows_is_named() -> None:
    known = found(definition={"exclude": ["app.calendar.is_holiday", "2026-11-17"]})
    assert [(each.tick, each.unless) for each in upcoming.ticks(known, 2)] == [
        (NINE, ("app.calendar.is_holiday",)),
        (NINE + 2 * DAY, ("app.calendar.is_holiday",)),
    ]


@pytest.mark.parametrize("n", [0, -1, 1001, True, "5"])
def test_a_number_that_is_none_is_refused(n: Any) -> None:
    with pytest.raises(BadOption, match="must be a whole number from 1 to 1,000"):
        upcoming.ticks(found(), n)
