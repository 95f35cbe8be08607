"""The sums behind the suites of benchmarks: what counts as wasted, as late, as known, and as start-up."""

from __future__ import annotations

import json

import pytest

from beat.storage import scripts
from beat.timing import clock
from benchmarks.claimers import Call, rate
from benchmarks.guard import LEAST, judged
from benchmarks.readings import Ran
from benchmarks.suites import commands, crowd, many, outcomes, parts, takeover

SECOND = 1_794_804_190


def enqueued(second: int, late_ms: int) -> str:
    return json.dumps({"type": "enqueued", "tick": clock.text(clock.at(second)), "late_ms": late_ms})


def fired(*late_ms: int) -> list[str]:
    return [enqueued(SECOND + n, late) for n, late in enumerate(late_ms)]


# crowd


def test_a_round_lasts_from_the_first_question_to_the_last_answer_that_brought_something() -> None:
    calls = [Call(10.0, 10.1, 100, 0), Call(10.05, 10.2, 100, 0), Call(10.2, 10.9, 0, 0)]
    assert rate(calls) == pytest.approx(200 / 0.2)


def test_the_latency_of_a_claim_is_what_its_caller_waited() -> None:
    assert Call(10.0, 10.025, 0, 0).ms == pytest.approx(25)


def test_nothing_is_wasted_when_all_that_was_met_was_fired() -> None:
    assert crowd.wasted_percent({"fired": 1000, "registered": 3}) == 0


@pytest.mark.parametrize("name", ["locked", "fenced", "passed_on"])
def test_what_a_beat_met_and_did_not_fire_is_wasted(name: str) -> None:
    assert crowd.wasted_percent({"fired": 75, name: 25}) == 25


# takeover


def test_the_longest_delay_of_claimed_schedules_is_told_apart_from_that_of_the_others() -> None:
    lines, ticks = {"mine": fired(3, 1800, 900), "theirs": fired(2, 5, 40)}, range(SECOND, SECOND + 3)
    assert takeover.delays(lines, {"mine"}, {"mine": ticks, "theirs": ticks}) == (1.8, 0.04)


def test_ticks_before_the_kill_and_after_the_takeover_do_not_count() -> None:
    lines, ticks = {"mine": fired(9000, 7, 9000), "theirs": fired(9000, 4, 9000)}, [SECOND + 1]
    assert takeover.delays(lines, {"mine"}, {"mine": ticks, "theirs": ticks}) == (0.007, 0.004)


def test_a_tick_that_is_missing_is_no_delay_but_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"mine has not fired for .*:12Z"):
        takeover.delays({"mine": fired(1, 2)}, {"mine"}, {"mine": range(SECOND, SECOND + 3)})


def test_a_tick_that_was_skipped_is_an_error_too() -> None:
    skipped = json.dumps({"type": "skipped", "tick": clock.text(clock.at(SECOND + 1)), "count": 1})
    with pytest.raises(RuntimeError, match="has not fired"):
        takeover.delays({"mine": [*fired(1), skipped]}, {"mine"}, {"mine": range(SECOND, SECOND + 2)})


# outcomes


def test_the_lag_of_an_outcome_is_from_the_end_of_the_run_to_its_line() -> None:
    line = {"ended": "2026-11-16T09:00:00.250Z", "at": "2026-11-16T09:00:01Z"}
    events = [{"type": "enqueued", "entry": "{}"}, {"type": "succeeded", "entry": json.dumps(line)}]
    assert outcomes.lags_ms(events) == [750]


def test_what_a_beat_costs_when_it_idles_is_not_the_cost_of_looking() -> None:
    assert outcomes.Cost(12.0, 30.0).beyond(outcomes.Cost(2.0, 10.0)) == (10.0, 20.0)


def test_noise_makes_no_cost_negative() -> None:
    assert outcomes.Cost(1.0, 9.0).beyond(outcomes.Cost(2.0, 10.0)) == (0.0, 0.0)


def test_a_thousand_ticks_to_catch_up_with_are_no_misfires() -> None:
    assert 1000 * outcomes.PERIOD_S < 7 * 86_400
    assert outcomes.MISFIRE_AFTER == "7d"


# many


def test_only_scripts_of_the_repair_count_as_repair() -> None:
    mine = Ran(scripts.script("repair").sha, 9.0, 257)
    assert many.repairs([Ran(scripts.script("claim").sha, 20.0, 11), mine, Ran("", 30.0, 300)]) == [mine]


# commands


def test_start_up_is_what_a_command_takes_longer_than_the_bare_python_of_its_turn() -> None:
    taken = {"": [20.0, 40.0], "beat --help": [100.0, 130.0], "beat next": [220.0, 230.0]}
    found = {figure.at["command"]: figure.values for figure in commands.figures(taken)}
    assert found == {"beat --help": (80.0, 90.0), "beat next": (200.0, 190.0)}


# parts


def test_the_cost_of_a_part_is_that_of_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_s = iter([5.0, 5.5])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock_s))
    called: list[int] = []
    assert parts.each_us(lambda: called.append(1), 100) == pytest.approx(5000)
    assert len(called) == 101  # the first one only warms up


# guard

QUICK, SLOW = LEAST, LEAST - 0.01


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([], None),
        ([QUICK, QUICK], None),
        ([QUICK, QUICK, QUICK], True),
        ([SLOW, QUICK, SLOW, QUICK], None),
        ([SLOW, QUICK, SLOW, QUICK, QUICK], True),
        ([SLOW, SLOW], None),
        ([SLOW, SLOW, SLOW], False),
        ([9.0, SLOW, 9.0, SLOW, SLOW], False),
    ],
)
def test_the_most_of_five_tries_say_whether_beat_has_become_slow(ratios: list[float], *, verdict: bool | None) -> None:
    assert judged(ratios) is verdict
