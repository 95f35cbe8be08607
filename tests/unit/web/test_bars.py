"""The newest runs as bars: how high, how filled, and what they say."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from beat.web.charts import bars
from beat.web.charts.bars import Bar


def bar(outcome: str = "succeeded", seconds: float | None = 3.0, words: str = "09:00", **other: int) -> Bar:
    return Bar(outcome, seconds, words, "/schedules/x/runs/y", **other)


def links(drawn: str) -> list[ET.Element]:
    return ET.fromstring(drawn).findall("a")  # noqa: S314 (ours)


def heights(*drawn: Bar) -> list[float]:
    return [bars.height(each, bars.longest(drawn)) for each in drawn]


def test_the_newest_stands_at_the_right_however_few_there_are() -> None:
    few, many = (links(bars.drawn([bar(words=f"run {n}") for n in range(number)])) for number in (2, 40))
    assert [each.findtext("title") for each in few] == ["run 0", "run 1"]
    assert [each.findtext("title") for each in many] == [f"run {n}" for n in range(10, 40)]
    places = [[int(re.match(r"M(\d+)", each[-1].attrib["d"])[1]) for each in drawn] for drawn in (few, many)]  # type: ignore[index]
    assert places[0] == places[1][-2:]


def test_what_takes_as_long_as_most_is_half_as_high_as_what_takes_twice_as_long() -> None:
    *usual, longer = heights(*[bar(seconds=3)] * 9, bar(seconds=6))
    assert set(usual) == {longer / 2}


def test_one_that_takes_much_longer_stands_out_and_makes_no_others_low() -> None:
    *usual, longest = heights(*[bar(seconds=3)] * 29, bar(seconds=3000))
    assert longest > 2 * usual[0]
    assert min(usual) > 10


def test_what_failed_at_once_is_not_overlooked() -> None:
    _, succeeded, failed, unknown = heights(bar(seconds=60), bar(seconds=0), bar("failed", 0), bar("lost", None))
    assert succeeded * 3 < failed == unknown


@pytest.mark.parametrize("outcome", ["failed", "stopped", "lost", "skipped"])
def test_what_did_not_succeed_has_a_pattern_of_its_own(outcome: str) -> None:
    [link] = links(bars.drawn([bar(outcome)]))
    assert link[-1].attrib["fill"] == f"url(#p-{outcome})"


@pytest.mark.parametrize("outcome", ["open", "queued", "started", "<script>"])
def test_what_has_not_ended_is_open(outcome: str) -> None:
    assert links(bars.drawn([bar(outcome, None)]))[0][-1].attrib["fill"] == "url(#p-open)"


@pytest.mark.parametrize("seconds", [None, 0.0, -1.0, float("nan"), float("inf"), 10.0**300])
def test_whatever_a_duration_is_the_drawing_is_one(seconds: float | None) -> None:
    for outcome in ("succeeded", "failed", "started"):
        drawn = bars.drawn([bar(outcome, seconds), bar()])
        assert len(links(drawn)) == 2
        assert not re.search("nan|inf", drawn)
        assert all(float(high) <= 36 for high in re.findall(r"v-([\d.]+)", drawn))


def test_words_and_addresses_are_escaped() -> None:
    hostile = """"'><script>alert(1)</script>&"""
    drawn = bars.drawn([Bar("failed", 1.0, hostile, f"/schedules/{hostile}")])
    assert "<script" not in drawn
    [link] = links(drawn)
    assert (link.findtext("title"), link.attrib["href"]) == (hostile, f"/schedules/{hostile}")


@pytest.mark.parametrize(
    ("drawn", "words"),
    [
        ([], "no run yet"),
        ([bar()], "1 run: 1 succeeded"),
        ([bar()] * 28 + [bar("failed")] * 2, "30 runs: 28 succeeded, 2 failed"),
        ([bar("lost"), bar("stopped"), bar("started")], "3 runs: 1 stopped, 1 lost, 1 not ended"),
        ([bar(), bar("skipped", None, ticks=4)], "1 run: 1 succeeded; 4 ticks skipped"),
        ([bar("skipped", None)], "no run yet; 1 tick skipped"),
        ([bar("failed")] * 9 + [bar()] * 30, "30 runs: 30 succeeded"),
    ],
    ids=["none", "one", "two kinds", "others", "skipped", "only skipped", "the newest alone"],
)
def test_what_they_show_is_told_in_words(drawn: list[Bar], words: str) -> None:
    assert bars.summary(drawn) == words


def test_how_long_most_take_is_told_where_it_is_known() -> None:
    assert bars.usual([bar(seconds=2), bar("failed", 3), bar(seconds=400), bar("skipped", None)]) == "median 3 s"
    assert bars.usual([bar("started", None)]) == ""
