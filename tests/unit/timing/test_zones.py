from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beat.errors import BadInstant, BadZone
from beat.timing import zones
from beat.timing.zones import DAY, names, zone
from tests.support.chance import examples
from tests.support.refusals import accepted, refused

if TYPE_CHECKING:
    from beat.timing.zones import Stretch

HOUR = 3600
NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
YEARS = [  # zones and years with changes of every kind, and some with none
    ("UTC", 2026),
    ("Etc/GMT-14", 2026),
    ("Europe/Paris", 2026),
    ("Europe/Dublin", 2026),  # winter is the "daylight saving" there
    ("America/New_York", 2026),
    ("America/New_York", 2100),  # beyond the tables, by the rule
    ("America/Havana", 2026),  # at midnight
    ("America/Caracas", 2007),  # by half an hour
    ("America/St_Johns", 2006),  # one minute after midnight
    ("America/Sao_Paulo", 2018),
    ("Africa/Casablanca", 2026),  # around Ramadan
    ("Africa/Monrovia", 1972),  # by 44 minutes and 30 seconds
    ("Antarctica/Troll", 2026),  # by two hours
    ("Asia/Kathmandu", 1986),  # at New Year
    ("Asia/Manila", 1844),  # without 31 December
    ("Asia/Pyongyang", 2018),
    ("Australia/Lord_Howe", 2026),  # by half an hour
    ("Europe/London", 1968),
    ("Europe/London", 1947),  # twice into summer
    ("Pacific/Apia", 2011),  # without 30 December
    ("Pacific/Kwajalein", 1993),
]
after_year = pytest.mark.parametrize(("name", "year"), YEARS, ids=[f"{name} {year}" for name, year in YEARS])


def new_year(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


def stretches(name: str, first: int, end: int) -> list[Stretch]:
    """The stretches from the one that holds `first` on, each from the end of the one before."""
    found = [zone(name).at(first)]
    while found[-1].end < end:
        found.append(zone(name).at(found[-1].end))
    return found


def truth(name: str, second: int) -> float:
    offset = datetime.fromtimestamp(second, zoneinfo.ZoneInfo(name)).utcoffset()
    assert offset is not None
    return offset.total_seconds()


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Europe/Atlantis", "use an IANA name such as 'Europe/Paris'"),
        ("+05:30", "an offset is not a zone; a city such as"),
        ("-13", "an offset is not a zone; a city such as"),
        ("Europe/Pariss", "Did you mean 'Europe/Paris'?"),
        ("europe/paris", "Did you mean 'Europe/Paris'?"),
        ("EUROPE/PARIS", "Did you mean 'Europe/Paris'?"),
        ("utc", "Did you mean"),
        ("Paris", "use an IANA name"),
        ("Europe", "it is a region; name a city in it, such as 'Europe/"),
        ("America/Argentina", "it is a region; name a city in it, such as 'America/Argentina/"),
        ("Europe/", "use an IANA name"),
        ("/Europe/Paris", "Did you mean 'Europe/Paris'?"),
        ("Europe/Paris/", "Did you mean 'Europe/Paris'?"),
        ("Europe//Paris", "Did you mean 'Europe/Paris'?"),
        ("Europe\\Paris", "Did you mean 'Europe/Paris'?"),
        ("./Europe/Paris", "Did you mean 'Europe/Paris'?"),
        ("../zoneinfo/Europe/Paris", "'../zoneinfo/Europe/Paris' is not known"),
        ("../../etc/passwd", "'../../etc/passwd' is not known"),
        ("/etc/passwd", "'/etc/passwd' is not known"),
        ("/etc/localtime", "'/etc/localtime' is not known"),
        ("localtime", "name the zone, as in tz='Europe/Paris'"),
        ("local", "use an IANA name"),
        ("Factory", "use an IANA name"),
        ("posixrules", "use an IANA name"),
        ("posix/Europe/Paris", "Did you mean"),
        ("right/Europe/Paris", "Did you mean"),
        ("tzdata.zi", "use an IANA name"),
        ("zone.tab", "use an IANA name"),
        ("+02:00", "'Etc/GMT-2' is always +02:00"),
        ("-05:00", "'Etc/GMT+5' is always -05:00"),
        ("+2", "'Etc/GMT-2' is always +2"),
        ("+0200", "'Etc/GMT-2' is always +0200"),
        ("UTC+2", "'Etc/GMT-2' is always UTC+2"),
        ("utc+2", "'Etc/GMT-2' is always utc+2"),
        ("GMT-3", "'Etc/GMT+3' is always GMT-3"),
        ("CEST", "use an IANA name: for CEST, 'Europe/Berlin' or 'Europe/Paris'"),
        ("cest", "use an IANA name: for CEST, 'Europe/Berlin' or 'Europe/Paris'"),
        ("PDT", "use an IANA name: for PDT, 'America/Los_Angeles'"),
        ("est", "use an IANA name: for EST, 'America/New_York' or 'America/Panama'"),
        ("IST", "use an IANA name: for IST, 'Asia/Kolkata', 'Asia/Jerusalem' or 'Europe/Dublin'"),
        ("CET-1CEST", "use an IANA name"),
        ("", "use an IANA name"),
        (" ", "use an IANA name"),
        (" Europe/Paris", "Did you mean 'Europe/Paris'?"),
        ("Europe/Paris\n", "Did you mean 'Europe/Paris'?"),
        ("Europe/Paris\0", "Did you mean 'Europe/Paris'?"),
        ("\0", "use an IANA name"),
        ("Europe/\u0420aris", "Did you mean 'Europe/Paris'?"),
        pytest.param("x" * 1_000_000, "use an IANA name", id="a megabyte of x"),
        pytest.param("../" * 100_000, "use an IANA name", id="a long way up"),
        (None, "tz='Europe/Paris'"),
        (2, "tz='Europe/Paris'"),
        (True, "tz='Europe/Paris'"),
        (b"UTC", "tz='Europe/Paris'"),
        (["UTC"], "tz='Europe/Paris'"),
        ({"UTC"}, "tz='Europe/Paris'"),
        (UTC, "tz='Europe/Paris'"),
        (zoneinfo.ZoneInfo("UTC"), "tz='Europe/Paris'"),
    ],
)
def test_what_is_no_zone_is_refused_with_what_may_be_meant(name: Any, words: str) -> None:
    message = refused(BadZone, lambda: zone(name))
    assert message.startswith("time zone ")
    assert words in message


