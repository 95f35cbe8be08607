"""Sums that say nothing which was not measured."""

from __future__ import annotations

import statistics as reference
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.history.history import Change, Fired, Line, Passed
from beat.history.statistics import Spread, Statistics, spread, summarise

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def fired(n: int = 0, state: str = "succeeded", **other: Any) -> Fired:
    given = {"schedule_id": "report", "tick": NINE + n * MINUTE, "job_id": f"job_{n}", "at": NINE + n * MINUTE}
    return Fired(**{**given, "beat": "web-1", "state": state, **other})


def passed(count: int, reason: str) -> Passed:
    return Passed(
        schedule_id="report", first=NINE, last=NINE, count=count, reason=reason, at=NINE + MINUTE, beat="web-1"
    )


def test_nothing_has_no_statistics() -> None:
    found = summarise([])
    assert found == Statistics()
    assert found.success_rate is None


def test_runs_are_counted_by_what_became_of_them() -> None:
    states = ["succeeded"] * 5 + ["failed"] * 2 + ["lost", "stopped", "open", "queued", "started"]
    found = summarise(fired(n, state) for n, state in enumerate(states))
    assert (found.runs, found.open, found.succeeded, found.failed, found.lost, found.stopped) == (12, 3, 5, 2, 1, 1)


@pytest.mark.parametrize(
    ("states", "rate"),
    [
        (["succeeded"], 1.0),
        (["failed"], 0.0),
        (["lost"], 0.0),
        (["succeeded", "succeeded", "failed", "lost"], 0.5),
        (["succeeded", "stopped", "open"], 1.0),
        (["stopped", "open"], None),
    ],
)
def test_the_success_rate_is_of_runs_that_succeeded_or_failed(states: list[str], rate: float | None) -> None:
    assert summarise(fired(n, state) for n, state in enumerate(states)).success_rate == rate


def test_durations_are_those_that_were_measured() -> None:
    found = summarise([fired(0, duration=1.0), fired(1, "failed", duration=3.0), fired(2, "lost"), fired(3, "open")])
    assert found.duration == Spread(count=2, p50=1.0, p95=3.0, max=3.0)


def test_lateness_is_of_ticks_only() -> None:
    found = summarise([fired(0, late_ms=4), fired(1, late_ms=0, tick=None), fired(2, late_ms=None)])
    assert found.late_ms == Spread(count=1, p50=4, p95=4, max=4)


def test_waits_are_those_that_are_known() -> None:
    found = summarise(
        [
            fired(0, enqueued_at=NINE, started_at=NINE + 2 * SECOND, attempts=1),
            fired(1, enqueued_at=NINE, started_at=NINE + 9 * SECOND, attempts=2),
            fired(2, enqueued_at=NINE),
        ]
    )
    assert found.wait == Spread(count=1, p50=2.0, p95=2.0, max=2.0)


def test_skipped_ticks_are_counted_by_reason() -> None:
    found = summarise([passed(3, "misfire"), passed(4, "paused"), passed(5, "misfire")])
    assert (found.skipped, found.runs) == ({"misfire": 8, "paused": 4}, 0)


def test_it_says_how_far_it_looked_back() -> None:
    change = Change(
        schedule_id="report", type="registered", rev="a", rule={}, was=None, before=None, next=NINE, at=NINE - MINUTE,
        beat="web-1",
    )  # fmt: skip
    lines: list[Line] = [fired(2), fired(1), change]
    assert summarise(lines).since == NINE - MINUTE
    assert summarise(reversed(lines)).since == NINE - MINUTE


@pytest.mark.parametrize(
    ("values", "p50", "p95"),
    [
        ([7], 7, 7),
        ([1, 2], 1, 2),
        ([1, 2, 3], 2, 3),
        (range(1, 101), 50, 95),
        (range(1, 21), 10, 19),
        (range(1, 20), 10, 19),
    ],
)
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(values: Any, p50: int, p95: int) -> None:
    found = spread(reversed(values))
    assert found == Spread(len(values), p50, p95, max(values))


def test_nothing_has_no_spread() -> None:
    assert spread([]) is None
    assert spread([None, None]) is None


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_a_spread_is_made_of_values_that_are_there(values: list[float]) -> None:
    found = spread([None, *values])
    assert found is not None
    assert {found.p50, found.p95, found.max} <= set(values)
    assert found.p50 <= found.p95 <= found.max == max(values)
    assert found.p50 == reference.median_low(values)
    assert sum(value <= found.p95 for value in values) >= 0.95 * len(values)
    assert sum(value < found.p95 for value in values) < 0.95 * len(values)
