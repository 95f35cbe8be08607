"""Peers with many schedules, the floors, and what the lateness suite reads: all that can go wrong without a Redis."""

from __future__ import annotations

import json

import pytest

from benchmarks.bare import halves
from benchmarks.floors import pages
from benchmarks.peers.crowds import CROWDS
from benchmarks.suites.fires import FULL, QUICK
from benchmarks.suites.lateness import Arrival, figures, late, lateness, meanwhile, tick_of
from benchmarks.turns import in_turns

PROGRAMS = [(who, due) for who in CROWDS for due in (True, False)]


@pytest.mark.parametrize(("who", "due"), PROGRAMS)
def test_the_programs_of_a_crowd_are_python(who: str, due: bool) -> None:  # noqa: FBT001 (a parameter of the table)
    for name, text in CROWDS[who](1_000, 10, due=due).files.items():
        compile(text, name, "exec")


@pytest.mark.parametrize("who", CROWDS)
def test_who_waits_runs_something_else_than_who_is_due(who: str) -> None:
    assert CROWDS[who](10, 1).files != CROWDS[who](10, 1, due=False).files


@pytest.mark.parametrize("who", CROWDS)
def test_every_queue_of_a_crowd_is_watched(who: str) -> None:
    queues = CROWDS[who](10, 3).queues
    assert [queue.rpartition(":")[2] for queue in queues] == ["q0", "q1", "q2"]


@pytest.mark.parametrize(("jobs", "queues"), [(1_000, 1), (2_500, 1), (2_500, 7), (10, 100)])
def test_pages_have_a_thousand_jobs_and_leave_none_out(jobs: int, queues: int) -> None:
    made = list(pages(jobs, queues))
    sizes = [sum(page.values()) for page in made]
    assert sum(sizes) == jobs
    assert set(sizes[:-1]) <= {1_000}
    assert {name for page in made for name in page} == {f"q{n}" for n in range(min(jobs, queues))}


def test_a_contender_that_fails_is_named_and_the_others_keep_their_figures() -> None:
    said: list[str] = []

    def say(words: str) -> None:
        said.append(words)

    def fails() -> dict[str, float]:
        raise TimeoutError("nothing arrived")

    def works() -> dict[str, float]:
        return {"fires per second": 7.0}

    taken = in_turns(2, {"a": works, "b": fails, "c": works}, "many", say)
    assert taken == {("a", "fires per second"): (7.0, 7.0), ("c", "fires per second"): (7.0, 7.0)}
    assert said[:4] == ["a: many, round 1 of 2", "b: many, round 1 of 2", "b failed: TimeoutError: nothing arrived",
                        "c: many, round 1 of 2"]  # fmt: skip
    assert said.count("b failed: TimeoutError: nothing arrived") == 2


def test_what_fails_once_leaves_its_place_free_so_that_the_others_of_a_round_stay_together() -> None:
    turns = {"a": iter([1.0, None, 3.0]), "b": iter([None, 20.0, 30.0])}

    def act(who: str) -> dict[str, float]:
        if (value := next(turns[who])) is None:
            raise ChildProcessError
        return {"rate": value}

    taken = in_turns(3, {"a": lambda: act("a"), "b": lambda: act("b")}, "many", lambda _: None)
    assert taken == {("a", "rate"): (1.0, None, 3.0), ("b", "rate"): (None, 20.0, 30.0)}


def test_contenders_take_turns_round_after_round() -> None:
    order: list[str] = []

    def act(who: str) -> dict[str, float]:
        order.append(who)
        return {"fires per second": 1.0}

    in_turns(2, {"a": lambda: act("a"), "b": lambda: act("b")}, "many", lambda _: None)
    assert order == ["a", "b", "a", "b"]


def test_the_budgets_size_is_measured_with_all_contenders_and_repeated() -> None:
    assert [size.rounds for size in FULL if size[:2] == (10_000, 1) and size.peers_s] == [5]
    assert (10_000, 1) in [size[:2] for size in QUICK]


def test_a_job_id_names_its_tick() -> None:
    assert tick_of("beat_s000_17_1794864006") == 1_794_864_006


def test_lateness_is_read_from_the_ids_of_the_outbox_for_enqueued_ticks_within_the_stretch() -> None:
    def enqueued(second: int) -> dict[str, str]:
        return {"type": "enqueued", "schedule": "s", "entry": json.dumps({"tick": f"2026-11-16T21:20:{second:02}Z"})}

    entries = [
        ("1794864006012-0", enqueued(6)),
        ("1794864006250-3", enqueued(6)),
        ("1794864006300-0", enqueued(6) | {"type": "succeeded"}),
        ("1794864005001-0", enqueued(5)),
        ("1794864007001-0", enqueued(7)),
    ]
    assert lateness(entries, 1_794_864_006, 1_794_864_007) == pytest.approx([0.012, 0.25], abs=1e-6)


def test_each_repetition_has_its_own_percentiles_and_the_median_of_them_counts() -> None:
    calm, shaken = [0.001] * 99 + [0.004], [0.002] * 98 + [0.5, 0.9]
    found = {figure.what: figure for figure in figures([calm, shaken, calm], "beat", "one schedule")}
    assert {what: figure.values for what, figure in found.items()} == {
        "lateness p50": pytest.approx((1, 2, 1)),
        "lateness p99": pytest.approx((1, 500, 1)),
        "lateness max": pytest.approx((4, 900, 4)),
    }
    assert found["lateness p99"].median == pytest.approx(1)


def test_a_repetition_that_failed_has_no_lateness() -> None:
    assert [figure.values for figure in figures([None, [0.25]], "beat", "one schedule")] == [(None, 250.0)] * 3


@pytest.mark.parametrize(("now", "first"), [(10.2, 10.5), (10.49, 10.5), (10.5, 11.5), (10.6, 11.5), (11.0, 11.5)])
def test_a_bare_process_wakes_at_the_half_seconds_to_come(now: float, first: float) -> None:
    assert halves(now, 3) == [first, first + 1, first + 2]


def test_a_bare_process_is_as_late_as_its_elements_are_past_the_instants_that_they_name() -> None:
    assert late([Arrival(10.501, 10.5), Arrival(12.75, 11.5)]) == pytest.approx([0.001, 1.25])


def test_a_bare_process_counts_only_while_beat_is_measured() -> None:
    pushed = [Arrival(due + 0.001, due) for due in halves(9.0, 6)]
    beats = [Arrival(due + 0.002, due) for due in (11.0, 12.0, 13.0)]
    assert [arrival.due for arrival in meanwhile(pushed, beats)] == [11.5, 12.5]
