from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from beat.errors import BadInstant
from beat.timing import clock

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(0)), ZoneInfo("UTC"), ZoneInfo("Etc/GMT")], ids=repr)
def test_utc_is_taken_by_whatever_name(zone: timezone) -> None:
    assert clock.floor(NOON.replace(tzinfo=zone)) == clock.floor(NOON)


@pytest.mark.parametrize("month", [1, 7])
def test_a_zone_that_is_utc_only_in_winter_is_refused_all_year(month: int) -> None:
    with pytest.raises(BadInstant, match=r"is not in UTC: write \.astimezone\(UTC\)"):
        clock.floor(datetime(2026, month, 1, tzinfo=ZoneInfo("Europe/London")))


@pytest.mark.parametrize("value", [None, "2026-01-01", 0, NOON.date(), NOON.timestamp()], ids=repr)
def test_what_is_no_datetime_is_refused(value: Any) -> None:
    with pytest.raises(BadInstant, match="instant must be a datetime, not"):
        clock.floor(value)


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(BadInstant, match="has no time zone"):
        clock.floor(NOON.replace(tzinfo=None))


@pytest.mark.parametrize(
    ("microsecond", "floor", "ceil"),
    [(0, 0, 0), (1, 0, 1), (999_999, 0, 1)],
    ids=["whole", "just after", "just before"],
)
def test_floor_and_ceil_are_the_whole_seconds_on_both_sides(microsecond: int, floor: int, ceil: int) -> None:
    instant = clock.EPOCH.replace(microsecond=microsecond)
    assert (clock.floor(instant), clock.ceil(instant)) == (floor, ceil)


def test_an_instant_is_written_as_rfc_3339_in_utc() -> None:
    assert clock.text(datetime(2026, 11, 16, 10, tzinfo=ZoneInfo("Europe/Paris"))) == "2026-11-16T09:00:00Z"


def test_now_is_aware_and_in_utc() -> None:
    assert clock.now().tzinfo is UTC


def test_an_hour_that_comes_twice_is_two_hours_in_utc() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert [clock.text(first), clock.text(first.replace(fold=1))] == ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]


@pytest.mark.parametrize("written", ["", "soon", "2026-11-16", "2026-11-16T09:00:00", "2026-02-31T00:00:00Z", "\x00"])
def test_what_is_no_instant_is_not_found(written: str) -> None:
    assert clock.found(written) is None


def test_an_instant_is_found_as_it_is_read() -> None:
    assert clock.found("2026-11-16T09:00:00Z") == clock.read("2026-11-16T09:00:00Z")
