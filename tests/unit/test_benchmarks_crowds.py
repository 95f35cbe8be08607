"""Peers with many schedules, the floors, and what the lateness suite reads: all that can go wrong without a Redis."""

from __future__ import annotations

import json

import pytest

from benchmarks.floors import pages
from benchmarks.peers.crowds import CROWDS
from benchmarks.suites.fires import FULL, QUICK, in_turns
from benchmarks.suites.lateness import lateness, tick_of

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

    figures = list(in_turns(FULL[0]._replace(rounds=2), {"a": works, "b": fails, "c": works}, say))
    assert [(figure.who, figure.values) for figure in figures] == [("a", (7.0, 7.0)), ("c", (7.0, 7.0))]
    assert sum("b failed: TimeoutError: nothing arrived" in words for words in said) == 2


def test_contenders_take_turns_round_after_round() -> None:
    order: list[str] = []

    def act(who: str) -> dict[str, float]:
        order.append(who)
        return {"fires per second": 1.0}

    list(in_turns(FULL[0]._replace(rounds=2), {"a": lambda: act("a"), "b": lambda: act("b")}, lambda _: None))
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
