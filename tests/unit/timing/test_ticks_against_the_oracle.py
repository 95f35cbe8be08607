from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest

from beat.timing.cron import Cron
from tests.support import oracle, sweep

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


# --- a little of `make sweep` ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 3])
def test_a_part_of_the_sweep_finds_no_difference(number: int) -> None:
    tally = sweep.run_part((number, 250), sweep.DEFAULT_SEED, thorough=False)

    assert tally.differences == []
    assert tally.cases >= 9 * len(sweep.SHAPES)


@pytest.mark.parametrize("number", [503])
def test_a_thorough_part_of_the_sweep_finds_no_difference(number: int) -> None:
    tally = sweep.run_part((number, 1200), sweep.DEFAULT_SEED, thorough=True)

    assert tally.differences == []
    assert tally.comparisons >= 1000 * len(sweep.SHAPES)


@pytest.mark.parametrize("method", ["after", "before", "count", "ticks"])
def test_the_sweep_notices_an_error_of_one_hour(method: str) -> None:
    window, _, _ = sweep.windows(0, ("Europe/Dublin", 2026))[0]
    zones = ("Europe/Dublin", "Europe/London", "Europe/Jersey", "GB", "WET", "Atlantic/Faroe")

    tally = sweep.check(sweep.Group(window, zones), 0, functools.partial(sweep.Planted, method), thorough=False)

    assert tally.failed_cases >= 100


def test_the_sweep_counts_a_crash_as_a_difference() -> None:
    class Crashing(sweep.Planted):
        def before(self, instant: datetime) -> datetime:
            raise ZeroDivisionError(instant)

    window, _, zone = sweep.windows(0, ("Asia/Kathmandu", 2026))[0]

    tally = sweep.check(sweep.Group(window, (zone,)), 0, functools.partial(Crashing, "nothing"), thorough=False)

    assert tally.failed_cases == tally.cases == len(sweep.SHAPES)


# --- written by hand from the rule -----------------------------------------------------------------------------------


class Known(NamedTuple):
    """From `start` until before `end` (UTC), `expression` ticks at these instants and no others."""

    expression: str
    start: str
    end: str
    ticks: str


