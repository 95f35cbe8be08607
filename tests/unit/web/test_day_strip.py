"""The strip of a day: what is drawn where, and that nothing gets through unescaped."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from datetime import timedelta
from typing import Any

import pytest

from beat.client.timeline import PileUp, Slice, Timeline
from beat.timing.zones import zone
from beat.web.charts import day_strip
from beat.web.charts.day_strip import Scale
from tests.support.lines import NINE

HALF, HOUR = timedelta(minutes=30), timedelta(hours=1)
UTC = zone("UTC")


def day(*, now: Any = NINE, slices: dict[int, dict[str, int]] | None = None, **other: Any) -> Timeline:
    """A day to both sides of nine o'clock; `slices` by how many half hours they are after it."""
    told = slices or {}
    made = tuple(Slice(NINE + n * HALF, NINE + (n + 1) * HALF, **told.get(n, {})) for n in range(-48, 48))
    usual: dict[str, Any] = {
        "pile_ups": (), "more_pile_ups": 0, "schedules": 1, "active": 1, "overdue": 0, "partial": 0,
        "whole_from": None, "unreadable": 0, "often": 0,
    }  # fmt: skip
    return Timeline(now=now, step=HALF, slices=made, **usual | other)


def drawn(found: Timeline, where: Any = UTC) -> ET.Element:
    """Which is well formed."""
    return ET.fromstring(str(day_strip.strip(found, where)))  # noqa: S314 (it is our own)


def bars(found: Timeline) -> list[tuple[float, str, float]]:
    """Where each begins, in per cent, what it is, and how high."""
    rects = [each for each in drawn(found).iter("rect") if each.get("class") != "hit"]
    named = [(each.get("class") or each.get("fill") or "", each) for each in rects]
    return [(float(str(r.get("x")).rstrip("%")), name, float(str(r.get("height")))) for name, r in named]


def test_an_empty_day_is_an_axis_and_a_line_for_now() -> None:
    found = day()
    assert bars(found) == []
    assert "now 09:00" in "".join(drawn(found).itertext())
    assert day_strip.words(found, UTC).endswith("So far: nothing. To come: 0 ticks.")
    assert day_strip.hours(found, UTC) == []


def test_what_ran_is_left_of_now_and_what_comes_is_right_of_it_and_hollow() -> None:
    found = day(slices={-1: {"succeeded": 2}, 0: {"coming": 3}})
    (left, past, _), (right, coming, _) = bars(found)
    assert (past, coming) == ("f-succeeded", "f-coming")
    assert left < 50 == pytest.approx(right)


def test_outcomes_stand_on_each_other_each_with_its_pattern_the_worst_at_the_foot() -> None:
    every = {"failed": 1, "lost": 1, "stopped": 1, "open": 1, "succeeded": 5, "skipped": 1}
    names = [name for _, name, _ in bars(day(slices={-4: every}))]
    assert names == [
        "url(#p-failed)", "url(#p-lost)", "url(#p-stopped)", "url(#p-open)", "f-succeeded", "url(#p-skipped)",
    ]  # fmt: skip


def test_one_that_failed_among_a_million_is_seen() -> None:
    found = day(slices={-4: {"failed": 1, "succeeded": 1_000_000}, -3: {"succeeded": 1_000_000}})
    heights = {name: high for _, name, high in bars(found)}
    assert heights["url(#p-failed)"] == 3
    assert max(heights.values()) <= 92, "and no bar is higher than its room"


def test_a_day_with_one_slice_fills_its_room() -> None:
    [(left, name, high)] = bars(day(slices={-4: {"succeeded": 1}}))
    assert (left, name, high) == (45.833, "f-succeeded", 92)


def test_heights_are_square_roots_where_one_slice_dwarfs_the_others() -> None:
    even = {n: {"succeeded": 10} for n in range(-48, -1)}
    assert not Scale.of(day(slices=even).slices).roots
    dwarfed = Scale.of(day(slices={**even, -1: {"succeeded": 1000}}).slices)
    assert (dwarfed.highest, dwarfed.roots) == (1000, True)
    assert dwarfed.height(10) == pytest.approx(9.2)


