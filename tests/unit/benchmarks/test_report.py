"""What is made of a run's figures: budgets that are met or not, tables, a page, a plot, and a line for who waits."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import __main__ as program
from benchmarks import plot, report
from benchmarks.budgets import LEAST, MOST, Budget, budgets
from benchmarks.figures import Figure, Figures, ratio
from benchmarks.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

AT = {"schedules": 10_000, "queues": 1}


def fires(*rates: float | None, who: str = "beat", **at: int) -> Figure:
    return Figure("fires", "fires per second", rates, "/s", who, {**AT, **at})


def budget(figures: Figures, words: str) -> Budget:
    (found,) = [each for each in budgets(figures) if words in each.what]
    return found


# --- figures ---------------------------------------------------------------------------------------------------------


def test_a_figure_is_its_median_and_says_how_far_the_runs_lie_apart() -> None:
    figure = Figure("x", "y", (90, 100, 120), "ms")
    assert (figure.median, figure.spread) == (100, 0.15)


def test_a_figure_is_found_by_what_it_is_about() -> None:
    figures = Figures([fires(5, who="rq cron"), fires(6, queues=10), fires(7)])
    assert figures.median("fires per second", AT) == 7
    assert figures.median("fires per second", {"queues": 10}) == 6
    assert figures.median("fires per second", AT, "rq cron") == 5
    assert figures.median("fires per second", {"queues": 100}) is None
    assert figures.find("idle pass") is None


def test_a_repetition_that_failed_is_not_in_the_median_nor_in_the_spread() -> None:
    figure = Figure("x", "y", (90, None, 100, 120), "ms")
    assert (figure.median, figure.spread, figure.known) == (100, 0.15, (90, 100, 120))


def test_a_ratio_is_the_median_of_those_within_a_round_and_not_the_ratio_of_the_medians() -> None:
    one, other = fires(10, 20, 90), fires(10, 40, 30)
    assert ratio(one, other) == 1
    assert one.median / other.median == pytest.approx(2 / 3)


def test_a_round_in_which_one_of_the_two_failed_counts_for_neither() -> None:
    assert ratio(fires(None, 50, 200, 90), fires(10, None, 25, 10)) == 8.5


@pytest.mark.parametrize(
    ("one", "other"), [((30, 10, 20), (5, 4)), ((20,), (4, 5)), ((None, 20), (4.5, None)), ((20,), (4.5,))]
)
def test_figures_without_common_rounds_are_compared_by_their_medians(
    one: tuple[float | None, ...], other: tuple[float | None, ...]
) -> None:
    assert ratio(fires(*one), fires(*other)) == pytest.approx(20 / 4.5)


def test_there_is_no_ratio_to_nothing() -> None:
    assert [ratio(fires(1), fires(0)), ratio(fires(1), None), ratio(None, fires(1))] == [None] * 3
    assert ratio(fires(0), fires(5)) == 0
    assert ratio(fires(3, 8), fires(0, 4)) == 2, "a repetition of nothing has no ratio either"


# --- budgets ---------------------------------------------------------------------------------------------------------


def test_a_budget_is_a_ratio_of_two_figures_of_the_same_circumstances() -> None:
    figures = Figures([fires(12_000), fires(1_000, who="rq cron"), fires(1, who="rq cron", queues=10)])
    beside = budget(figures, "rq cron")
    assert (beside.measured, beside.allowed, beside.sense, beside.met) == (12, 10, LEAST, True)


def test_a_budget_that_is_a_ratio_is_held_within_rounds() -> None:
    beside_it = Figures([fires(500, 1200, 900), fires(50, 100, 60, who="rq cron")])
    assert budget(beside_it, "rq cron").measured == 12
    at = {"schedules": 10_000}
    passes = Figures(
        Figure("policies", "pass", values, "s", who, at)
        for who, values in (
            ("beat, plain", (1.0, 2.0, 3.0)),
            ("beat", (1.1, 4.0, 3.3)),
            ("beat, place", (1.2, 1.0, 3.6)),
        )
    )
    assert budget(passes, "30 % with policies").measured == pytest.approx(1.1)
    assert budget(passes, "policies of place").measured == pytest.approx(1.2)
    times = [("beat CPU per fire", (60, 90, 150)), ("Redis time per fire", (100, 50, 300))]
    of_both = Figures(Figure("fires", what, values, "µs", at=AT) for what, values in times)
    assert budget(of_both, "Python's time").measured == pytest.approx(0.6)


@pytest.mark.parametrize(("rate", "met"), [(14_999, False), (15_000, True)])
def test_a_budget_is_met_or_not(rate: float, met: bool) -> None:  # noqa: FBT001 (a case)
    assert budget(Figures([fires(rate), fires(10_000, who="enqueue_many")]), "enqueue_many").met is met


def test_what_was_not_measured_is_neither_met_nor_not() -> None:
    assert {each.met for each in budgets(Figures())} == {None}
    assert all(each.measured is None for each in budgets(Figures()))


def test_the_worst_takeover_counts_not_the_median() -> None:
    figures = Figures([Figure("takeover", "takeover, claimed", (2, 3, 11), "s")])
    assert budget(figures, "kill -9, claimed").met is False


def test_the_slowest_shape_counts() -> None:
    figures = Figures(
        Figure("parts", "Cron.after", (value,), "µs", who, {"shape": shape})
        for shape, who, value in [("a", "beat", 1), ("a", "croniter", 50), ("b", "beat", 2), ("b", "croniter", 18)]
    )
    assert budget(figures, "Cron.after").measured == 9


def test_every_budget_says_what_it_is_about_and_in_which_sense() -> None:
    found = list(budgets(Figures()))
    assert len({each.what for each in found}) == len(found) >= 25
    assert {each.sense for each in found} == {MOST, LEAST}


# --- report ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (0.01234, "0.0123"), (4.5678, "4.57"), (99.96, "100"), (999.4, "999"), (12_345.6, "12,346")],
)
def test_numbers_are_as_short_as_three_digits_allow(value: float, shown: str) -> None:
    assert report.number(value) == shown


def test_the_table_of_budgets_says_what_is_not_met() -> None:
    rows = report.verdicts(Figures([fires(5_000), fires(1_000, who="rq cron")]))
    assert rows[0] == ["met", "budget", "allowed", "measured"]
    assert rows[1] == ["**NO**", "10,000 due at once, fires per second beside rq cron", "≥ 10 ×", "5 ×"]
    assert rows[2][0] == "not measured"


def test_peers_are_shown_by_their_ratio_first() -> None:
    figures = Figures([fires(10_000), fires(500, who="RedBeat")])
    ((title, rows),) = report.tables(figures, {"fires": "Fires", "idle": "Idle"})
    assert title == "Fires"
    assert [row[0] for row in rows] == ["beside beat", "", "0.05 ×"]
    assert rows[2][2:5] == ["RedBeat", "schedules 10,000, queues 1", "500 /s"]


def test_the_ratio_beside_beat_is_the_one_that_the_budgets_hold() -> None:
    figures = Figures([fires(100, 50, 200), fires(10, 4, 25, who="rq cron"), fires(None, 5, 20, who="RedBeat")])
    ((_, rows),) = report.tables(figures, {"fires": "Fires"})
    assert [(row[0], row[-1]) for row in rows[1:]] == [("", "3"), ("0.1 ×", "3"), ("0.1 ×", "2")]


def test_a_repetition_that_failed_is_still_failed_when_the_document_is_read_again() -> None:
    figures = Figures([fires(None, 5, 20)])
    written = json.dumps(report.document(figures), allow_nan=False)
    assert '"values": [null, 5, 20]' in written
    assert report.read(json.loads(written)) == figures


def test_the_page_keeps_what_people_wrote() -> None:
    before = f"# Title\n\nwords\n\n{report.BEGIN}\nold\n{report.END}\nmore words\n"
    once = report.page(before, Figures([fires(1)]), {"fires": "Fires"})
    assert once.startswith("# Title\n\nwords\n\n")
    assert once.endswith("more words\n")
    assert "old" not in once
    assert "| 1 /s |" in once
    again = report.page(once, Figures([fires(2)]), {"fires": "Fires"})
    assert "| 1 /s |" not in again
    assert again.count(report.BEGIN) == again.count(report.END) == 1


def test_the_document_has_every_run_of_every_figure() -> None:
    document: Any = json.loads(json.dumps(report.document(Figures([Figure("s", "w", (1.0, 3.0), "ms", at={"n": 1})]))))
    assert document["schema_version"] == 1
    assert document["figures"][0] == {
        "suite": "s", "what": "w", "who": "beat", "at": {"n": 1}, "unit": "ms", "median": 2.0, "spread": 0.5,
        "values": [1.0, 3.0],
    }  # fmt: skip
    assert {each["met"] for each in document["budgets"]} == {None}


def test_the_docs_have_the_place_for_the_figures() -> None:
    text = (program.DOCS / "performance.md").read_text(encoding="utf-8")
    assert text.count(report.BEGIN) == text.count(report.END) == 1


# --- plot ------------------------------------------------------------------------------------------------------------


def test_the_plot_is_well_formed_and_names_every_line() -> None:
    grown = [
        fires(rate, who=who, schedules=n) for who in ("beat", "a<b") for n, rate in ((1000, 10_000), (100_000, 9_000))
    ]
    idle = [Figure("idle", "idle pass", (0.3,), "ms", at={"schedules": n}) for n in (1000, 100_000)]
    drawn = ET.fromstring(plot.growth(Figures([*grown, *idle, fires(5, who="lonely")])))  # noqa: S314 (our own)
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"beat", "a<b", "1,000", "100,000"} <= set(texts)
    assert "lonely" not in texts, "one point is no growth"
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}polyline"))) == 3


def test_what_costs_more_lies_higher() -> None:
    cheap = Figures([fires(10_000, schedules=n) for n in (1000, 10_000)])
    dear = [fires(100, who="dear", schedules=n) for n in (1000, 10_000)]
    drawn = ET.fromstring(plot.growth(Figures([*cheap, *dear])))  # noqa: S314 (our own)
    lines = [each.get("points", "").split()[0] for each in drawn.iter("{http://www.w3.org/2000/svg}polyline")]
    ours, theirs = (float(point.split(",")[1]) for point in lines)
    assert theirs < ours


# --- the program -----------------------------------------------------------------------------------------------------


def test_who_waits_is_told_how_long_it_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("benchmarks.progress.time.monotonic", lambda: now[0])
    progress = Progress({"a": 120, "b": 300}, io.StringIO())
    progress.begin("a", "A")
    now[0] = 61
    assert progress.remaining() == "1:01 so far, about 6 min to go"
    progress.end()
    progress.begin("b", "B")
    assert progress.remaining() == "1:01 so far, about 5 min to go"


def test_without_a_terminal_every_step_is_a_line() -> None:
    out = io.StringIO()
    progress = Progress({}, out)
    progress.begin("a", "A suite")
    progress.say("round 1")
    assert out.getvalue() == "── A suite\n   … round 1\n"


def test_an_unknown_suite_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.parse(["--only", "fires,idel"])
    assert "there is no suite 'idel': choose among fires, idle" in capsys.readouterr().err


def test_a_budget_that_is_not_met_ends_with_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = iter([Figures([fires(9), fires(1, who="rq cron")]), Figures([fires(10), fires(1, who="rq cron")])])

    def measure(_name: str, _scale: object, figures: Figures, _progress: object) -> str:
        figures.extend(next(found))
        return "Fires"

    monkeypatch.setattr(program, "measure", measure)
    written = tmp_path / "figures.json"
    assert program.main(["--only", "fires", "--json", str(written)]) == 1
    assert json.loads(written.read_text())["budgets"][0]["met"] is False
    assert program.main(["--only", "fires"]) == 0


def test_a_suite_that_is_measured_by_itself_leaves_the_others_on_the_page(tmp_path: Path) -> None:
    kept = Figures([Figure("fires", "old", (1.0,), "/s"), Figure("idle", "idle pass", (2.0, 4.0), "ms", at={"n": 1})])
    file = tmp_path / "performance.json"
    file.write_text(json.dumps(report.document(kept)), encoding="utf-8")
    anew = Figures([Figure("fires", "new", (3.0,), "/s", "rq cron")])
    figures, titles = program.beside(anew, {"fires": "Fires"}, file)
    assert figures == [anew[0], kept[1]]
    assert [*titles] == ["fires", "idle"]
    alone, _ = program.beside(anew, {"fires": "Fires"}, tmp_path / "none.json")
    assert alone == anew
