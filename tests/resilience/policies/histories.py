"""Histories by chance: any policies that go together, outages, and runs that are quick, slow, or never end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from tests.resilience.policies.company import Shared
from tests.resilience.policies.stage import History, Pass
from tests.resilience.policies.workers import DEATHS, Plan

NOON, MIDNIGHT = datetime(2026, 11, 16, 12, tzinfo=UTC), datetime(2026, 11, 16, 23, 59, 30, tzinfo=UTC)
PERIODS = (1, 2, 7, 10, 60, 3600, 6 * 3600)
CRONS = {"* * * * *": 60, "*/5 * * * *": 300, "0 * * * *": 3600, "30 8,20 * * *": 43_200}


def _rarely(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.none() | strategy


@st.composite
def _options(draw: st.DrawFn, begins: datetime) -> tuple[dict[str, Any], int]:
    """What a schedule says, and about how many seconds lie between its ticks."""
    cron = draw(_rarely(st.sampled_from([*CRONS])))
    period = CRONS[cron] if cron else draw(st.sampled_from(PERIODS))
    times = st.sampled_from([0.5, 1, 3, 10]).map(lambda n: timedelta(seconds=n * period))
    shift = st.integers(-3, 12).map(lambda n: begins + timedelta(seconds=n * period))
    misfire, overlap = draw(st.sampled_from(["once", "skip", "all"])), draw(st.sampled_from(OVERLAPS))
    drawn = {
        "tz": draw(_rarely(st.sampled_from(["America/New_York", "Asia/Kolkata"]))),
        "misfire_after": draw(_rarely(times)),
        "catchup_window": None if misfire == "skip" else draw(_rarely(times)),
        "catchup_limit": draw(_rarely(st.integers(1, 4))) if misfire == "all" else None,
        "max_running": draw(_rarely(st.integers(1, 3))) if overlap in {"skip", "wait"} else None,
        "max_waiting": draw(_rarely(st.integers(1, 3))) if overlap == "wait" else None,
        "max_runs": draw(_rarely(st.integers(1, 8))),
        "exclude": draw(_rarely(st.sampled_from(RESTS))) if period >= 300 else None,  # a day has so many ticks
        "jitter": draw(_rarely(times.map(lambda n: min(n, timedelta(days=1))))),
        "start": draw(_rarely(shift)),
        "end": draw(_rarely(shift)),
    }
    if drawn["start"] and drawn["end"] and drawn["start"] >= drawn["end"]:
        drawn["end"] = None
    rule = {} if cron else {"every": period}
    said = {name: value for name, value in drawn.items() if value is not None}
    return {**rule, "misfire": misfire, "overlap": overlap, **said} | ({"cron": cron} if cron else {}), period


RESTS = (["2026-11-16"], ["2026-11-17"], ["2026-11-17..2026-11-18"])
OVERLAPS = ("allow", "skip", "skip", "wait", "wait", "replace")


@st.composite
def histories(draw: st.DrawFn) -> History:
    """One of them."""
    begins = draw(st.sampled_from([NOON, MIDNIGHT]))
    options, period = draw(_options(begins))
    # No slot is looked at more often than once in 0.9 s unless a tick is due.
    gaps = st.none() | st.sampled_from([0.3, 1, 2.5, 4, 12, 12, 40]).map(lambda n: max(1, n * period))
    lengths = st.sampled_from([0, 0.5, 1.5, 5]).map(lambda n: n * period)
    fates = st.sampled_from(["finished", "finished", "failed", *DEATHS])
    return History(
        options=options,
        passes=draw(st.lists(st.builds(Pass, gaps, st.booleans()), min_size=3, max_size=14)),
        plans=draw(st.lists(st.builds(Plan, lengths, lengths, fates, st.booleans()), min_size=1, max_size=5)),
        begins=begins,
        settings={"page_size": draw(st.sampled_from([100, 3]))},
    )


@st.composite
def groups(draw: st.DrawFn) -> Shared:
    """Schedules that share room."""
    waits = draw(st.sampled_from([True, True, False]))
    limits: dict[str, Any] = {"max_running": draw(st.integers(1, 3))}
    limits |= {"max_waiting": draw(st.sampled_from([1, 2, 3, 20]))} if waits else {"when_full": "skip"}
    period = draw(st.sampled_from([1, 7, 60]))
    lengths = st.sampled_from([0, 0.5, 1.5, 5]).map(lambda n: n * period)
    fates = st.sampled_from(["finished", "finished", "finished", "failed", *DEATHS])
    gaps = st.sampled_from([0.5, 1, 1, 2.5, 12]).map(lambda n: max(1, n * period))
    return Shared(
        limits,
        draw(st.lists(_members(period), min_size=2, max_size=3)),
        draw(st.lists(st.builds(Pass, gaps, st.booleans()), min_size=3, max_size=12)),
        draw(st.lists(st.builds(Plan, lengths, lengths, fates, st.booleans()), min_size=1, max_size=5)),
        NOON,
    )


@st.composite
def _members(draw: st.DrawFn, period: int) -> dict[str, Any]:
    """What one of them says."""
    overlap, misfire = draw(st.sampled_from(OVERLAPS)), draw(st.sampled_from(["once", "skip", "all"]))
    said = {
        "every": period * draw(st.sampled_from([1, 1, 2])),
        "overlap": overlap,
        "misfire": misfire,
        "max_running": draw(_rarely(st.integers(1, 3))) if overlap in {"skip", "wait"} else None,
        "max_waiting": draw(_rarely(st.integers(1, 3))) if overlap == "wait" else None,
        "max_runs": draw(_rarely(st.integers(1, 8))),
    }
    return {name: value for name, value in said.items() if value is not None}