def test_past_and_future_have_one_scale_however_different_they_are() -> None:
    found = day(slices={-2: {"succeeded": 4}, -1: {"failed": 2}, **{n: {"coming": 700} for n in range(48)}})
    heights = {name: high for _, name, high in bars(found)}
    assert heights == {"f-succeeded": 7.0, "url(#p-failed)": 4.9, "f-coming": 92}, "the roots keep the past readable"
    assert Scale.of(found.slices).words == "the highest bar is 700"
    assert Scale.of(found.slices).roots


def test_what_is_as_much_is_as_high() -> None:
    found = day(slices={-2: {"succeeded": 4}, 1: {"coming": 4}, 2: {"coming": 700}})
    heights = [high for _, _, high in bars(found)]
    assert heights[0] == heights[1] < heights[2]


def test_both_sides_are_compared_by_eye() -> None:
    found = day(slices={-1: {"succeeded": 10}, 0: {"coming": 40}})
    assert {name: high for _, name, high in bars(found)} == {"f-succeeded": 23, "f-coming": 92}
    assert Scale.of(found.slices).words == "the highest bar is 40"
    assert Scale.of(day().slices).words == ""
    assert Scale.of(day(slices={0: {"coming": 7}}).slices).words == "the highest bar is 7"


def test_hours_are_those_of_the_viewer() -> None:
    texts = [each.text for each in drawn(day(), zone("Asia/Kolkata")).iter("text")]
    assert "now 14:30" in texts
    assert {"18:00", "Tue 17"} <= {*texts}
    assert texts.count("18:00") == 2, "a day has one, to both sides"


def test_hours_are_those_of_the_viewer_on_the_day_when_a_clock_is_put_back() -> None:
    at = NINE.replace(month=10, day=25)
    slices = tuple(Slice(at + n * HALF, at + (n + 1) * HALF, succeeded=1) for n in range(-48, 48))
    found = day(now=at, slices={})
    made = Timeline(**{**vars(found), "slices": slices})
    rows = day_strip.hours(made, zone("Europe/Berlin"))
    assert [row.counts["succeeded"] for row in rows if f"{row.start:%d %H}" == "25 02"] == [2, 2], "twice two o'clock"
    drawn(made, zone("Europe/Berlin"))


def test_the_table_says_what_the_drawing_does() -> None:
    found = day(slices={-2: {"succeeded": 2, "failed": 1}, -1: {"succeeded": 3}, 0: {"coming": 4}})
    assert [(row.start, row.counts) for row in day_strip.hours(found, UTC)] == [
        (NINE - HOUR, {"succeeded": 5, "failed": 1}),
        (NINE, {"coming": 4}),
    ]
    assert day_strip.sums(found) == {"succeeded": 5, "failed": 1, "coming": 4}


def test_pile_ups_are_marked_and_counted() -> None:
    piles = tuple(PileUp(NINE + n * HOUR, 1, 40 - n, ("a", "b")) for n in (2, 12, 2, 20))
    found = day(slices={4: {"coming": 40}}, pile_ups=piles, more_pile_ups=1)
    marks = [each for each in drawn(found).iter("g") if each.get("class") == "pile"]
    assert len(marks) == 3, "two in one place are one mark"
    assert "pile-ups: 5" in day_strip.words(found, UTC)


def test_every_bar_says_what_it_is() -> None:
    found = day(slices={-1: {"succeeded": 1_200, "failed": 1}, 2: {"coming": 3}})
    titles = [each.text for each in drawn(found).iter("title")]
    assert titles == ["Mon 08:30 to 09:00: 1,200 succeeded, 1 failed", "Mon 10:00 to 10:30: 3 to come"]


def test_nothing_is_drawn_with_a_style_or_a_script() -> None:
    """The page's policy would not let it; and what is not ours is escaped."""
    text = str(day_strip.strip(day(slices={-1: {"succeeded": 1}}), UTC))
    assert not re.search(r"style=|<script|on\w+=", text)
    hostile = Slice(NINE - HALF, NINE, succeeded=1)
    named = Timeline(**{**vars(day()), "slices": (hostile,)})
    assert "<" not in day_strip.words(named, UTC)
