"""The newest runs as a line of characters."""

from __future__ import annotations

import io
import sys

import click
import pytest

from beat.cli.render import sparkline
from beat.history.history import Fired, Passed
from tests.support.lines import MINUTE, NINE


def run(state: str = "succeeded", duration: float | None = 1.0) -> Fired:
    return Fired(schedule_id="x", tick=NINE, job_id="j", at=NINE, beat="b", state=state, duration=duration)


SKIPPED = Passed(schedule_id="x", first=NINE, last=NINE + MINUTE, count=2, reason="misfire", at=NINE, beat="b")
CASES: dict[str, tuple[list[Fired | Passed], str, str]] = {
    "nothing": ([], "", ""),
    "all alike": ([run()] * 4, "▅▅▅▅", "===="),
    "one is longer": ([run(), run(duration=8.0), run(), run()], "▂▂█▂", "__#_"),
    "one is shorter": ([run(), run(duration=0.1), run(), run()], "▅▅▁▅", "==_="),
    "nobody measured them": ([run(duration=None)] * 2, "▁▁", "__"),
    "what did not succeed": (
        [run("failed"), run("lost"), run("stopped"), SKIPPED, run("open"), run("queued"), run("started"), run()],
        "▅○○○·!?✗",
        "=ooo.!?x",
    ),
    "no more than there is room for": ([run("failed"), *[run()] * 30], "▅" * 19 + "✗", "=" * 19 + "x"),
}


@pytest.mark.parametrize("case", CASES)
def test_runs_are_drawn_the_newest_at_the_right(case: str) -> None:
    newest_first, drawn, typed = CASES[case]
    assert sparkline.spark(newest_first, sparkline.DRAWN) == drawn
    assert sparkline.spark(newest_first, sparkline.TYPED) == typed


def test_there_is_less_where_there_is_less_room() -> None:
    assert sparkline.spark([run("failed"), run("lost"), run()], sparkline.DRAWN, 2) == "?✗"


@pytest.mark.parametrize(
    ("encoding", "sign"), [("utf-8", "✗"), ("ascii", "x"), ("latin-1", "x"), ("cp437", "x")], ids=str
)
def test_what_a_terminal_cannot_show_is_typed(encoding: str, sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert sparkline.signs().others["failed"] == sign


def test_colours_only_repeat_what_the_characters_say() -> None:
    for signs in (sparkline.DRAWN, sparkline.TYPED):
        text = signs.heights + "".join(signs.others.values())
        coloured = sparkline.painted(text)
        assert click.unstyle(coloured) == text
        assert click.style(signs.others["failed"], fg="red") in coloured
        assert click.style(signs.heights[0], fg="green") in coloured
        assert len(set(text)) == len(text)
