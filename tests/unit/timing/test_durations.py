from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beat.errors import BadDuration
from beat.timing import durations
from tests.support.chance import examples
from tests.support.declared import Number
from tests.support.refusals import accepted, refused

MILLISECOND = timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (10, timedelta(seconds=10)),
        (0, timedelta(0)),
        (-5, timedelta(seconds=-5)),  # whether it may be negative is for the user of the duration to say
        (0.5, timedelta(milliseconds=500)),
        (Number.THREE, timedelta(seconds=3)),
        (timedelta(minutes=90), timedelta(minutes=90)),
        ("10", timedelta(seconds=10)),
        ("0.25", timedelta(milliseconds=250)),
        ("10s", timedelta(seconds=10)),
        ("15m", timedelta(minutes=15)),
        ("1h30m", timedelta(minutes=90)),
        ("90m", timedelta(minutes=90)),
        ("1d", timedelta(days=1)),
        ("2w", timedelta(weeks=2)),
        ("250ms", timedelta(milliseconds=250)),
        ("1w2d3h4m5s6ms", timedelta(weeks=1, days=2, hours=3, minutes=4, seconds=5, milliseconds=6)),
        ("5m1ms", timedelta(minutes=5, milliseconds=1)),
        (" 15m\n", timedelta(minutes=15)),
    ],
)
def test_a_length_of_time_is_read_as_people_write_it(written: Any, meant: timedelta) -> None:
    assert durations.parse(written) == meant


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("", "'' is not a length of time"),
        (" ", "is not a length of time"),
        ("soon", "'soon' is not a length of time"),
        ("15 m", "'15 m' is not a length of time"),
        ("1h 30m", "'1h 30m' is not a length of time"),
        ("30m1h", "largest unit first"),
        ("1m1m", "'1m1m' is not a length of time"),
        ("1H", "'1H' is not a length of time"),
        ("5y", "'5y' is not a length of time"),
        ("m", "'m' is not a length of time"),
        ("-5s", "'-5s' is not a length of time"),
        ("+5s", "'+5s' is not a length of time"),
        ("1.5h", "'1.5h' is not a length of time"),
        ("1e3", "'1e3' is not a length of time"),
        ("0x10", "'0x10' is not a length of time"),
        ("1_000", "'1_000' is not a length of time"),
        ("nan", "'nan' is not a length of time"),
        ("inf", "'inf' is not a length of time"),
        ("٣s", "'٣s' is not a length of time"),
        ("\uff15s", "is not a length of time"),
        ("5s\0", r"'5s\x00' is not a length of time"),
        ("5s\n5s", r"'5s\n5s' is not a length of time"),
        ("9" * 13, "is not a length of time"),
        ("9" * 12 + "w", "beyond every calendar"),
        pytest.param("9" * 1_000_000, "is not a length of time", id="a megabyte of nines"),
        pytest.param("1h" * 500_000, "is not a length of time", id="a megabyte of hours"),
        (float("nan"), "finite, not nan"),
        (float("inf"), "finite, not inf"),
        (float("-inf"), "finite, not -inf"),
        (1e300, "beyond every calendar"),
        (10**400, "beyond every calendar"),
        pytest.param(-(10**5000), "beyond every calendar", id="more digits than Python prints"),
        (True, "not True"),
        (None, "not None"),
        (b"5s", "not b'5s'"),
        (["5s"], "not ['5s']"),
        ({}, "not {}"),
        (1j, "not 1j"),
        (int, "not <class 'int'>"),
    ],
)
def test_what_is_no_length_of_time_is_refused_with_examples(written: Any, words: str) -> None:
    message = refused(BadDuration, lambda: durations.parse(written, "every"))
    assert message.startswith("every ")
    assert words in message
    assert "'15m'" in message


@given(st.text() | st.from_regex(r"[0-9wdhms. ]{0,30}"))
@settings(max_examples=examples(500), deadline=None)
def test_any_text_is_read_or_refused(written: str) -> None:
    if accepted(lambda: durations.parse(written)):
        assert durations.parse(written) >= timedelta(0)


@given(st.integers() | st.floats() | st.integers(min_value=10**300) | st.booleans())
@settings(max_examples=examples(300), deadline=None)
def test_any_number_is_read_or_refused(written: float) -> None:
    if accepted(lambda: durations.parse(written)):
        assert durations.parse(written).total_seconds() == pytest.approx(written, abs=1e-6)


@given(st.integers(0, 10**14))
def test_the_short_form_is_read_as_the_same_duration(milliseconds: int) -> None:
    duration = milliseconds * MILLISECOND
    assert durations.parse(durations.short(duration)) == duration


@pytest.mark.parametrize(
    ("duration", "short", "words"),
    [
        (timedelta(0), "0s", "0 seconds"),
        (timedelta(seconds=1), "1s", "1 second"),
        (timedelta(seconds=90), "1m30s", "1 minute 30 seconds"),
        (timedelta(minutes=90), "1h30m", "1 hour 30 minutes"),
        (timedelta(days=8), "1w1d", "1 week 1 day"),
        (timedelta(weeks=2, milliseconds=5), "2w5ms", "2 weeks 5 milliseconds"),
    ],
)
def test_a_duration_is_written_short_and_in_words(duration: timedelta, short: str, words: str) -> None:
    assert (durations.short(duration), durations.words(duration)) == (short, words)
