"""Runs whose worker dies: lost when nobody can be at them any more, and never before."""

from __future__ import annotations

import os
import signal
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from tests.support.facts import wait_until
from tests.support.rq_worker import SIMPLE, is_gone, kill

if TYPE_CHECKING:
    from tests.resilience.outcomes.stage import Stage
    from tests.support.rq_worker import Worker

LONG = pytest.mark.skipif(not os.environ.get("LONG_TESTS"), reason="takes minutes: LONG_TESTS=1")


def die(stage: Stage, schedule_id: str, *options: str) -> str:
    """Fires a schedule; the worker and its work-horse are killed while they are at it; the job."""
    with stage.worker(schedule_id, options=options) as worker:
        job = stage.fire(schedule_id)
        horse = stage.steps.said(job, "start").pid
        worker.kill()
        kill(horse)
        wait_until(lambda: is_gone(horse))
    return job


@pytest.mark.parametrize("options", [(), SIMPLE], ids=["worker", "simple"])
def test_a_run_whose_worker_was_killed_is_lost(stage: Stage, options: tuple[str, ...]) -> None:
    job = die(stage, "slow", *options)
    stage.let_life_lapse(job, "slow")
    stage.is_missed_for_long(job)
    line = stage.ended(job, "lost")
    assert "no sign of life" in line["reason"]
    assert line["worker"].startswith("worker-")
    assert (line["ended"], line["duration"]) == (None, None)
    assert line["started"] is not None


@LONG
@pytest.mark.parametrize("options", [(), SIMPLE], ids=["worker", "simple"])
def test_a_run_whose_worker_was_killed_is_lost_90_s_after_its_time_limit(
    stage: Stage, options: tuple[str, ...]
) -> None:
    line = stage.ended(die(stage, "slow-for-5s", *options), "lost", seconds=150)
    started, lost = (datetime.fromisoformat(line[name]) for name in ("started", "at"))
    assert 95 <= (lost - started).total_seconds() <= 107


def test_a_run_without_life_is_not_lost_at_the_first_look(stage: Stage) -> None:
    job = die(stage, "slow")
    stage.let_life_lapse(job, "slow")
    stage.look(job)
    stage.is_missed(job)
    assert stage.stays_open(job)
    stage.is_missed_for_long(job)
    stage.ended(job, "lost")


def test_a_work_horse_that_outlives_its_worker_is_heard(stage: Stage) -> None:
    stage.hold()
    with stage.worker("until-told") as worker:
        job = stage.fire("until-told")
        stage.steps.said(job, "start")
        worker.kill()
        assert stage.stays_open(job)
        stage.go()
        assert stage.ended(job, "succeeded")["worker"] == worker.name


def test_a_work_horse_that_outlives_its_worker_for_minutes_is_not_lost(stage: Stage) -> None:
    """Its worker's channel shows that it lives, until that connection is closed, as when Redis restarts."""
    stage.hold()
    with stage.worker("until-told") as worker:
        job = stage.fire("until-told")
        horse = stage.steps.said(job, "start").pid
        worker.kill()
        try:
            stage.redis.client_kill_filter(_type="pubsub")
            stage.let_life_lapse(job, "until-told")
            stage.is_missed_for_long(job, 80_000)
            assert stage.stays_open(job)
            assert not is_gone(horse)
            stage.go()
            assert stage.ended(job, "succeeded")["worker"] == worker.name
        finally:
            kill(horse)


def test_a_run_that_was_lost_and_ends_after_all_has_succeeded(stage: Stage) -> None:
    stage.hold()
    with stage.worker("until-told") as worker:
        job = stage.fire("until-told")
        horse = stage.steps.said(job, "start").pid
        worker.kill()
        try:
            stage.let_life_lapse(job, "until-told")
            stage.maintain("until-told")  # RQ itself calls it abandoned
            assert stage.status(job) == "failed"
            wait_until(lambda: stage.types(job), 30, lambda: f"for an end: {stage.record(job)}")
            failures = int(stage.state("until-told")["failure_count"])
            stage.go()
            stage.steps.said(job, "end")
            stage.ends_as(job, "succeeded")
        finally:
            kill(horse)
    assert int(stage.state("until-told")["failure_count"]) == failures - 1


def test_what_rq_calls_abandoned_after_beat_did_is_told_once(stage: Stage) -> None:
    job = die(stage, "slow")
    stage.let_life_lapse(job, "slow")
    stage.is_missed_for_long(job)
    stage.ended(job, "lost")
    stage.maintain("slow")
    assert stage.status(job) == "failed"
    wait_until(lambda: (stage.record(job) or {}).get("sign", "failed").startswith("failed"), 30)
    stage.ended(job, "lost")