def test_no_abbreviation_is_ever_suggested() -> None:
    for name in ["CEST", "CES", "ESTT", "WES", "EETT", "MSTT", "HSTX", "EST5ED", "PST8"]:
        suggested = set(re.findall(r"'([^']+)'", refused(BadZone, lambda name=name: zone(name)).partition(":")[2]))  # type: ignore[misc]  # a bound default
        assert all("/" in each for each in suggested), name


@pytest.mark.parametrize(("abbreviation", "cities"), zones.CITIES.items())
def test_a_suggested_city_shows_the_abbreviation_at_some_time_of_the_year(
    abbreviation: str, cities: tuple[str, ...]
) -> None:
    for city in cities:
        halves = (datetime(2026, month, 15, tzinfo=zoneinfo.ZoneInfo(city)) for month in (1, 7))
        assert abbreviation in {half.tzname() for half in halves}
        assert city in names()


@pytest.mark.parametrize(
    ("name", "note"),
    [
        (
            "EST",
            (
                "tz='EST' is UTC-05:00 all year: write 'America/New_York', whose clock changes in summer, "
                "or 'America/Panama', whose clock does not"
            ),
        ),
        (
            "MST",
            (
                "tz='MST' is UTC-07:00 all year: write 'America/Denver', whose clock changes in summer, "
                "or 'America/Phoenix', whose clock does not"
            ),
        ),
        ("HST", "tz='HST' is UTC-10:00 all year: write 'Pacific/Honolulu', whose clock does not change either"),
        (
            "EST5EDT",
            (
                "tz='EST5EDT' is an old name, and its clock changes between UTC-05:00 and UTC-04:00: "
                "write 'America/New_York'"
            ),
        ),
        (
            "CET",
            (
                "tz='CET' is an old name, and its clock changes between UTC+01:00 and UTC+02:00: "
                "write 'Europe/Berlin' or 'Europe/Paris'"
            ),
        ),
        ("UTC", ""),
        ("GMT", ""),
        ("Europe/Paris", ""),
        ("Etc/GMT+5", ""),
    ],
)
def test_an_abbreviation_that_is_a_zone_has_a_note_that_says_whether_its_clock_changes(name: str, note: str) -> None:
    assert zones.note(zone(name), NOW) == note


@pytest.mark.parametrize("name", zones.OLD_NAMES)
def test_the_note_agrees_with_the_time_zone_data(name: str) -> None:
    offsets = {datetime(2026, month, 15, tzinfo=zoneinfo.ZoneInfo(name)).utcoffset() for month in range(1, 13)}
    assert ("all year" in zones.note(zone(name), NOW)) == (len(offsets) == 1)
    winter = {datetime(2026, 1, 15, tzinfo=zoneinfo.ZoneInfo(each)).utcoffset() for each in zones.OLD_NAMES[name]}
    assert winter <= offsets


