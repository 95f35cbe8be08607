"""How a page shows an instant: one way, by the clocks of a schedule and by those of who looks."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from beat.timing.zones import zone
from beat.web import times

AT = datetime(2026, 11, 16, 14, 0, 5, 123456, tzinfo=UTC)
NEW_YORK, BERLIN, TOKYO, LONDON = map(zone, ("America/New_York", "Europe/Berlin", "Asia/Tokyo", "Europe/London"))


def shown(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", markup).split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "Mon 2026-11-16 09:00:05 New York"),
        ({"viewer": BERLIN}, "Mon 2026-11-16 09:00:05 New York 15:00:05 yours"),
        ({"viewer": TOKYO, "placed": False}, "Mon 2026-11-16 09:00:05 23:00:05 yours"),
        ({"viewer": NEW_YORK}, "Mon 2026-11-16 09:00:05 New York"),
        ({"now": AT, "viewer": BERLIN}, "09:00:05 New York 15:00:05 yours"),
        ({"now": datetime(2026, 11, 15, 14, tzinfo=UTC)}, "Mon 09:00:05 New York"),
    ],
    ids=["alone", "beside", "unplaced", "same-zone", "near", "tomorrow"],
)
def test_an_instant_is_shown_by_the_schedules_clocks_and_by_the_viewers(options: dict[str, Any], words: str) -> None:
    assert shown(times.moment(AT, NEW_YORK, **options)) == words


LATE = datetime(2026, 11, 16, 20, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (None, "Mon 2026-11-16 15:00 New York 2026-11-17 05:00 yours"),
        (LATE, "15:00 New York Tue 05:00 yours"),
        (LATE - timedelta(days=6), "Mon 15:00 New York Tue 05:00 yours"),
        (LATE - timedelta(days=7), "2026-11-16 15:00 New York 2026-11-17 05:00 yours"),
        (LATE - timedelta(days=12), "2026-11-16 15:00 New York 2026-11-17 05:00 yours"),
        (LATE + timedelta(days=2), "2026-11-16 15:00 New York 2026-11-17 05:00 yours"),
    ],
    ids=["alone", "now", "in six days", "in seven days", "in twelve days", "past"],
)
def test_a_day_has_its_name_within_six_days_and_else_a_date(now: datetime | None, words: str) -> None:
    assert shown(times.moment(LATE, NEW_YORK, TOKYO, now=now)) == words


def test_clocks_that_show_the_same_are_not_told_twice() -> None:
    assert "yours" not in times.moment(AT, zone("UTC"), LONDON), "in winter London has the time of UTC"
    assert "14:00 yours" in times.moment(datetime(2026, 7, 1, 13, tzinfo=UTC), zone("UTC"), LONDON)


def test_seconds_are_shown_where_there_are_some_or_all_are_wanted() -> None:
    full = datetime(2026, 11, 16, 14, 0, tzinfo=UTC)
    assert shown(times.moment(full, NEW_YORK, BERLIN)) == "Mon 2026-11-16 09:00 New York 15:00 yours"
    assert shown(times.moment(full, NEW_YORK, BERLIN, fine=True, placed=False)).endswith("09:00:00 15:00:00 yours")


def test_a_browser_understands_every_one() -> None:
    for markup in (times.moment(AT, BERLIN), times.of_day(AT, BERLIN), times.away(AT, AT)):
        assert 'datetime="2026-11-16T14:00:05Z"' in markup, "more than three digits of a second are none to it"


def test_what_is_not_there_is_not_shown() -> None:
    assert times.moment(None) == times.away(None, AT) == ""
