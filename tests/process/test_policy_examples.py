"""examples/policies with a real Redis, a real beat and real workers: what docs/guides/policies.md says, happens.

All examples but one run side by side in one beat for some ten seconds; the tests then read what was written down. Where
somebody is killed, there is a beat for that.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client, Cron
from beat.policies import jitter_and_capacity
from beat.schedule.registry import Registry
from beat.timing import clock
from tests.process import example_stage
from tests.process.example_stage import PATIENCE_S, Place, a_place, explained, instant
from tests.support.facts import wait_until
from tests.support.rq_worker import SIMPLE, horses_of, kill
from tests.support.schedulers import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterator


EXAMPLES = [example for example in example_stage.EXAMPLES if example not in example_stage.OF_PLACE]
MISFIRE = "examples.policies.misfire"
WORKERS = [("copies",), ("letters",), ("forecasts",), ("pictures",), ("pictures",), ("bounded", "spread")]
LONG_ENOUGH = {
    "copy": 3, "glance": 9, "letter": 3, "forecast": 3, "headline": 3, "picture": 4, "north": 2, "east": 2, "west": 2,
    "backup-orders": 1, "backup-users": 1,
}  # fmt: skip
"""How many jobs of each there must be before the tests have something to look at."""


@pytest.fixture
def place() -> Iterator[Place]:
    """For one test alone."""
    with a_place() as made:
        yield made


@pytest.fixture(scope="module")
def show() -> Iterator[Place]:
    """All the examples have run for a while, and have ended; Redis is still there."""
    with a_place() as made:
        with ExitStack() as stage:
            workers = [stage.enter_context(made.worker(*queues)) for queues in WORKERS]
            workers += [stage.enter_context(made.worker("glances", options=SIMPLE))]  # whose 100 ms are 100 ms
            for worker in workers:
                worker.says("Listening")
            beat = stage.enter_context(made.beat(*(example for example in EXAMPLES if example != MISFIRE)))
            for schedule_id, count in LONG_ENOUGH.items():
                made.fires(schedule_id, count, beat)
            for schedule_id in ("sale", "reminder"):
                made.reaches(schedule_id, "finished")
            assert beat.end() == 0
        yield made


# --- overlap ---------------------------------------------------------------------------------------------------------


def test_with_skip_one_runs_and_the_ticks_in_between_are_skipped(show: Place) -> None:
    runs = show.runs("copy")
    assert all(earlier.end <= later.start for earlier, later in pairwise(runs))
    assert all(run.end - run.start >= timedelta(seconds=3) for run in runs)
    assert len(show.lines("copy", "skipped")) >= 2 * len(runs)
    assert {line["reason"] for line in show.lines("copy", "skipped")} == {"overlap"}
    assert needlessly_skipped(show, "copy") == []


def test_with_skip_runs_shorter_than_the_interval_never_overlap(show: Place) -> None:
    ticks = sorted(show.ticks("glance") + show.ticks("glance", "skipped"))
    assert [later - earlier for earlier, later in pairwise(ticks)] == [timedelta(seconds=1)] * (len(ticks) - 1)
    assert len(show.runs("glance")) >= 8
    assert needlessly_skipped(show, "glance") == []  # on a busy machine one may take longer than a second


def test_with_wait_one_runs_after_the_other_in_the_order_of_their_ticks(show: Place) -> None:
    runs = show.runs("letter")
    assert all(earlier.end <= later.start for earlier, later in pairwise(runs))
    assert show.ticks("letter") == sorted(show.ticks("letter"))
    assert set(show.ticks("letter")[1:3]) <= set(show.ticks("letter", "waiting"))


def test_with_wait_no_more_wait_than_may_and_the_rest_is_skipped(show: Place) -> None:
    waiting: set[str] = set()
    for line in show.lines("letter", "enqueued", "skipped", "waiting"):
        if line["type"] == "waiting":
            waiting.add(line["tick"])
        elif line["type"] == "enqueued":
            waiting.discard(line["tick"])
        else:
            assert len(waiting) == 2, f"skipped with room to wait: {line}"
        assert len(waiting) <= 2
    assert show.lines("letter", "skipped")


def test_with_replace_the_old_run_is_stopped_in_its_worker_for_the_newest(show: Place) -> None:
    stopped = show.lines("forecast", "stopped")
    jobs = [line["job"] for line in show.lines("forecast", "enqueued")]
    assert [line["job"] for line in stopped] == jobs[: len(stopped)]
    assert len(stopped) >= 2
    for run, waits in zip(show.runs("forecast"), show.ticks("forecast", "waiting"), strict=False):
        assert waits <= run.end < waits + timedelta(seconds=10)  # it would have taken half a minute


def test_with_replace_the_old_job_is_cancelled_in_its_queue_for_the_newest(show: Place) -> None:
    jobs = [line["job"] for line in show.lines("headline", "enqueued")]
    cancelled = [line["job"] for line in show.lines("headline", "stopped")]
    assert cancelled == jobs[: len(cancelled)]
    assert len(cancelled) >= 2
    assert {show.ledgers.status(job) for job in cancelled} == {"canceled"}
    assert show.redis.lrange("rq:queue:headlines", 0, -1) in (jobs[-1:], [])  # the beat may have ended in between


def test_with_max_running_two_run_at_once_and_never_three(show: Place) -> None:
    runs = show.runs("picture")
    at_once = [sum(run.start <= each.start < run.end for run in runs) for each in runs]
    assert max(at_once) == 2
    assert needlessly_skipped(show, "picture") == []


# --- bounds ----------------------------------------------------------------------------------------------------------


def test_after_max_runs_a_schedule_has_finished(show: Place) -> None:
    assert len(show.lines("reminder", "enqueued")) == 3
    assert show.ledgers.state("reminder")["state"] == "finished"


def test_no_tick_lies_before_the_start_or_after_the_end(show: Place) -> None:
    [registered] = show.lines("sale", "registered")
    start, end = (instant(registered["rule"][name]) for name in ("start", "end"))
    ticks = show.ticks("sale")
    assert ticks == [end - timedelta(seconds=n) for n in reversed(range(len(ticks)))]
    assert start <= ticks[0]
    assert show.ledgers.state("sale")["state"] == "finished"


def test_on_a_day_that_is_excluded_every_tick_is_skipped(show: Place) -> None:
    assert {line["reason"] for line in show.lines("office", "skipped")} == {"excluded"}
    assert show.lines("office", "enqueued") == []


def test_a_finished_schedule_goes_on_when_its_bounds_change(place: Place) -> None:
    bounded = "from beat import periodic\n\n@periodic(every='1s', max_runs={})\ndef remind(): ..."
    for most in (2, 5):
        (place.home / "bounded.py").write_text(bounded.format(most), encoding="utf-8")
        with place.beat("bounded") as beat:
            place.fires("remind", most, beat)
            place.reaches("remind", "finished")
            assert beat.end() == 0
        assert len(place.lines("remind", "enqueued")) == most


# --- not all at once -------------------------------------------------------------------------------------------------


def test_a_jittered_tick_fires_when_it_is_due_and_keeps_its_nominal_time(show: Place) -> None:
    registry = Registry()
    registry.load("examples.policies.spread")
    drawn = []
    for schedule_id in ("north", "east", "west"):
        for line in show.lines(schedule_id, "enqueued"):
            tick = instant(line["tick"])
            due = jitter_and_capacity.due(registry.get(schedule_id), tick)
            drawn.append(due - tick)
            assert tick.second % 4 == 0
            assert instant(line["at"]) - due == timedelta(milliseconds=line["late_ms"])
        state = show.ledgers.state(schedule_id)
        assert instant(state["due_at"]) == jitter_and_capacity.due(
            registry.get(schedule_id), instant(state["next_run"])
        )
    assert max(drawn) <= timedelta(seconds=3)
    assert len(set(drawn)) == len(drawn)


def test_the_id_chooses_the_second_of_a_hash(show: Place) -> None:
    for schedule_id in ("backup-orders", "backup-users"):
        ticks = Cron("H/10 * * * * *", seconds=True, seed=schedule_id)
        assert all(ticks.after(tick - timedelta(seconds=1)) == tick for tick in show.ticks(schedule_id))
        assert show.ticks(schedule_id)
    first, second = (show.ticks(schedule_id)[0].second % 10 for schedule_id in ("backup-orders", "backup-users"))
    assert first != second


# --- late ------------------------------------------------------------------------------------------------------------


def test_what_was_missed_fires_once_or_not_at_all_or_each_as_the_policy_says(place: Place) -> None:
    with place.worker("late") as worker:
        with place.beat(MISFIRE) as beat:
            place.fires("invoice", 2, beat)
            assert beat.end() == 0
        worker.says("Listening")
        stopped = place.ledgers.state("total")["last_run"]
        back = instant(stopped).timestamp() + 8
        wait_until(lambda: seconds_of(place.redis) >= back, what=lambda: "for eight seconds")
        with place.beat(MISFIRE) as beat:
            wait_until(lambda: "scheduler" in [line["by"] for line in place.since("invoice", stopped)], PATIENCE_S)
            assert beat.end() == 0
    [passed, caught, *others] = place.since("total", stopped)
    assert (passed["type"], passed["reason"], passed["tick"]) == ("skipped", "misfire", _text(stopped, 1))
    assert (caught["by"], caught["tick"]) == ("catchup", _text(passed["last"], 1))
    assert {line["by"] for line in others} == {"scheduler"}

    [passed, *others] = place.since("alarm", stopped)
    assert (passed["type"], passed["reason"], passed["tick"]) == ("skipped", "misfire", _text(stopped, 1))
    explained(place, passed, "alarm")
    assert {line["by"] for line in others} == {"scheduler"}

    caught_up = [line for line in place.since("invoice", stopped) if line["by"] == "catchup"]
    assert [line["tick"] for line in caught_up] == [_text(stopped, n) for n in range(1, len(caught_up) + 1)]
    assert len(caught_up) >= 5
    assert max(Counter(line["at"] for line in caught_up).values()) == 3, "three at a time"


# --- heals by itself -------------------------------------------------------------------------------------------------


def test_a_killed_worker_keeps_no_schedule_waiting_for_ever(place: Place) -> None:
    with place.beat("examples.policies.overlap_skip") as beat:
        with place.worker("copies") as worker:
            place.fires("copy", 1, beat)
            job = place.ledgers.state("copy")["last_job"]
            wait_until(lambda: place.ledgers.status(job) == "started" and horses_of(worker.pid), PATIENCE_S)
            horses = horses_of(worker.pid)
            worker.kill()
            for horse in horses:
                kill(horse)
        wait_until(lambda: job in {line["behind"] for line in place.lines("copy", "skipped")}, PATIENCE_S)
        place.ledgers.let_life_lapse(job, "copies")  # a minute and a half later
        wait_until(lambda: place.ledgers.age(job), PATIENCE_S)
        place.fires("copy", 2, beat)
        assert place.ledgers.types(job) == ["lost"]


def test_a_tick_that_waits_when_its_beat_is_killed_is_let_in_by_another(place: Place) -> None:
    with place.worker("letters") as worker:
        worker.says("Listening")
        with place.beat("examples.policies.overlap_wait") as beat:
            wait_until(lambda: place.ticks("letter", "waiting"), PATIENCE_S, lambda: beat.log)
            beat.kill()
        first, fired = place.ticks("letter", "waiting")[0], place.ticks("letter")
        assert first not in fired
        with place.beat("examples.policies.overlap_wait") as beat:
            place.fires("letter", len(fired) + 1, beat)
            assert place.ticks("letter")[len(fired)] == first


# --- and why ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule_id", ["copy", "letter", "office"])
def test_beat_why_explains_a_skip_in_a_sentence(show: Place, schedule_id: str) -> None:
    explained(show, show.lines(schedule_id, "skipped")[0], schedule_id)


def test_beat_verify_accounts_for_every_tick_of_every_example(show: Place) -> None:
    assert [each for each in Client(show.server.url).verify() if not each.sound] == []


def needlessly_skipped(place: Place, schedule_id: str) -> list[dict[str, Any]]:
    """Ticks that were skipped because of a run that had ended before."""
    ends = {run.job: run.end for run in place.runs(schedule_id)}
    skipped = place.lines(schedule_id, "skipped")
    return [line for line in skipped if line["behind"] in ends and ends[line["behind"]] < instant(line["tick"])]


def _text(text: str, seconds: int) -> str:
    """So many seconds later."""
    return clock.text(instant(text) + timedelta(seconds=seconds))
