"""Runs that end in the hands of a live worker: the ledger says what RQ says, soon, and once."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.resilience.outcomes.stage import Stage, soon
from tests.support.facts import wait_until
from tests.support.rq_worker import SIMPLE, kill

if TYPE_CHECKING:
    from collections.abc import Sequence

STOCK: tuple[str, ...] = ()
JSON = ("--serializer", "json")
KINDS = pytest.mark.parametrize("kind", [STOCK, SIMPLE], ids=["worker", "simple"])


def performed(stage: Stage, schedule_id: str, outcome: str, options: Sequence[str] = ()) -> dict[str, Any]:
    """Fires a schedule, lets a worker do the job, and returns the line about its end, which came soon."""
    with stage.worker(schedule_id, options=options) as worker:
        job = stage.fire(schedule_id)
        line = stage.ended(job, outcome)
        assert line["worker"] == worker.name
    soon(line, stage.steps.of(job)[-1].at)
    assert (line["attempts"], line["tick"]) == (1, stage.state(schedule_id)["last_run"])
    assert 0 <= line["duration"] < 30
    started, ended, at = (datetime.fromisoformat(line[name]) for name in ("started", "ended", "at"))
    assert started <= ended <= at
    return line


@KINDS
@pytest.mark.parametrize("schedule_id", ["good", "coroutine", "unpicklable", "result-for-ever"])
def test_a_run_that_ends_well_has_succeeded(stage: Stage, schedule_id: str, kind: Sequence[str]) -> None:
    line = performed(stage, schedule_id, "succeeded", kind)
    assert line.keys().isdisjoint({"error", "reason", "reported", "message", "details"})
    state = stage.state(schedule_id)
    assert (state["last_success"], state["consecutive_failures"]) == (line["ended"], "0")
    assert float(state["last_duration"]) == line["duration"]


@pytest.mark.parametrize("kind", [JSON, (*JSON, *SIMPLE)], ids=["worker", "simple"])
def test_a_job_in_json_is_read_as_well(stage: Stage, kind: Sequence[str]) -> None:
    performed(stage, "in-json", "succeeded", kind)
    line = performed(stage, "bad-in-json", "failed", kind)
    assert line["error"]["type"] == "KeyError"


@KINDS
def test_an_exception_is_kept_with_its_trace(stage: Stage, kind: Sequence[str]) -> None:
    streak = int(stage.state("bad").get("consecutive_failures", 0))
    line = performed(stage, "bad", "failed", kind)
    assert line["error"]["type"] == "KeyError"
    assert line["error"]["message"] == "'on purpose'"
    assert line["error"]["traceback"].startswith("Traceback (most recent call last):")
    assert "reported" not in line
    state = stage.state("bad")
    assert (state["last_failure"], state["consecutive_failures"]) == (line["ended"], str(streak + 1))
    assert state["last_error"] == "KeyError: 'on purpose'"


@KINDS
@pytest.mark.parametrize(
    ("schedule_id", "error", "words"),
    [
        ("too-slow", "JobTimeoutException", "1 seconds"),
        ("exits", "SystemExit", "3"),
        ("good-called-back-badly", "RuntimeError", "the callback itself"),
        ("bad-called-back-badly", "RuntimeError", "the callback itself"),
    ],
)
def test_what_raises_has_failed(stage: Stage, schedule_id: str, error: str, words: str, kind: Sequence[str]) -> None:
    found = performed(stage, schedule_id, "failed", kind)["error"]
    assert found["type"].rpartition(".")[2] == error
    assert words in found["message"]


def test_a_work_horse_that_leaves_has_failed(stage: Stage) -> None:
    found = performed(stage, "leaves-1", "failed")["error"]
    assert found["type"] == "WorkHorseKilled"
    assert "256" in found["message"]


def test_a_work_horse_that_is_killed_has_failed(stage: Stage) -> None:
    with stage.worker("slow") as worker:
        job = stage.fire("slow")
        kill(stage.steps.said(job, "start").pid)
        line = stage.ended(job, "failed")
    assert line["error"]["type"] == "WorkHorseKilled"
    assert "signal 9" in line["error"]["message"]
    assert line["worker"] == worker.name


# --- how long results are kept ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule_id", "outcome"), [("result-for-0s", "succeeded"), ("failure-for-0s", "failed")], ids=str
)
def test_what_is_kept_for_no_time_has_its_outcome_all_the_same(stage: Stage, schedule_id: str, outcome: str) -> None:
    line = performed(stage, schedule_id, outcome)
    assert not stage.redis.exists(f"rq:job:{line['job']}", f"rq:results:{line['job']}")
    registries = [f"rq:{name}:{schedule_id}" for name in ("finished", "failed")]
    assert [stage.redis.zscore(each, line["job"]) for each in registries] == [None, None]


@pytest.mark.parametrize(
    ("schedule_id", "outcome"), [("result-for-1s", "succeeded"), ("failure-for-1s", "failed")], ids=str
)
def test_what_is_kept_for_a_second_goes_after_one(stage: Stage, schedule_id: str, outcome: str) -> None:
    line = performed(stage, schedule_id, outcome)
    wait_until(lambda: not stage.redis.exists(f"rq:job:{line['job']}", f"rq:results:{line['job']}"), 10)
    assert stage.types(line["job"]) == [outcome]


def test_what_is_kept_for_ever_stays(stage: Stage) -> None:
    line = performed(stage, "result-for-ever", "succeeded")
    assert stage.redis.ttl(f"rq:job:{line['job']}") == -1
    assert stage.redis.ttl(f"rq:results:{line['job']}") == -1


@pytest.mark.xfail(reason="RQ leaves nothing of such a job, as of one that somebody deleted")
def test_a_worker_that_keeps_no_results_hides_no_outcome(stage: Stage) -> None:
    with stage.worker("good", options=["--results-ttl", "0"]):
        job = stage.fire("good")
        stage.steps.said(job, "end")
        wait_until(lambda: stage.types(job) or (stage.age(job) and stage.types(job)))
        assert stage.types(job) == ["succeeded"]


def test_a_worker_that_records_no_failures_hides_none(stage: Stage) -> None:
    with stage.worker("bad", options=["--disable-default-exception-handler"]):
        stage.ended(stage.fire("bad"), "failed")


# --- results that speak, and that had better not ---------------------------------------------------------------------


@pytest.mark.parametrize(("schedule_id", "kind"), [("told", STOCK), ("told-in-json", JSON)], ids=["pickle", "json"])
def test_a_report_is_in_the_ledger(stage: Stage, schedule_id: str, kind: Sequence[str]) -> None:
    line = performed(stage, schedule_id, "succeeded", kind)
    assert (line["message"], line["details"]) == ("42 rows", {"rows": 42})


@pytest.mark.parametrize(
    ("schedule_id", "kind"), [("told-bad", STOCK), ("told-bad-in-json", JSON)], ids=["pickle", "json"]
)
def test_a_run_that_reports_no_success_has_failed(stage: Stage, schedule_id: str, kind: Sequence[str]) -> None:
    line = performed(stage, schedule_id, "failed", kind)
    assert (line["reported"], line["message"], line["details"]) == (True, "the disk is full", {"free": 0})
    assert "error" not in line
    assert "the disk is full" in stage.state(schedule_id)["last_error"]


@pytest.mark.parametrize("schedule_id", ["hostile", "nearly-told"])
def test_any_other_result_is_left_alone(stage: Stage, schedule_id: str) -> None:
    line = performed(stage, schedule_id, "succeeded")
    assert line.keys().isdisjoint({"reported", "message", "details"})
    assert_harmless(stage)


def test_a_report_with_something_hostile_in_it_does_no_harm(stage: Stage) -> None:
    line = performed(stage, "hostile-report", "failed")
    assert line["message"] == "all but this is hostile"
    assert "left_out" in line["details"]
    assert_harmless(stage)


def assert_harmless(stage: Stage) -> None:
    assert not list(stage.steps.log.parent.glob("*.harm")), "a result was loaded"
