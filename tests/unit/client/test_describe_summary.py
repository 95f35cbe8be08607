"""How an installation is doing, in one sentence: every case of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from beat.client.describe import summary
from beat.client.describe.summary import Situation
from tests.support.lines import NINE, SECOND

NEXT: dict[str, Any] = {"next_id": "cache_warm", "next_at": NINE + 41.9 * SECOND}
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "none": ({"beats": 1}, "There is no schedule yet.", "none"),
    "none, and no beat": ({}, "There is no schedule yet. No scheduler is running.", "none"),
    "all well": ({"active": 14, "beats": 1, **NEXT}, "All 14 schedules on time. Next: cache_warm in 41 s.", "good"),
    "only one": ({"active": 1, "beats": 1}, "The only schedule on time.", "good"),
    "due now": (
        {"active": 2, "beats": 1, "next_id": "a", "next_at": NINE - SECOND},
        "All 2 schedules on time. Next: a now.",
        "good",
    ),
    "many": ({"active": 10_000, "beats": 3}, "All 10,000 schedules on time.", "good"),
    "paused": ({"active": 12, "paused": 2, "beats": 1}, "12 of 14 schedules on time, 2 are paused.", "good"),
    "all paused": ({"paused": 3, "beats": 1, **NEXT}, "All 3 schedules are paused: nothing fires.", "warn"),
    "the only one paused": ({"paused": 1, "beats": 1}, "The only schedule is paused: nothing fires.", "warn"),
    "failing": (
        {"active": 14, "failing": 2, "late": 1, "beats": 1, **NEXT},
        "2 of 14 schedules are failing, 1 is late. Next: cache_warm in 41 s.",
        "bad",
    ),
    "one failing": ({"active": 14, "failing": 1, "beats": 1}, "1 of 14 schedules is failing.", "bad"),
    "all failing": ({"active": 2, "failing": 2, "beats": 1}, "All 2 schedules are failing.", "bad"),
    "the only one": (
        {"active": 1, "failing": 1, "late": 1, "beats": 1},
        "The only schedule is failing and late.",
        "bad",
    ),
    "late": ({"active": 14, "late": 3, "beats": 1}, "3 of 14 schedules are late.", "bad"),
    "broken": ({"active": 13, "broken": 1, "beats": 1}, "1 of 14 schedules is broken.", "bad"),
    "held": ({"active": 14, "held": 1, "beats": 1}, "1 of 14 schedules is held.", "warn"),
    "everything": (
        {"active": 10, "broken": 1, "paused": 3, "failing": 4, "late": 2, "held": 1, "beats": 1},
        "4 of 14 schedules are failing, 2 are late, 1 is broken, 1 is held.",
        "bad",
    ),
    "no beat": (
        {"active": 14, **NEXT},
        "No scheduler is running: nothing fires. 14 schedules wait for one.",
        "bad",
    ),
    "no beat for one": ({"active": 1}, "No scheduler is running: nothing fires. 1 schedule waits for one.", "bad"),
    "no beat, and worse": (
        {"active": 14, "failing": 2, "late": 1, **NEXT},
        "2 of 14 schedules are failing, 1 is late. No scheduler is running: nothing fires.",
        "bad",
    ),
    "one missing": (
        {"active": 2, "beats": 1, "missing": ("web-2",)},
        "All 2 schedules on time. The scheduler web-2 is missing.",
        "warn",
    ),
    "several missing": (
        {"active": 2, "beats": 1, "missing": ("a", "b", "c")},
        "All 2 schedules on time. 3 schedulers (a, b …) are missing.",
        "warn",
    ),
    "stuck": (
        {"active": 2, "beats": 1, "stuck": ("web-1",)},
        "All 2 schedules on time. The scheduler web-1 is stuck.",
        "warn",
    ),
    "the clock has jumped": (
        {"active": 2, "beats": 1, "hold_until": NINE + 50 * SECOND, **NEXT},
        "All 2 schedules on time. Redis' clock has jumped: nothing fires until 09:00:50 UTC.",
        "bad",
    ),
    "the clock lags": (
        {"active": 2, "beats": 1, "clock_s": -72.0},
        "All 2 schedules on time. Redis' clock is 1m12s behind this machine's.",
        "warn",
    ),
    "the clock is ahead": (
        {"active": 2, "beats": 1, "clock_s": 6.0},
        "All 2 schedules on time. Redis' clock is 6 s ahead of this machine's.",
        "warn",
    ),
    "clocks differ a little": ({"active": 2, "beats": 1, "clock_s": -4.0}, "All 2 schedules on time.", "good"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_sentence(name: str) -> None:
    given, sentence, level = CASES[name]
    found = Situation(now=NINE, **given)
    assert (summary.sentence(found), summary.level(found)) == (sentence, level)


def test_what_has_finished_or_is_retired_is_not_spoken_of() -> None:
    assert Situation(now=NINE, active=3, paused=1, broken=1).schedules == 5
    assert Situation(now=NINE, failing=2).schedules == 2, "a retired one may have failed when it last ran"


def test_a_state_says_the_same_while_time_passes() -> None:
    """It is read aloud when it changes: what counts down is not a part of it."""
    at = [Situation(now=NINE + n * timedelta(seconds=1), active=14, beats=1, **NEXT) for n in range(3)]
    assert len({summary.state(each) for each in at}) == 1
    assert len({summary.following(each) for each in at}) == 3
