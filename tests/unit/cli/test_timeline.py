"""The drawing of a timeline, character by character: on 80 columns and on 200."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.cli.render import timeline as chart
from beat.client.timeline import FEWEST, LONGEST, MOST, Slice, Timeline, cut
from beat.timing import clock
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

HOUR = timedelta(hours=1)
NOW = clock.read("2026-11-17T02:17:40Z")
BERLIN, UTC = zone("Europe/Berlin"), zone("UTC")


def timeline(columns: int, past: Callable[[datetime], dict[str, int]], coming: Callable[[datetime], int]) -> Timeline:
    """A day to both sides of NOW; what happens in a slice is asked by its beginning in Berlin."""
    step, edges = cut(NOW, 24, columns - chart.MARGIN - 1, BERLIN)
    made = []
    for a, b in itertools.pairwise(edges):
        local = a.astimezone(BERLIN.info)
        made.append(Slice(a, b, **past(local)) if a < NOW else Slice(a, b, coming=coming(local)))
    return Timeline(
        now=NOW, step=step, slices=tuple(made), pile_ups=(), more_pile_ups=0, schedules=1, active=1, overdue=0,
        partial=0, whole_from=None, unreadable=0, often=0,
    )  # fmt: skip


def a_day(local: datetime) -> dict[str, int]:
    """Some each hour, many at midnight; at five some failed, and from two to four in the afternoon all was skipped."""
    if local.hour in {14, 15}:
        return {"skipped": 12}
    if local.minute:
        return {"succeeded": 3}
    odd = {5: {"succeeded": 10, "failed": 2}, 22: {"succeeded": 9, "stopped": 1, "lost": 2}, 3: {"open": 4}}
    return {0: {"succeeded": 40}, **odd}.get(local.hour, {"succeeded": 12})


def tomorrow(local: datetime) -> int:
    return 3 if local.minute else 40 if local.hour == 0 else 12


def drawn(found: Timeline) -> list[str]:
    return [click.unstyle(line) for line in chart.chart(found, BERLIN)]


def test_a_day_on_80_columns() -> None:
    assert drawn(timeline(80, a_day, tomorrow)) == [
        "jobs per hour              now 03:17 CET",
        "    40 ┤                     █   ┊                     █",
        "       │                     █   ┊                     █",
        "       │                     █   ┊                     █",
        "       │                     █   ┊                     █",
        "       │                     █   ┊                     █",
        "       │ ▃▃▃▃▃▃▃▃▃▃  ▃▃▃▃▃▃▃▃█▃▃ ┊ ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃█▃▃▃",
        "       │ ██████████  ███████████ ┊ ████████████████████████",
        "       │▆██████████  ███████████▆┊▅████████████████████████",
        "     0 └─────────┬───────────┬───┴─────────┬───────────┬───",
        "               12:00      Tue 17         12:00      Wed 18",
        "failed    2",
        "lost                       2",
        "stopped                    1",
        "skipped            ++",
        "open    4                       4",
    ]


WIDE = """\
jobs per 20 minutes                                                        now 03:17 CET
    40 ┤                                                               █         ┊                                                               █
       │                                                               █         ┊                                                               █
       │                                                               █         ┊                                                               █
       │                                                               █         ┊                                                               █
       │                                                               █         ┊                                                               █
       │   ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃        ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  █  ▃  ▃   ┊   ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  ▃  █  ▃  ▃  ▃
       │   █  █  █  █  █  █  █  █  █  █        █  █  █  █  █  █  █  █  █  █  █   ┊   █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █  █
       │▆▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅      █▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅▆┊▅▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█▅▅█
     0 └┬────────┬────────┬────────┬────────┬────────┬────────┬────────┬────────┬┴─────────┬────────┬────────┬────────┬────────┬────────┬────────┬─────────
      03:00    06:00    09:00    12:00    15:00    18:00    21:00   Tue 17    03:00      06:00    09:00    12:00    15:00    18:00    21:00   Wed 18