def test_every_offset_that_is_suggested_is_a_zone_with_that_offset() -> None:
    for hours in range(-12, 15):
        message = refused(BadZone, lambda hours=hours: zone(f"{hours:+03}:00"))  # type: ignore[misc]  # a bound default
        suggested = message.partition("; '")[2].partition("'")[0]
        assert zone(suggested).offset(0) == hours * HOUR


def test_every_zone_of_the_database_is_accepted() -> None:
    every = zoneinfo.available_timezones() - {"localtime", "Factory"}
    assert {zone(name).name for name in every} == every == names()


@pytest.mark.parametrize("packaged", [[], ["nowhere/tzdata/zoneinfo"]])
def test_a_zone_that_the_system_alone_knows_is_accepted(packaged: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zones, "_packaged", lambda: packaged)
    monkeypatch.setattr(zones, "_listed", zones._listed.__wrapped__)  # noqa: SLF001 (without its cache)
    assert zone("Europe/Paris").name == "Europe/Paris"
    assert refused(BadZone, lambda: zone("Factory"))


@given(st.text())
@settings(max_examples=examples(200), deadline=None)
def test_any_other_text_is_refused(name: str) -> None:
    assert accepted(lambda: zone(name)) == (name in names())


# --- stretches -------------------------------------------------------------------------------------------------------


@after_year
def test_stretches_follow_each_other_without_a_hole(name: str, year: int) -> None:
    found = stretches(name, new_year(year - 1), new_year(year + 2))
    assert [stretch.start for stretch in found[1:]] == [stretch.end for stretch in found[:-1]]


@after_year
def test_each_stretch_holds_its_own_seconds_and_no_other(name: str, year: int) -> None:
    for stretch in stretches(name, new_year(year), new_year(year + 1)):
        assert zone(name).at(stretch.start) == stretch == zone(name).at(stretch.end - 1)
        assert zone(name).at(stretch.start - 1).end == stretch.start


@after_year
def test_a_stretch_has_the_offset_of_zoneinfo_hour_by_hour(name: str, year: int) -> None:
    hours = range(new_year(year) - DAY, new_year(year + 1) + DAY, HOUR)
    assert [zone(name).at(second).offset for second in hours] == [truth(name, second) for second in hours]


@after_year
def test_a_stretch_has_the_offset_of_zoneinfo_around_every_change(name: str, year: int) -> None:
    found = stretches(name, new_year(year), new_year(year + 1))
    around = [stretch.start + second for stretch in found for second in (-HOUR, -60, -2, -1, 0, 1, 2, 60, HOUR)]
    assert [zone(name).at(second).offset for second in around] == [truth(name, second) for second in around]


@after_year
def test_what_the_clock_had_reached_is_the_highest_wall_time_before(name: str, year: int) -> None:
    before = stretches(name, new_year(year - 3), new_year(year))
    for stretch in stretches(name, new_year(year), new_year(year + 1)):
        assert stretch.reached == max(
            earlier.end + earlier.offset for earlier in before if earlier.end <= stretch.start
        )
        before.append(stretch)


@pytest.mark.parametrize(
    ("name", "change", "jump"),
    [
        ("Europe/Paris", datetime(2026, 3, 29, 1, tzinfo=UTC), HOUR),
        ("Europe/Paris", datetime(2026, 10, 25, 1, tzinfo=UTC), -HOUR),
        ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC), HOUR // 2),
        ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC), DAY),
    ],
)
def test_a_jump_is_the_way_from_what_was_reached_to_where_the_stretch_opens(
    name: str, change: datetime, jump: int
) -> None:
    stretch = zone(name).at(int(change.timestamp()))
    assert stretch.start == change.timestamp()
    assert stretch.opens - stretch.reached == jump


def test_the_order_of_the_questions_does_not_change_the_answers() -> None:
    seconds = range(new_year(2025), new_year(2027), 29 * DAY)
    forwards = [zone("Europe/Paris").at(second) for second in seconds]
    assert [zone("Europe/Paris").at(second) for second in reversed(seconds)] == forwards[::-1]


@pytest.mark.parametrize("second", [new_year(1700), new_year(9995), -(10**15), 10**15, 10**30])
def test_a_time_beyond_the_calendar_is_refused(second: int) -> None:
    assert "there are no ticks" in refused(BadInstant, lambda: zone("Europe/Paris").at(second))