def test_what_rq_calls_abandoned_first_has_an_outcome_too(stage: Stage) -> None:
    job = die(stage, "slow")
    stage.let_life_lapse(job, "slow")
    stage.maintain("slow")
    wait_until(lambda: stage.types(job), 30, lambda: f"for an end: {stage.record(job)}")
    assert stage.types(job)[0] in {"failed", "lost"}
    stage.ended(job, stage.types(job)[0])


def test_a_run_that_was_abandoned_and_is_retried_is_open_again(stage: Stage) -> None:
    job = die(stage, "slow-or-retried")
    stage.let_life_lapse(job, "slow-or-retried")
    stage.is_missed_for_long(job)
    stage.ended(job, "lost")
    failures, streak = (int(stage.state("slow-or-retried")[name]) for name in ("failure_count", "consecutive_failures"))
    with stage.worker("slow-or-retried"):  # its first maintenance retries it
        stage.steps.said(job, "start", 2)
        wait_until(lambda: stage.types(job) == ["lost", "reopened"], 30, lambda: f"{stage.lines(job)}")
        assert int(stage.state("slow-or-retried")["failure_count"]) == failures - 1
        assert int(stage.state("slow-or-retried")["consecutive_failures"]) == streak - 1
        stage.stop(job)
        assert stage.ended(job, "lost", "reopened", "stopped")["attempts"] == 2


def test_a_lost_run_that_is_requeued_may_succeed(stage: Stage) -> None:
    stage.hold()
    job = die(stage, "until-told")
    stage.let_life_lapse(job, "until-told")
    stage.is_missed_for_long(job)
    stage.ended(job, "lost")
    stage.maintain("until-told")
    stage.requeue(job, "until-told")
    stage.go()
    with stage.worker("until-told"):
        stage.ends_as(job, "succeeded")
    assert stage.lines(job)[-1]["attempts"] == 2


def test_a_failure_callback_that_ends_rqs_maintenance_leaves_the_run_lost(stage: Stage) -> None:
    job = die(stage, "slow-called-back-badly")
    stage.let_life_lapse(job, "slow-called-back-badly")
    assert "unhandled exception" in stage.maintain("slow-called-back-badly").log
    assert stage.status(job) == "started"
    stage.is_missed_for_long(job)
    stage.ended(job, "lost")


def ends_when_asked_again(worker: Worker) -> bool:
    """RQ hears the second signal when a second has gone by since the first."""
    worker.kill(signal.SIGTERM)
    return worker.process.poll() is not None


def test_a_worker_that_is_shut_down_cold_leaves_its_run_lost(stage: Stage) -> None:
    with stage.worker("slow") as worker:
        job = stage.fire("slow")
        stage.steps.said(job, "start")
        worker.kill(signal.SIGTERM)
        worker.says("warm shut down")
        wait_until(lambda: ends_when_asked_again(worker))
    assert stage.status(job) == "started"
    stage.let_life_lapse(job, "slow")
    stage.is_missed_for_long(job)
    stage.ended(job, "lost")


def test_a_stop_whose_callback_raises_leaves_the_run_lost(stage: Stage) -> None:
    with stage.worker("stopped-badly") as worker:
        job = stage.fire("stopped-badly")
        stage.steps.said(job, "start")
        stage.stop(job)
        worker.ends()
    assert stage.status(job) == "started"
    stage.let_life_lapse(job, "stopped-badly")
    stage.is_missed_for_long(job)
    stage.ended(job, "lost")


def test_a_work_horse_that_leaves_in_silence_is_lost_though_its_worker_lives(stage: Stage) -> None:
    with stage.worker("leaves-0"):
        job = stage.fire("leaves-0")
        wait_until(lambda: is_gone(stage.steps.said(job, "start").pid))
        assert stage.status(job) == "started"
        stage.let_life_lapse(job, "leaves-0")
        assert "went on to something else" in stage.ended(job, "lost")["reason"]


# --- who lives is not dead -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule_id", ["until-told", "until-told-for-ever"])
def test_a_simple_worker_in_a_long_job_is_not_dead(stage: Stage, schedule_id: str) -> None:
    stage.hold()
    with stage.worker(schedule_id, options=SIMPLE):
        job = stage.fire(schedule_id)
        stage.steps.said(job, "start")
        stage.redis.hset(f"rq:job:{job}", "last_heartbeat", "2020-01-01T00:00:00.000000Z")  # it sends none
        assert stage.stays_open(job)
        stage.look(job)
        assert not stage.record(job).get("missing")
        stage.go()
        stage.ended(job, "succeeded")


def test_a_worker_that_is_held_up_is_not_dead(stage: Stage) -> None:
    stage.hold()
    with stage.worker("until-told") as worker:
        job = stage.fire("until-told")
        stage.steps.said(job, "start")
        worker.kill(signal.SIGSTOP)
        stage.let_life_lapse(job, "until-told")
        stage.look(job)
        worker.kill(signal.SIGCONT)
        stage.go()
        stage.ended(job, "succeeded")
