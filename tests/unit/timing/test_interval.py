from __future__ import annotations

import copy
import itertools
import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from beat.errors import BadDuration, BadInstant
from beat.timing.interval import Every
from tests.support.declared import Number
from tests.support.refusals import refused

MONDAY = datetime(2026, 11, 16, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("period", "words"),
    [
        (0, "every=0 must lie between 1 second and 366 days"),
        ("0s", "every='0s' must lie between 1 second"),
        (-5, "every=-5 must lie between 1 second"),
        (timedelta(days=-1), "must lie between 1 second"),
        (0.3, "every=0.3 must be whole seconds"),
        (1.5, "every=1.5 must be whole seconds"),
        ("1500ms", "every='1500ms' must be whole seconds"),
        (timedelta(seconds=1, microseconds=1), "must be whole seconds"),
        (float("nan"), "every must be finite, not nan"),
        (float("inf"), "every must be finite, not inf"),
        (True, "every must be a length of time, not True"),
        (None, "every must be a length of time, not None"),
        ([15], "every must be a length of time, not [15]"),
        ("", "every '' is not a length of time"),
        ("15 minutes", "every '15 minutes' is not a length of time"),
        ("*/5 * * * *", "every '*/5 * * * *' is not a length of time"),
        (10**12, "every=1000000000000 must lie between 1 second and 366 days"),
        pytest.param(10**5000, "every is beyond every calendar", id="more digits than Python prints"),
        ("367d", "every='367d' must lie between"),
        (timedelta(days=366, seconds=1), "must lie between"),
    ],
)
def test_a_period_that_cannot_be_is_refused(period: Any, words: str) -> None:
    assert words in refused(BadDuration, lambda: Every(period))


@pytest.mark.parametrize("period", [1, "1s", 1.0, timedelta(days=366), "366d", Number.THREE])
def test_a_period_from_a_second_to_a_leap_year_is_taken(period: Any) -> None:
    assert timedelta(seconds=1) <= Every(period).period <= timedelta(days=366)


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        ("15m", "phase='15m' must lie between 0 and every='15m'"),
        ("1h", "phase='1h' must lie between 0 and every='15m'"),
        (-1, "phase=-1 must lie between 0 and every='15m'"),
        (0.5, "phase=0.5 must be whole seconds"),
        (False, "phase must be a length of time, not False"),
        (None, "phase must be a length of time, not None"),
        ("late", "phase 'late' is not a length of time"),
    ],
)
def test_a_phase_lies_within_its_period(phase: Any, words: str) -> None:
    assert words in refused(BadDuration, lambda: Every("15m", phase=phase))


def test_phase_and_start_exclude_each_other() -> None:
    assert "give one of the two" in refused(BadDuration, lambda: Every("15m", phase="5m", start=MONDAY))


def test_a_phase_of_nothing_goes_with_a_start() -> None:
    assert Every("15m", phase=0, start=MONDAY) == Every("15m", start=MONDAY)


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (MONDAY.replace(tzinfo=None), "start 2026-11-16T09:00:00 has no time zone"),
        (MONDAY.replace(microsecond=1), "must be a whole second"),
        (MONDAY.date(), "start must be a datetime, not date"),
        ("2026-11-16", "start must be a datetime, not str"),
        (0, "start must be a datetime, not int"),
        (False, "start must be a datetime, not bool"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "outside the calendar"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), "outside the calendar"),
    ],
)
def test_a_start_is_an_aware_datetime_of_whole_seconds(start: Any, words: str) -> None:
    assert words in refused(BadInstant, lambda: Every("15m", start=start))


def test_the_first_tick_is_the_start_itself() -> None:
    assert Every("15m", start=MONDAY).after(MONDAY - timedelta(days=99)) == MONDAY


def test_there_is_no_tick_before_the_start() -> None:
    assert Every("15m", start=MONDAY).before(MONDAY) is None


def test_a_start_in_another_zone_is_kept_in_utc() -> None:
    paris = Every("1h", start=MONDAY.astimezone(ZoneInfo("Europe/Paris")))
    assert paris.start is not None
    assert paris.start.tzinfo is UTC
    assert paris == Every("1h", start=MONDAY)


def test_the_phase_shifts_every_tick() -> None:
    ticks = list(Every("1h", phase="5m").ticks(MONDAY, MONDAY + timedelta(hours=2)))
    assert ticks == [MONDAY + timedelta(minutes=5), MONDAY + timedelta(minutes=65)]


@pytest.mark.parametrize(
    ("every", "words"),
    [
        (Every(1), "every second"),
        (Every(60), "every minute"),
        (Every("2m"), "every 2 minutes"),
        (Every("1h30m"), "every 1 hour 30 minutes"),
        (Every("1d"), "every day"),
        (Every("7d"), "every week"),
        (Every("8d"), "every 1 week 1 day"),
        (Every("1h", phase="5m"), "every hour, shifted by 5 minutes"),
        (Every("1h", phase=1), "every hour, shifted by 1 second"),
        (Every("1d", start=MONDAY), "every day, from 2026-11-16T09:00:00Z on"),
    ],
)
def test_an_interval_is_described_in_words(every: Every, words: str) -> None:
    assert every.describe() == words


@pytest.mark.parametrize(
    ("every", "written", "printed"),
    [
        (Every(90), "Every('1m30s')", "every 1m30s"),
        (Every("1h", phase=60), "Every('1h', phase='1m')", "every 1h"),
        (
            Every("1h", start=MONDAY),
            "Every('1h', start=datetime.datetime(2026, 11, 16, 9, 0, tzinfo=datetime.timezone.utc))",
            "every 1h",
        ),
    ],
)
def test_an_interval_is_printed_as_it_would_be_written(every: Every, written: str, printed: str) -> None:
    assert (repr(every), str(every)) == (written, printed)


@pytest.mark.parametrize("other", [Every("60m"), Every(3600), Every(timedelta(hours=1)), Every("1h", phase="0s")])
def test_intervals_of_one_meaning_are_equal_and_hash_the_same(other: Every) -> None:
    assert Every("1h") == other
    assert hash(Every("1h")) == hash(other)


@pytest.mark.parametrize(
    ("a", "b"),
    list(
        itertools.combinations(
            [
                Every("1h"),
                Every("2h"),
                Every("1h", phase="1m"),
                Every("1h", start=MONDAY),
                Every("1h", start=datetime(1970, 1, 1, tzinfo=UTC)),  # the same ticks, but none before it
                "every 1h",
                3600,
            ],
            2,
        )
    ),
)
def test_intervals_of_different_meanings_are_different(a: object, b: object) -> None:
    assert a != b


@pytest.mark.parametrize("every", [Every("1h"), Every("1h", phase="5m"), Every("1h", start=MONDAY)])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda every: pickle.loads(pickle.dumps(every))])  # noqa: S301 (our own bytes)
def test_a_copy_is_equal_and_ticks_the_same(every: Every, copied: Any) -> None:
    other = copied(every)
    assert other == every
    assert other.after(MONDAY) == every.after(MONDAY)
