"""Runs that wait: never lost for their age, and lost when nothing will ever start them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.resilience.outcomes.ledgers import Ledgers
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.rq_worker import SIMPLE, Steps, Worker
from tests.support.schedulers import Beat, seconds_of

if TYPE_CHECKING:
    from pathlib import Path

    from beat.dev.embedded import PrivateRedis
    from tests.resilience.outcomes.stage import Stage


def test_a_run_that_lapses_in_the_queue_is_lost(stage: Stage) -> None:
    job = stage.fire("lapses")
    stage.is_missed_for_long(job)
    line = stage.ended(job, "lost")
    assert "no record" in line["reason"]
    assert (line["started"], line["worker"]) == (None, None)


def test_a_run_that_is_deleted_from_the_queue_is_lost(stage: Stage) -> None:
    job = stage.fire("good")
    stage.rq_job(job).delete()
    stage.is_missed_for_long(job)
    stage.ended(job, "lost")


def test_a_run_that_is_deleted_while_it_goes_on_comes_back_when_it_ends(stage: Stage) -> None:
    stage.hold()
    with stage.worker("until-told"):
        job = stage.fire("until-told")
        stage.steps.said(job, "start")
        stage.rq_job(job).delete()
        stage.is_missed(job)
        stage.go()
        stage.ended(job, "succeeded")


def test_a_run_that_a_worker_of_several_queues_took_to_its_grave_is_lost(stage: Stage) -> None:
    job = stage.fire("good")
    assert stage.redis.lpop("rq:queue:good") == job  # as it does; and then it dies
    stage.is_missed_for_long(job)
    line = stage.ended(job, "lost")
    assert "no queue" in line["reason"]


def test_a_run_that_a_worker_of_one_queue_took_to_its_grave_is_lost_before_rq_notices(stage: Stage) -> None:
    job = stage.fire("good")
    taken = "rq:queue:good:intermediate"
    assert stage.redis.lmove("rq:queue:good", taken, "LEFT", "RIGHT") == job
    stage.is_missed_for_long(job)
    stage.ended(job, "lost")
    stage.redis.set(f"{taken}:first_seen:{job}", 0)  # long ago
    stage.maintain("good")
    assert stage.status(job) == "failed"
    stage.ended(job, "lost")


def test_what_rq_finds_stuck_first_has_failed(stage: Stage) -> None:
    job = stage.fire("good")
    taken = "rq:queue:good:intermediate"
    assert stage.redis.lmove("rq:queue:good", taken, "LEFT", "RIGHT") == job
    stage.redis.set(f"{taken}:first_seen:{job}", 0)
    stage.maintain("good")
    line = stage.ended(job, "failed")
    assert line["error"]["type"] == "StuckInQueue"
    assert (line["started"], line["ended"]) == (None, None) or line["duration"] is None


def test_what_rq_finds_stuck_after_it_succeeded_has_succeeded(stage: Stage) -> None:
    """RQ forgets an entry there when a work-horse dies early, and calls the job of it failed long after its end."""
    with stage.worker("good"):
        job = stage.fire("good")
        stage.ended(job, "succeeded")
    taken = "rq:queue:good:intermediate"
    stage.redis.rpush(taken, job)
    stage.redis.set(f"{taken}:first_seen:{job}", 0)
    stage.maintain("good")
    assert stage.status(job) == "failed"
    stage.ended(job, "succeeded")


def test_a_run_that_comes_back_in_time_is_not_lost(stage: Stage) -> None:
    job = stage.fire("good")
    stage.redis.lpop("rq:queue:good")
    stage.look(job)
    stage.is_missed(job)
    stage.redis.rpush("rq:queue:good", job)
    with stage.worker("good"):
        stage.ended(job, "succeeded")


CROWD = """
from beat import periodic

@periodic(every="1s", queue="crowd")
def tick(): ...
"""


def test_a_backlog_is_no_loss(home: Path, server: PrivateRedis, redis: Any) -> None:
    """500 ticks are caught up with; they wait for a worker, and beat looks for them, as old as they are."""
    lay_out(home, {"tasks.py": CROWD})
    ledgers, steps = Ledgers(server.url), Steps(home / "steps.log")
    with Beat(home, server.url, BEAT_MISFIRE_AFTER="1h") as beat:
        beat.says("registered")
        past = datetime.fromtimestamp(seconds_of(redis) - 500, UTC).isoformat().replace("+00:00", "Z")
        redis.hset("beat:schedule:tick", mapping={"next_run": past, "due_at": past})
        redis.zadd("beat:due", {"tick": 0})
        wait_until(lambda: ledgers.count("tick", "run") >= 500, 60, lambda: beat.log)
        assert beat.end() == 0
    fired = ledgers.count("tick", "run")
    with Beat(home, server.url, "--only", "nothing") as beat:  # it watches, and fires nothing
        for job in ledgers.open()[::50]:
            ledgers.look(job)
            assert not ledgers.record(job).get("missing")
        assert sorted(ledgers.open()) == sorted(redis.lrange("rq:queue:crowd", 0, -1))
        assert len(ledgers.open()) == fired
        with Worker(server.url, steps, "crowd", options=["--burst", *SIMPLE]) as worker:
            assert worker.ends(120) == 0
        wait_until(lambda: not ledgers.open(), 60, lambda: f"for {ledgers.state('tick')}\n{beat.log[-1500:]}")
    assert ledgers.count("tick", "success") == fired
    ledgers.close()
