"""Runs that have more than one attempt, and runs that somebody ends: each attempt is told, and counted once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.resilience.outcomes.stage import soon
from tests.support.facts import wait_until
from tests.support.rq_worker import SIMPLE, kill

if TYPE_CHECKING:
    from tests.resilience.outcomes.stage import Stage


def counts(stage: Stage, schedule_id: str) -> tuple[int, int, int]:
    """How many runs have succeeded, failed, and were stopped."""
    state = stage.state(schedule_id)
    succeeded, failed, stopped = (int(state.get(f"{each}_count", 0)) for each in ("success", "failure", "stopped"))
    return succeeded, failed, stopped


# --- RQ tries again --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), SIMPLE], ids=["worker", "simple"])
def test_a_run_that_is_retried_has_one_outcome(stage: Stage, options: tuple[str, ...]) -> None:
    with stage.worker("retried-at-once", options=options):
        line = stage.ended(stage.fire("retried-at-once"), "succeeded")
    assert stage.steps.words(line["job"]) == ["start", "raise", "start", "raise", "start", "end"]
    assert line["attempts"] == 3
    soon(line, stage.steps.of(line["job"])[-1].at)


def test_a_run_that_is_given_up_has_failed_once(stage: Stage) -> None:
    with stage.worker("given-up"):
        line = stage.ended(stage.fire("given-up"), "failed")
    assert stage.steps.words(line["job"]) == ["start", "raise"] * 3
    assert (line["attempts"], line["error"]["type"]) == (3, "KeyError")


def test_a_run_whose_retry_is_due_later_is_open_until_then(stage: Stage) -> None:
    with stage.worker("retried-much-later"):
        job = stage.fire("retried-much-later")
        wait_until(lambda: stage.status(job) == "scheduled")
        assert stage.stays_open(job)
        stage.rq_job(job).cancel()
        stage.ended(job, "stopped")


def test_a_worker_with_a_scheduler_ends_it(stage: Stage) -> None:
    with stage.worker("retried-later", options=["--with-scheduler"]):
        line = stage.ended(stage.fire("retried-later"), "succeeded")
    assert (line["attempts"], stage.steps.words(line["job"])) == (2, ["start", "raise", "start", "end"])


def test_a_job_may_ask_for_another_attempt_itself(stage: Stage) -> None:
    with stage.worker("asks-again"):
        line = stage.ended(stage.fire("asks-again"), "succeeded")
    assert (line["attempts"], stage.steps.words(line["job"])) == (
        3,
        ["start", "again", "start", "again", "start", "end"],
    )


def test_a_job_that_asks_too_often_has_failed(stage: Stage) -> None:
    with stage.worker("asks-too-often"):
        line = stage.ended(stage.fire("asks-too-often"), "failed")
    assert (line["attempts"], stage.steps.words(line["job"])) == (3, ["start", "again"] * 3)
    assert line["error"]["type"] == "MaxRetriesExceeded"


def test_a_killed_work_horse_is_retried_too(stage: Stage) -> None:
    with stage.worker("slow-or-retried"):
        job = stage.fire("slow-or-retried")
        for attempt in (1, 2, 3):
            assert stage.types(job) == []
            kill(stage.steps.said(job, "start", attempt).pid)
        line = stage.ended(job, "failed")
    assert (line["attempts"], line["error"]["type"]) == (3, "WorkHorseKilled")


# --- somebody tries again --------------------------------------------------------------------------------------------


def test_a_failed_run_that_is_requeued_may_succeed(stage: Stage) -> None:
    stage.redis.delete("rq:queue:bad-once")  # what a first try may have left there
    with stage.worker("bad-once"):
        job = stage.fire("bad-once")
        stage.ended(job, "failed")
        succeeded, failed, _ = counts(stage, "bad-once")
    stage.requeue(job, "bad-once")
    wait_until(lambda: stage.types(job) == ["failed", "reopened"], 30, lambda: f"for a new attempt: {stage.lines(job)}")
    assert counts(stage, "bad-once") == (succeeded, failed - 1, 0)
    assert stage.state("bad-once")["consecutive_failures"] == "0"
    with stage.worker("bad-once") as worker:
        line = stage.ended(job, "failed", "reopened", "succeeded")
    assert (line["attempts"], line["worker"]) == (2, worker.name)
    assert counts(stage, "bad-once") == (succeeded + 1, failed - 1, 0)
    assert stage.state("bad-once")["consecutive_failures"] == "0"


def test_a_failed_run_that_is_requeued_may_fail_again(stage: Stage) -> None:
    job = stage.fire("bad")
    with stage.worker("bad"):
        stage.ended(job, "failed")
        before, streak = counts(stage, "bad"), stage.state("bad")["consecutive_failures"]
        for attempt in (2, 3):
            stage.requeue(job, "bad")
            stage.steps.said(job, "raise", attempt)
            wait_until(lambda: stage.lines(job)[-1].get("attempts") == attempt, 30, lambda: f"{stage.lines(job)}")  # noqa: B023
            wait_until(lambda: stage.types(job)[-1] == "failed", 30, lambda: f"{stage.lines(job)}")
    assert counts(stage, "bad") == before
    assert stage.state("bad")["consecutive_failures"] == streak


def test_a_stopped_run_that_is_requeued_may_succeed(stage: Stage) -> None:
    stage.hold()
    with stage.worker("until-told"):
        job = stage.fire("until-told")
        stage.steps.said(job, "start")
        succeeded, failed, stopped = counts(stage, "until-told")
        stage.stop(job)
        stage.ended(job, "stopped")
        assert counts(stage, "until-told") == (succeeded, failed, stopped + 1)
        stage.requeue(job, "until-told")
        wait_until(lambda: stage.types(job) == ["stopped", "reopened"], 30, lambda: f"{stage.lines(job)}")
        stage.go()
        assert stage.ended(job, "stopped", "reopened", "succeeded")["attempts"] == 2
    assert counts(stage, "until-told") == (succeeded + 1, failed, stopped)


# --- somebody ends it ------------------------------------------------------------------------------------------------


def test_a_run_that_is_stopped_has_neither_succeeded_nor_failed(stage: Stage) -> None:
    with stage.worker("slow") as worker:
        job = stage.fire("slow")
        stage.steps.said(job, "start")
        before = stage.state("slow")
        stage.stop(job)
        line = stage.ended(job, "stopped")
    assert line["reason"]
    assert line["worker"] == worker.name
    after = stage.state("slow")
    assert int(after["stopped_count"]) == int(before.get("stopped_count", 0)) + 1
    for name in ("success_count", "failure_count", "consecutive_failures"):
        assert after.get(name, "0") == before.get(name, "0")


def test_a_simple_worker_does_not_hear_the_command_and_the_run_succeeds(stage: Stage) -> None:
    stage.hold()
    with stage.worker("until-told", options=SIMPLE):
        job = stage.fire("until-told")
        stage.steps.said(job, "start")
        stage.stop(job)
        assert stage.stays_open(job)
        stage.go()
        stage.ended(job, "succeeded")


def test_a_run_that_is_cancelled_in_the_queue_was_stopped(stage: Stage) -> None:
    job = stage.fire("good")
    stage.rq_job(job).cancel()
    line = stage.ended(job, "stopped")
    assert (line["started"], line["duration"], line["worker"]) == (None, None, None)
    assert "cancel" in line["reason"]


def test_a_run_that_is_cancelled_while_it_goes_on_ends_as_it_ends(stage: Stage) -> None:
    stage.hold()
    with stage.worker("until-told"):
        job = stage.fire("until-told")
        stage.steps.said(job, "start")
        before = counts(stage, "until-told")
        stage.rq_job(job).cancel()
        stage.go()
        stage.steps.said(job, "end")
        stage.ends_as(job, "succeeded")
    assert counts(stage, "until-told") == (before[0] + 1, *before[1:])


def test_a_worker_that_takes_its_time_to_stop_a_run_lives_to_begin_the_newest(stage: Stage) -> None:
    with stage.worker("replaced-slowly") as worker:
        first = stage.fire("replaced-slowly")
        stage.steps.said(first, "start")
        second = stage.fire("replaced-slowly")
        assert stage.steps.said(second, "start").parent == worker.pid
        assert stage.steps.words(first) == ["start", "callback"]
        reason = stage.ended(first, "stopped")["reason"]
        assert reason == f"replaced by the tick of {stage.state('replaced-slowly')['last_run']}"