failed        2
lost                                                             2
stopped                                                          1
skipped                                  ++++++
open    4                                                                       4
"""  # noqa: E501 (as wide as the terminal)


def test_a_day_on_200_columns() -> None:
    assert drawn(timeline(200, a_day, tomorrow)) == WIDE.splitlines()


@pytest.mark.parametrize("columns", [40, 80, 97, 120, 200, 317])
def test_no_line_is_longer_than_the_terminal(columns: int) -> None:
    assert max(map(len, drawn(timeline(columns, a_day, tomorrow)))) <= columns


def test_what_went_worst_is_seen_at_the_foot_of_its_bar_even_if_it_is_one_of_many() -> None:
    found = timeline(80, lambda _: {"succeeded": 9_999, "failed": 1}, lambda _: 10_000)
    *_, foot, _, _, failed = chart.chart(found, BERLIN)
    assert foot.count("\x1b[31m") == 1, "one run of red cells, all through the past"
    assert f"\x1b[31m{'█' * 25}\x1b[0m" in foot
    assert failed.endswith(f"{'1' * 25}\x1b[0m")


def test_a_bar_is_stacked_by_outcome() -> None:
    found = timeline(80, lambda _: {"succeeded": 50, "failed": 50}, lambda _: 0)
    bars = chart.chart(found, BERLIN)[1:9]
    assert ["\x1b[31m" in row for row in bars] == [False] * 4 + [True] * 4
    assert ["\x1b[32m" in row for row in bars] == [True] * 4 + [False] * 4


def test_what_is_coming_is_dim() -> None:
    found = timeline(80, lambda _: {}, lambda _: 7)
    assert all("\x1b[2m█" in row for row in chart.chart(found, BERLIN)[1:9])


def test_the_least_is_seen_beside_the_most() -> None:
    found = timeline(80, lambda local: {"succeeded": 100_000 if local.hour == 12 else 1}, lambda _: 0)
    assert drawn(found)[8] == f"       │{'▁' * 9}█{'▁' * 15}┊"


def test_where_not_all_is_known_a_lane_says_so() -> None:
    found = replace(timeline(80, a_day, tomorrow), partial=1, whole_from=NOW - 22.5 * HOUR)
    assert drawn(found)[-1] == "partial ??"


def test_an_empty_day_has_an_axis_and_no_bars() -> None:
    rows = drawn(timeline(80, lambda _: {}, lambda _: 0))
    assert rows[1] == "     0 ┤                         ┊"
    assert rows[-1].split() == ["12:00", "Tue", "17", "12:00", "Wed", "18"]


def test_the_times_are_those_of_the_zone() -> None:
    step, edges = cut(NOW, 24, 71, UTC)
    found = replace(timeline(80, a_day, tomorrow), step=step, slices=tuple(map(Slice, edges, edges[1:])))
    assert "now 02:17 UTC" in click.unstyle(chart.chart(found, UTC)[0])


@pytest.mark.parametrize(
    ("number", "written"),
    [(0, "0"), (99_999, "99,999"), (100_000, "100k"), (86_400_000, "86,400k"), (100_000_000, "100M")],
)
def test_a_number_has_room_beside_the_axis(number: int, written: str) -> None:
    assert chart.short(number) == written


# How time is cut


@pytest.mark.parametrize(
    ("hours", "slices", "minutes"),
    [(1, 71, 2), (1, 191, 1), (24, 71, 60), (24, 191, 20), (168, 71, 360), (168, 20, 1440)],
)
def test_slices_are_as_short_as_fits(hours: int, slices: int, minutes: int) -> None:
    step, edges = cut(NOW, hours, slices, UTC)
    assert step == timedelta(minutes=minutes)
    assert len(edges) - 1 <= slices


@given(
    st.integers(0, 4_000_000_000_000).map(clock.from_ms),
    st.integers(1, LONGEST),
    st.integers(FEWEST, MOST),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "America/St_Johns"]),
)
def test_slices_cover_the_hours_to_both_sides_and_now_is_an_edge(
    now: datetime, hours: int, slices: int, tz: str
) -> None:
    step, edges = cut(now, hours, slices, zone(tz))
    assert len(edges) - 1 <= slices
    assert edges == sorted(set(edges))
    assert now in edges
    assert edges[0] <= now - hours * HOUR < edges[0] + step
    assert edges[-1] - step <= now + hours * HOUR < edges[-1]
    assert all(b - a <= step for a, b in itertools.pairwise(edges))


def test_slices_begin_at_full_hours_of_a_zone_that_is_half_an_hour_off() -> None:
    _, edges = cut(NOW, 24, 71, zone("Asia/Kolkata"))
    there = [edge.astimezone(zone("Asia/Kolkata").info) for edge in edges if edge != NOW]
    assert {each.minute for each in there} == {0}
