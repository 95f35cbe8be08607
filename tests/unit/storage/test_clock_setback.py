"""What it means that Redis' clock went back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from beat.storage import clock_setback
from beat.timing import clock

NOW = datetime(2026, 11, 16, 9, 0, 15, 400_000, tzinfo=UTC)
SEEN = NOW + timedelta(minutes=10)


def at(instant: datetime) -> float:
    return float(clock.to_ms(instant))


@pytest.mark.parametrize(
    "seen", ["", "abc", clock.text(NOW - timedelta(seconds=5)), clock.text(NOW + timedelta(seconds=2))]
)
def test_a_clock_that_is_at_most_two_seconds_behind_has_not_gone_back(seen: str) -> None:
    assert clock_setback.read(NOW, seen, at(NOW)) is None


def test_where_no_schedule_is_due_before_nothing_fires_until_the_first_is() -> None:
    found = clock_setback.read(NOW, clock.text(SEEN), at(SEEN + timedelta(seconds=1, milliseconds=-400)))
    assert found
    assert found.stops_everything
    assert found.words == (
        "Redis' clock went back: it shows 2026-11-16T09:00:15Z, and 2026-11-16T09:10:15Z was seen before; "
        "ticks that are decided are not fired again, so nothing fires until 2026-11-16T09:10:16Z"
    )
    assert found.plain() == {
        "now": "2026-11-16T09:00:15.400Z", "seen": "2026-11-16T09:10:15.400Z", "next_due": "2026-11-16T09:10:16Z",
    }  # fmt: skip


def test_where_a_schedule_is_due_before_the_others_wait() -> None:
    found = clock_setback.read(NOW, clock.text(SEEN), at(NOW + timedelta(seconds=5, milliseconds=-400)))
    assert found
    assert not found.stops_everything
    assert found.consequence == (
        "ticks that are decided are not fired again: a schedule that has fired up to 2026-11-16T09:10:15Z waits "
        "until then; the next one is due at 2026-11-16T09:00:20Z"
    )


def test_where_no_schedule_is_due_nothing_is_said_about_when() -> None:
    found = clock_setback.read(NOW, clock.text(SEEN), None)
    assert found
    assert found.words.endswith("; ticks that are decided are not fired again")
    assert found.plain()["next_due"] is None
