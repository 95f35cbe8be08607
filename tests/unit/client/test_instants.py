"""The times that people write and read when they ask about ticks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from beat.client.describe import instants
from beat.errors import BadInstant
from beat.timing import clock
from beat.timing.zones import zone

BERLIN = zone("Europe/Berlin")
NOW = clock.read("2026-11-16T17:30:00.250Z")  # 18:30 in Berlin


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("03:00", "2026-11-16T02:00:00Z"),
        ("3:00", "2026-11-16T02:00:00Z"),
        ("18:30", "2026-11-16T17:30:00Z"),
        ("18:31", "2026-11-15T17:31:00Z"),  # of yesterday: today's is still to come
        ("18:29:30", "2026-11-16T17:29:30Z"),
        ("03:00Z", "2026-11-16T03:00:00Z"),
        ("17:31Z", "2026-11-15T17:31:00Z"),
        ("2026-11-16 03:00", "2026-11-16T02:00:00Z"),
        ("2026-07-16T03:00", "2026-07-16T01:00:00Z"),
        (" 2026-11-16 03:00:07 ", "2026-11-16T02:00:07Z"),
        ("2026-11-16T02:00Z", "2026-11-16T02:00:00Z"),
        ("2026-11-16T02:00+05:30", "2026-11-15T20:30:00Z"),
        ("2h ago", "2026-11-16T15:30:00Z"),
        ("1h 30m ago", "2026-11-16T16:00:00Z"),
        ("0s ago", "2026-11-16T17:30:00Z"),
        ("today 03:00", "2026-11-16T02:00:00Z"),
        ("yesterday 3:00", "2026-11-15T02:00:00Z"),
        ("Yesterday  18:31:30", "2026-11-15T17:31:30Z"),
        ("yesterday 03:00Z", "2026-11-15T03:00:00Z"),
        ("monday 03:00", "2026-11-16T02:00:00Z"),
        ("tue 03:00", "2026-11-10T02:00:00Z"),
    ],
)
def test_a_time_is_read_in_the_zone_of_the_schedule(written: str, meant: str) -> None:
    assert instants.when(written, BERLIN, NOW) == (clock.read(meant), "")


@pytest.mark.parametrize(
    "written",
    [
        "",
        "x",
        "now",
        "24:00",
        "12:60",
        "3",
        "03",
        "-2h",
        "2026-13-01 03:00",
        "99999999999w ago",
        "ago",
        "0001-01-01 00:00",
    ],
)
def test_what_is_no_time_is_refused_with_examples(written: str) -> None:
    with pytest.raises(BadInstant, match=r"is not a time: write 03:00, '2026-11-16 03:00' \(both in Europe/Berlin\)"):
        instants.when(written, BERLIN, NOW)


def test_a_day_is_refused_with_what_is_missing() -> None:
    for day in ("2026-11-16", "yesterday", "monday"):
        with pytest.raises(BadInstant, match=f"'{day}' is a day, and a tick has a time: write '{day} 03:00'"):
            instants.when(day, BERLIN, NOW)


def test_a_time_that_the_clock_jumps_over_is_the_instant_after_the_jump() -> None:
    meant = instants.when("2026-03-29 02:30", BERLIN, NOW)
    assert clock.text(meant.instant) == "2026-03-29T01:00:00Z"
    assert meant.note.startswith("02:30 does not exist on 2026-03-29 in Europe/Berlin")


def test_a_time_that_comes_twice_is_the_first_and_the_second_is_named() -> None:
    meant = instants.when("2026-10-25 02:30", BERLIN, NOW)
    assert clock.text(meant.instant) == "2026-10-25T00:30:00Z"
    assert meant.note.endswith("this is the first; for the second write 2026-10-25T01:30:00Z")


def test_a_day_that_a_zone_left_out_ends_right_after_the_jump() -> None:
    meant = instants.when("2011-12-30 12:00", zone("Pacific/Apia"), NOW)
    assert clock.text(meant.instant) == "2011-12-30T10:00:00Z"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("24h", "2026-11-15T17:30:00.250Z"),
        ("7d", "2026-11-09T17:30:00.250Z"),
        ("2026-11-16", "2026-11-15T23:00:00Z"),
        ("20261116", "2026-11-15T23:00:00Z"),
        ("2026-11-16T02:00Z", "2026-11-16T02:00:00Z"),
        ("03:00", "2026-11-16T02:00:00Z"),
        ("2h ago", "2026-11-16T15:30:00Z"),
        ("today", "2026-11-15T23:00:00Z"),
        ("yesterday", "2026-11-14T23:00:00Z"),
        (" Yesterday ", "2026-11-14T23:00:00Z"),
        ("yesterday 18:00", "2026-11-15T17:00:00Z"),
        ("monday", "2026-11-15T23:00:00Z"),  # today is one
        ("sun", "2026-11-14T23:00:00Z"),
    ],
)
def test_since_takes_a_length_of_time_a_time_or_a_day(written: str, meant: str) -> None:
    assert instants.since(written, BERLIN, NOW) == clock.read(meant)


@pytest.mark.parametrize("written", ["", "24", "x", "-1d", "yesterdays", "yesterday noon", "99999999999w", "1.5"])
def test_what_says_no_beginning_is_refused(written: str) -> None:
    with pytest.raises(
        BadInstant, match=r"--since .* is neither a length of time nor a time: write 24h, 7d, 2026-11-16"
    ):
        instants.since(written, BERLIN, NOW)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-11-16", "2026-11-16T22:59:59.999999Z"),  # all of the day
        ("2026-10-25", "2026-10-25T22:59:59.999999Z"),  # which has 25 hours
        ("2026-11-16 03:00", "2026-11-16T02:00:00Z"),
        ("24h", "2026-11-15T17:30:00.250Z"),
        ("yesterday", "2026-11-15T22:59:59.999999Z"),
        ("today", "2026-11-16T22:59:59.999999Z"),
        ("yesterday 03:00", "2026-11-15T02:00:00Z"),
    ],
)
def test_until_takes_the_same_and_of_a_day_its_end(written: str, meant: str) -> None:
    assert instants.until(written, BERLIN, NOW) == clock.read(meant)


def test_what_says_no_end_is_refused_by_its_name() -> None:
    with pytest.raises(BadInstant, match="--to 'x' is neither a length of time nor a time"):
        instants.until("x", BERLIN, NOW)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2h", "2026-11-16T19:30:00.250Z"),
        ("in 2h", "2026-11-16T19:30:00.250Z"),
        ("1h 30m", "2026-11-16T19:00:00.250Z"),
        ("19:00", "2026-11-16T18:00:00Z"),
        ("9:00", "2026-11-17T08:00:00Z"),
        ("18:30", "2026-11-17T17:30:00Z"),  # of tomorrow: today's is just past
        ("18:30:01", "2026-11-16T17:30:01Z"),
        ("18:00Z", "2026-11-16T18:00:00Z"),
        ("today 20:00", "2026-11-16T19:00:00Z"),
        ("tomorrow", "2026-11-16T23:00:00Z"),
        ("Tomorrow  09:00", "2026-11-17T08:00:00Z"),
        ("tuesday", "2026-11-16T23:00:00Z"),
        ("sun", "2026-11-21T23:00:00Z"),
        ("monday", "2026-11-22T23:00:00Z"),  # today is Monday, and has begun
        ("MONDAY 09:00", "2026-11-23T08:00:00Z"),
        ("monday 19:00", "2026-11-16T18:00:00Z"),
        ("monday 18:00Z", "2026-11-16T18:00:00Z"),
        ("2026-11-20", "2026-11-19T23:00:00Z"),
        ("2026-11-20 09:00", "2026-11-20T08:00:00Z"),
        ("2026-11-20T09:00", "2026-11-20T08:00:00Z"),
        ("2026-11-20T09:00Z", "2026-11-20T09:00:00Z"),
        ("2026-11-20T09:00+05:30", "2026-11-20T03:30:00Z"),
    ],
)
def test_a_time_to_come_is_the_next_one_in_the_zone_of_the_schedule(written: str, meant: str) -> None:
    assert instants.coming(written, BERLIN, NOW) == (clock.read(meant), "")


@pytest.mark.parametrize(
    "written",
    ["", "x", "15", "-2h", "soon", "mo", "next monday", "monday 25:00", "monday 9", "24:00", "2026-02-30", "9999999w"],
)
def test_what_is_no_time_to_come_is_refused_with_examples(written: str) -> None:
    with pytest.raises(BadInstant, match=r"--at .* is not a time to come: write 2h, 09:00, monday, .*Europe/Berlin"):
        instants.coming(written, BERLIN, NOW, "--at")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("today", "that is Mon 2026-11-16 00:00 Berlin = 2026-11-15 23:00Z, and now it is 18:30 Berlin = 17:30Z"),
        ("2026-11-15", "that is Sun 2026-11-15 00:00 Berlin = .*, and now it is Mon 2026-11-16 18:30 Berlin"),
        ("today 18:30", "that is Mon 2026-11-16 18:30 Berlin"),
        ("2026-11-16T17:30Z", "that is Mon 2026-11-16 18:30 Berlin"),
        ("0s", "that is Mon 2026-11-16 18:30"),
        ("yesterday", "that is Sun 2026-11-15 00:00 Berlin"),
        ("yesterday 20:00", "that is Sun 2026-11-15 20:00 Berlin"),
    ],
)
def test_what_is_past_is_refused_with_what_it_was_taken_for(written: str, told: str) -> None:
    with pytest.raises(BadInstant, match=f"is past: {told}"):
        instants.coming(written, BERLIN, NOW)


@pytest.mark.parametrize(
    ("now", "meant", "note"),
    [
        ("2026-10-25T00:15:00Z", "2026-10-25T00:30:00Z", "this is the first"),
        ("2026-10-25T00:45:00Z", "2026-10-25T01:30:00Z", "this is the second"),
        ("2026-10-25T01:45:00Z", "2026-10-26T01:30:00Z", ""),
        ("2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z", "the clock jumps over it"),
        ("2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", ""),
    ],
)
def test_a_time_to_come_where_the_clocks_change(now: str, meant: str, note: str) -> None:
    found = instants.coming("02:30", BERLIN, clock.read(now))
    assert clock.text(found.instant) == meant
    assert note in found.note
    assert bool(note) is bool(found.note)


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("Europe/Berlin", "2026-11-16T02:00:00Z", "Mon 2026-11-16 03:00 Berlin = 02:00Z"),
        ("Europe/Berlin", "2026-11-16T02:00:07Z", "Mon 2026-11-16 03:00:07 Berlin = 02:00:07Z"),
        ("Europe/Berlin", "2026-11-15T23:30:00Z", "Mon 2026-11-16 00:30 Berlin = 2026-11-15 23:30Z"),
        ("America/New_York", "2026-11-16T02:00:00Z", "Sun 2026-11-15 21:00 New York = 2026-11-16 02:00Z"),
        ("UTC", "2026-11-16T02:00:00Z", "Mon 2026-11-16 02:00 UTC"),
    ],
)
def test_an_instant_is_shown_in_the_zone_and_in_utc(name: str, text: str, shown: str) -> None:
    assert instants.both(clock.read(text), zone(name)) == shown


def test_beside_another_instant_of_the_day_the_day_is_left_out() -> None:
    beside = clock.read("2026-11-16T05:00:00Z")
    assert instants.both(clock.read("2026-11-16T02:00:00Z"), BERLIN, beside) == "03:00 Berlin = 02:00Z"
    assert instants.both(clock.read("2026-11-15T02:00:00Z"), BERLIN, beside) == "Sun 2026-11-15 03:00 Berlin = 02:00Z"


def test_an_instant_has_a_name_in_a_zone_but_not_in_utc() -> None:
    at = clock.read("2026-11-16T23:30:00Z")
    assert instants.named(at, BERLIN) == "2026-11-17 00:30 CET"
    assert instants.named(at, zone("UTC")) == ""


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-1, "0 ms"),
        (0, "0 ms"),
        (0.004, "4 ms"),
        (1, "1 s"),
        (3.142, "3.14 s"),
        (59.4, "59.4 s"),
        (59.7, "1m"),
        (65, "1m5s"),
        (3600, "1h"),
        (3700, "1h1m"),
        (90_061, "1d1h"),
        (604_800, "7d"),
    ],
)
def test_a_length_of_time_has_two_units_at_most(seconds: float, shown: str) -> None:
    assert instants.span(seconds) == shown


@pytest.mark.parametrize("name", ["America/New_York", "Pacific/Apia"])
@pytest.mark.parametrize("instant", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_the_ends_of_the_calendar_can_be_shown_in_every_zone(name: str, instant: datetime) -> None:
    where = zone(name)
    for shown in (instants.both(instant, where), instants.local(instant, where), instants.utc(instant, where)):
        assert shown
    assert instants.named(instant, where)
