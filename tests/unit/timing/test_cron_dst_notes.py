"""What is said about ticks near a change of the clocks, beside what a plain look at the wall clock shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from beat.timing.cron import Cron
from tests.support import oracle
from tests.support.chance import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

MINUTE = timedelta(minutes=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+00:00")


def wall(text: str) -> datetime:
    return datetime.fromisoformat(text)


def notes(expression: str, tz: str, start: str, number: int) -> list[tuple[str, str]]:
    """The wall times of the first ticks after `start`, which is UTC, and what is noted on each."""
    rule, previous, found = Cron(expression, tz), utc(start), []
    for _ in range(number):
        tick = rule.after(previous)
        found.append((f"{tick.astimezone(ZoneInfo(tz)):%d %H:%M}", rule.note(previous, tick)))
        previous = tick
    return found


# What each kind of change is, and which times it concerns


@pytest.mark.parametrize(
    ("expression", "tz", "year", "expected"),
    [
        (
            "30 2 * * *",
            "America/New_York",
            2026,
            [("moved", "2026-03-08T07:00", "2026-03-08T02:30", 1, 60)],
        ),
        (
            "30 1 * * *",
            "America/New_York",
            2026,
            [("single", "2026-11-01T06:00", "2026-11-01T01:30", 1, -60)],
        ),
        (
            "*/20 * * * *",
            "America/New_York",
            2026,
            [
                ("dropped", "2026-03-08T07:00", "2026-03-08T02:00", 3, 60),
                ("repeated", "2026-11-01T06:00", "2026-11-01T01:00", 3, -60),
            ],
        ),
        (
            "30 2 * * *",
            "Europe/Paris",
            2026,
            [
                ("moved", "2026-03-29T01:00", "2026-03-29T02:30", 1, 60),
                ("single", "2026-10-25T01:00", "2026-10-25T02:30", 1, -60),
            ],
        ),
        (  # by half an hour
            "*/10 * * * *",
            "Australia/Lord_Howe",
            2026,
            [
                ("repeated", "2026-04-04T15:00", "2026-04-05T01:30", 3, -30),
                ("dropped", "2026-10-03T15:30", "2026-10-04T02:00", 3, 30),
            ],
        ),
        (  # back for the month of Ramadan, then forward again
            "0 2 * * *",
            "Africa/Casablanca",
            2026,
            [
                ("single", "2026-02-15T02:00", "2026-02-15T02:00", 1, -60),
                ("moved", "2026-03-22T02:00", "2026-03-22T02:00", 1, 60),
            ],
        ),
        (  # at midnight
            "0 0 * * *",
            "America/Havana",
            2026,
            [
                ("moved", "2026-03-08T05:00", "2026-03-08T00:00", 1, 60),
                ("single", "2026-11-01T05:00", "2026-11-01T00:00", 1, -60),
            ],
        ),
        (  # by two hours
            "30 1,2 * * *",
            "Antarctica/Troll",
            2026,
            [
                ("moved", "2026-03-29T01:00", "2026-03-29T01:30", 2, 120),
                ("single", "2026-10-25T01:00", "2026-10-25T01:30", 2, -120),
            ],
        ),
        (  # Samoa left out a day
            "0 9 * * *",
            "Pacific/Apia",
            2011,
            [("moved", "2011-12-30T10:00", "2011-12-30T09:00", 1, 24 * 60)],
        ),
        ("0 9 * * *", "America/New_York", 2026, []),
        ("30 2 * * mon", "America/New_York", 2026, []),
        ("30 2 * * *", "Asia/Tokyo", 2026, []),
        ("30 2 * * *", "UTC", 2026, []),
    ],
)
def test_a_change_concerns_the_ticks_that_it_moves_drops_keeps_single_or_repeats(
    expression: str, tz: str, year: int, expected: list[tuple[str, str, str, int, int]]
) -> None:
    years = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    assert list(Cron(expression, tz).shifts(*years)) == [
        (kind, utc(at), wall(first), ticks, jump * MINUTE) for kind, at, first, ticks, jump in expected
    ]


def test_changes_are_looked_for_from_the_first_instant_on_and_before_the_last() -> None:
    rule, change = Cron("30 2 * * *", "America/New_York"), utc("2026-03-08T07:00")
    second = timedelta(seconds=1)
    assert len(list(rule.shifts(change, change + second))) == 1
    assert list(rule.shifts(change - second, change)) == []
    assert list(rule.shifts(change + second, change + timedelta(days=30))) == []


# What is noted on a tick


@pytest.mark.parametrize(
    ("expression", "tz", "start", "expected"),
    [
        (
            "30 2 * * *",
            "America/New_York",
            "2026-03-07T00:00",
            [
                ("07 02:30", ""),
                ("08 03:00", "02:30 does not exist on 8 March: the clock jumps forward, and this runs right after"),
                ("09 02:30", ""),
            ],
        ),
        (
            "*/30 * * * *",
            "America/New_York",
            "2026-03-08T06:00",
            [
                ("08 01:30", ""),
                ("08 03:00", "before this, 2 ticks from 02:00 on were dropped: the clock jumps forward on 8 March"),
                ("08 03:30", ""),
            ],
        ),
        (
            "*/30 2 * * *",  # the day itself has no tick: the next one tells
            "Europe/Paris",
            "2026-03-28T01:00",
            [
                ("28 02:30", ""),
                ("30 02:00", "before this, 2 ticks from 02:00 on were dropped: the clock jumps forward on 29 March"),
                ("30 02:30", ""),
            ],
        ),
        (
            "0 */2 * * *",
            "Europe/Paris",
            "2026-03-28T23:00",
            [("29 04:00", "before this, 1 tick, 02:00, was dropped: the clock jumps forward on 29 March")],
        ),
        (
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T00:00",
            [
                ("31 01:30", ""),
                ("01 01:30", "this time comes twice on 1 November: it runs the first time only"),
                ("02 01:30", ""),
            ],
        ),
        (
            "30 * * * *",
            "America/New_York",
            "2026-11-01T04:00",
            [
                ("01 00:30", ""),
                ("01 01:30", "this time comes twice on 1 November: first time"),
                ("01 01:30", "this time comes twice on 1 November: second time"),
                ("01 02:30", ""),
            ],
        ),
        (
            "*/15 * * * *",
            "Australia/Lord_Howe",
            "2026-04-04T14:15",
            [
                ("05 01:30", "this time comes twice on 5 April: first time"),
                ("05 01:45", "this time comes twice on 5 April: first time"),
                ("05 01:30", "this time comes twice on 5 April: second time"),
                ("05 01:45", "this time comes twice on 5 April: second time"),
                ("05 02:00", ""),
            ],
        ),
        (
            "30 2 * * *",
            "Africa/Casablanca",
            "2026-02-14T00:00",
            [
                ("14 02:30", ""),
                ("15 02:30", "this time comes twice on 15 February: it runs the first time only"),
                ("16 02:30", ""),
            ],
        ),
        (
            "0 9 * * *",
            "Pacific/Apia",
            "2011-12-29T18:00",
            [
                ("29 09:00", ""),
                ("31 00:00", "09:00 does not exist on 30 December: the clock jumps forward, and this runs right after"),
                ("31 09:00", ""),
            ],
        ),
    ],
)
def test_a_tick_near_a_change_says_what_happened_to_it(
    expression: str, tz: str, start: str, expected: list[tuple[str, str]]
) -> None:
    assert notes(expression, tz, start, len(expected)) == expected


def test_two_changes_between_two_ticks_are_both_noted() -> None:
    rule = Cron("*/30 2 29 3 *", "Europe/Paris")  # the 29th of March is the day of the change in 2026 and in 2037
    assert rule.note(utc("2025-06-01T00:00"), rule.after(utc("2026-01-01T00:00"))) == (
        "before this, 2 ticks from 02:00 on were dropped: the clock jumps forward on 29 March"
    )
    leaving_out_both = rule.after(utc("2036-06-01T00:00"))
    assert rule.note(utc("2026-01-01T00:00"), leaving_out_both).count("were dropped") == 2


# Two years of ticks, each compared with a look at the wall clock, minute by minute


class Change(NamedTuple):
    """One change of the clocks, and the wall minutes of an expression that it skips or repeats."""

    at: datetime
    jump: timedelta
    concerned: list[datetime]


def changes(expression: oracle.Expression, tz: ZoneInfo, years: tuple[int, ...]) -> Iterator[Change]:
    for at in (instant for year in years for instant in oracle.transitions(tz, year)):
        before, after = (_wall(at - MINUTE, tz) + MINUTE, _wall(at, tz))
        low, high = sorted((before, after))
        minutes = [low + n * MINUTE for n in range((high - low) // MINUTE)]
        yield Change(at, after - before, [minute for minute in minutes if _matches(expression, minute)])


def _wall(instant: datetime, tz: ZoneInfo) -> datetime:
    return instant.astimezone(tz).replace(tzinfo=None)


def _matches(expression: oracle.Expression, minute: datetime) -> bool:
    days = minute.day in expression.days, minute.isoweekday() % 7 in expression.weekdays
    return (
        minute.minute in expression.minutes
        and minute.hour in expression.hours
        and minute.month in expression.months
        and (all(days) if expression.both_days else any(days))
    )


def seen(change: Change, previous: datetime, tick: datetime, *, wildcard: bool) -> str:
    """What a person with a calendar would note on `tick`."""
    if not change.concerned:
        return ""
    length, first = abs(change.jump), change.concerned[0]
    day = f"{first.day} {first:%B}"
    if change.jump > timedelta(0):
        if wildcard and previous < change.at <= tick:
            several = f"{len(change.concerned)} ticks from {first:%H:%M} on were"
            ticks = several if len(change.concerned) > 1 else f"1 tick, {first:%H:%M}, was"
            return f"before this, {ticks} dropped: the clock jumps forward on {day}"
        moved = f"{first:%H:%M} does not exist on {day}: the clock jumps forward, and this runs right after"
        return moved if not wildcard and tick == change.at else ""
    if change.at - length <= tick < change.at:
        return f"this time comes twice on {day}: {'first time' if wildcard else 'it runs the first time only'}"
    if wildcard and change.at <= tick < change.at + length:
        return f"this time comes twice on {day}: second time"
    return ""


YEARS = (2026, 2027) if LONG else (2026,)
EXPRESSIONS = [
    "20 * * * *",
    "*/30 1-3 * * *",
    "30 2 * * *",
    "0,30 1-3 * * *",
    "*/20 2 * * *",
    "0 0 * * *",
    "45 1,2 * * sun",
    "*/15 0-3 25-31 * *",
]


@pytest.mark.parametrize(
    "tz",
    [
        "America/New_York",
        "Europe/Paris",
        "Australia/Lord_Howe",
        "Africa/Casablanca",
    ],
)
def test_every_note_of_some_years_is_what_a_look_at_the_wall_clock_shows(tz: str) -> None:
    zone, begin, end = ZoneInfo(tz), utc("2026-01-01T00:00"), utc(f"{YEARS[-1] + 1}-01-01T00:00")
    for expression in EXPRESSIONS:
        rule, parsed = Cron(expression, tz), oracle.parse(expression)
        near = list(changes(parsed, zone, YEARS))
        for previous, tick in pairwise(rule.ticks(begin, end)):
            expected = [seen(change, previous, tick, wildcard=parsed.wildcard) for change in near]
            assert rule.note(previous, tick) == "; ".join(filter(None, expected)), (expression, tick)