KNOWN = {
    # 8 March: 02:00 EST becomes 03:00 EDT, at 07:00 UTC
    ("America/New_York", "spring"): [
        Known("30 2 * * *", "2026-03-07T06:00", "2026-03-09T07:00", "03-07T07:30 03-08T07:00 03-09T06:30"),
        Known("0 2 * * *", "2026-03-08T00:00", "2026-03-09T00:00", "03-08T07:00"),
        Known("0 2,3 * * *", "2026-03-08T00:00", "2026-03-09T00:00", "03-08T07:00"),
        Known("15,45 1-3 * * *", "2026-03-08T05:00", "2026-03-08T12:00", "06:15 06:45 07:00 07:15 07:45"),
        Known("30 1 * * *", "2026-03-08T00:00", "2026-03-09T00:00", "03-08T06:30"),
        Known("0-59 2 * * *", "2026-03-08T00:00", "2026-03-09T00:00", "03-08T07:00"),
        Known("30 * * * *", "2026-03-08T05:00", "2026-03-08T09:00", "05:30 06:30 07:30 08:30"),
        Known("0 */2 * * *", "2026-03-08T04:00", "2026-03-08T11:00", "05:00 08:00 10:00"),
        Known("*/30 2 * * *", "2026-03-08T00:00", "2026-03-09T06:30", "03-09T06:00"),
        Known("30 2 * * mon-sat", "2026-03-08T00:00", "2026-03-09T12:00", "03-09T06:30"),
    ],
    # 1 November: 02:00 EDT becomes 01:00 EST, at 06:00 UTC
    ("America/New_York", "autumn"): [
        Known("30 1 * * *", "2026-10-31T12:00", "2026-11-02T12:00", "11-01T05:30 11-02T06:30"),
        Known("0 1 * * *", "2026-11-01T00:00", "2026-11-02T00:00", "05:00"),
        Known("0 2 * * *", "2026-11-01T00:00", "2026-11-02T00:00", "07:00"),
        Known("15,45 1-3 * * *", "2026-11-01T00:00", "2026-11-02T00:00", "05:15 05:45 07:15 07:45 08:15 08:45"),
        Known("30 * * * *", "2026-11-01T04:00", "2026-11-01T08:00", "04:30 05:30 06:30 07:30"),
        Known("*/30 1 * * *", "2026-11-01T00:00", "2026-11-02T00:00", "05:00 05:30 06:00 06:30"),
        Known("0-59/30 0-23 * * *", "2026-11-01T04:00", "2026-11-01T08:00", "04:00 04:30 05:00 05:30 07:00 07:30"),
        Known("0 */2 * * *", "2026-11-01T03:00", "2026-11-01T10:00", "04:00 07:00 09:00"),
        Known("30 1 1 * *", "2026-11-01T00:00", "2026-11-30T00:00", "11-01T05:30"),
    ],
    # 9 March: 00:00 becomes 01:00, at 05:00 UTC. 2 November: 01:00 becomes 00:00, at 05:00 UTC
    # (of 2025: what Cuba did in 2026 depends on how new the machine's zone data are)
    ("America/Havana", "both"): [
        Known("0 0 * * *", "2025-03-08T12:00", "2025-03-10T12:00", "03-09T05:00 03-10T04:00"),
        Known("0 0 * * *", "2025-11-01T12:00", "2025-11-03T12:00", "11-02T04:00 11-03T05:00"),
        Known("0 0 * * sun", "2025-03-08T12:00", "2025-03-10T12:00", "03-09T05:00"),
        Known("0 * * * *", "2025-11-02T03:00", "2025-11-02T08:00", "03:00 04:00 05:00 06:00 07:00"),
    ],
    # 29 March: 00:00 becomes 01:00, at 22:00 UTC of the 28th. 24 October: 24:00 becomes 23:00, at 21:00 UTC
    ("Asia/Beirut", "both"): [
        Known("0 0 * * *", "2026-03-28T12:00", "2026-03-29T23:00", "03-28T22:00 03-29T21:00"),
        Known("30 23 * * *", "2026-10-24T12:00", "2026-10-25T23:00", "10-24T20:30 10-25T21:30"),
        Known("0 0 * * *", "2026-10-24T12:00", "2026-10-25T12:00", "10-24T22:00"),
        Known("*/30 23 * * *", "2026-10-24T12:00", "2026-10-25T12:00", "20:00 20:30 21:00 21:30"),
    ],
    # half an hour. 4 October: 02:00 becomes 02:30, at 15:30 UTC of the 3rd.
    # 5 April: 02:00 becomes 01:30, at 15:00 UTC of the 4th
    ("Australia/Lord_Howe", "both"): [
        Known("15 2 * * *", "2026-10-03T00:00", "2026-10-04T16:00", "10-03T15:30 10-04T15:15"),
        Known("*/15 2 * * *", "2026-10-03T00:00", "2026-10-04T00:00", "15:30 15:45"),
        Known("45 1 * * *", "2026-04-04T00:00", "2026-04-05T16:00", "04-04T14:45 04-05T15:15"),
        Known("*/15 1 * * *", "2026-04-04T00:00", "2026-04-05T00:00", "14:00 14:15 14:30 14:45 15:00 15:15"),
        Known("15 1 * * *", "2026-04-04T00:00", "2026-04-05T00:00", "14:15"),
    ],
    # 27 September: 02:45 becomes 03:45, at 14:00 UTC of the 26th. 5 April: 03:45 becomes 02:45, at 14:00 of the 4th
    ("Pacific/Chatham", "both"): [
        Known("0 3 * * *", "2026-09-26T00:00", "2026-09-27T14:00", "09-26T14:00 09-27T13:15"),
        Known("0 3 * * *", "2026-04-04T00:00", "2026-04-05T15:00", "04-04T13:15 04-05T14:15"),
        Known("0 * * * *", "2026-04-04T12:00", "2026-04-04T16:00", "12:15 13:15 14:15 15:15"),
    ],
    # Ramadan: 15 February, 03:00 becomes 02:00; 22 March, 02:00 becomes 03:00; both at 02:00 UTC
    ("Africa/Casablanca", "Ramadan"): [
        Known("30 2 * * *", "2026-02-14T12:00", "2026-02-16T12:00", "02-15T01:30 02-16T02:30"),
        Known("30 2 * * *", "2026-03-21T12:00", "2026-03-23T12:00", "03-22T02:00 03-23T01:30"),
    ],
    # 30 December did not exist: after the 29th came the 31st, at 10:00 UTC
    ("Pacific/Apia", "the skipped day"): [
        Known("0 12 * * *", "2011-12-29T12:00", "2011-12-31T00:00", "12-29T22:00 12-30T10:00 12-30T22:00"),
        Known("0 0 * * *", "2011-12-29T09:00", "2011-12-31T12:00", "12-29T10:00 12-30T10:00 12-31T10:00"),
        Known("0 12 30 12 *", "2011-12-25T00:00", "2012-01-01T00:00", "12-30T10:00"),
        Known("0 12 * * fri", "2011-12-25T00:00", "2012-01-01T00:00", "12-30T10:00"),
        Known("0 */6 * * *", "2011-12-30T00:00", "2011-12-31T00:00", "04:00 10:00 16:00 22:00"),
    ],
    # five hours and three quarters, never changed
    ("Asia/Kathmandu", "plain"): [
        Known("0 0 * * *", "2026-03-08T00:00", "2026-03-09T00:00", "18:15"),
        Known("*/30 * * * *", "2026-03-08T00:00", "2026-03-08T01:00", "00:15 00:45"),
    ],
}
ROWS = [
    pytest.param(zone, known, id=f"{known.expression} in {zone} from {known.start}")
    for (zone, _), rows in KNOWN.items()
    for known in rows
]


@pytest.mark.parametrize(("zone", "known"), ROWS)
def test_well_known_days_tick_as_written_by_hand(zone: str, known: Known) -> None:
    start, end = utc(known.start), utc(known.end)

    assert list(Cron(known.expression, zone).ticks(start, end)) == expected(known)


@pytest.mark.parametrize(("zone", "known"), ROWS)
def test_the_oracle_agrees_with_what_is_written_by_hand(zone: str, known: Known) -> None:
    walked = oracle.walk(ZoneInfo(zone), utc(known.start), utc(known.end))

    assert oracle.ticks(oracle.parse(known.expression), walked) == expected(known)


def expected(known: Known) -> list[datetime]:
    """Ticks are written as `03-08T07:00`, or as `07:00` on the day of `start`."""
    return [utc((known.start[:5] if "T" in tick else known.start[:11]) + tick) for tick in known.ticks.split()]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# --- six fields ------------------------------------------------------------------------------------------------------

SECONDS_SHAPES = (
    "* * * * * *",
    "*/7 * * * * *",
    "15,45 * * * * *",
    "30 */20 * * * *",
    "0 30 2 * * *",
    "59 59 1 * * *",
    "*/10 30 1-2 * * *",
    "* 30 2 * * *",
    "5/15 0,30 2,23 * * *",
    "0-59 0-59 0-23 * * *",
    "20 0 0 * * sun",
    "10 15 2 1-7 10 sun",
    "@daily",
)


@pytest.mark.parametrize(
    ("zone", "change"),
    [
        ("America/New_York", "2026-03-08T07:00"),
        ("America/New_York", "2026-11-01T06:00"),
        ("Australia/Lord_Howe", "2026-10-03T15:30"),
        ("America/Havana", "2025-11-02T05:00"),
        ("Pacific/Apia", "2011-12-30T10:00"),
    ],
)
def test_six_fields_tick_as_the_oracle_says_second_by_second(zone: str, change: str) -> None:
    start, end = utc(change) - HOUR, utc(change) + 2 * HOUR
    walked = oracle.walk(ZoneInfo(zone), start, end, SECOND)
    for shape in SECONDS_SHAPES:
        truth = oracle.ticks(oracle.parse(shape, seconds=True), walked)
        case = sweep.Case(Cron(shape, zone, seconds=True), sweep.Window(utc(change), plain=False), truth)
        compare_within(case, start, end)
        assert case.differences == [], shape


def compare_within(case: sweep.Case, start: datetime, end: datetime) -> None:
    """The walk is shorter than the sweep's window: ask only for what it saw."""
    dice = sweep.seeded(start)
    case.ticks(start, end)
    case.count(start, end)
    truth = case.truth
    for _ in range(200 if len(truth) > 1 else 0):
        instant = start + timedelta(microseconds=dice.randrange((end - start) // timedelta(microseconds=1)))
        if truth[0] < instant < truth[-1]:
            case.after(instant)
            case.before(instant)
            case.count(*sorted((instant, dice.choice(truth))))


# --- the leap second at the end of 2016, which POSIX clocks and datetime do not know ---------------------------------


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_a_leap_second_neither_skips_nor_doubles_a_tick_of_every_second(zone: str) -> None:
    cron, last = Cron("* * * * * *", zone, seconds=True), utc("2016-12-31T23:59:59")

    assert cron.after(last) == utc("2017-01-01T00:00:00")
    assert cron.before(utc("2017-01-01T00:00:00")) == last
    assert cron.count(last, utc("2017-01-01T00:00:02")) == 3
    assert list(cron.ticks(last - SECOND, last + 2 * SECOND)) == [last - SECOND, last, last + SECOND]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_a_leap_second_neither_skips_nor_doubles_a_tick_of_every_minute(zone: str) -> None:
    cron, midnight = Cron("* * * * *", zone), utc("2017-01-01T00:00:00")
    minute = timedelta(minutes=1)

    assert cron.after(utc("2016-12-31T23:59:59.999999")) == midnight
    assert cron.before(utc("2017-01-01T00:00:00.000001")) == midnight
    assert cron.count(midnight - HOUR, midnight + HOUR) == 120
    assert list(cron.ticks(midnight - minute, midnight + 2 * minute)) == [
        midnight - minute,
        midnight,
        midnight + minute,
    ]
