"""The stage of these tests: a Redis, a beat that learns what becomes of runs, and schedules that fire when told to."""

from __future__ import annotations

import os
import subprocess
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from redis import Redis
from rq.command import send_stop_job_command
from rq.job import Job

from tests.resilience.outcomes.ledgers import DAY_MS, Ledgers, schedule_of
from tests.support.facts import wait_until
from tests.support.rq_worker import RQ, Steps, Worker, environment
from tests.support.schedulers import Beat, seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PATIENCE_S = 60
SOON_S = 4.5
"""Two, as is promised, and what a busy machine adds."""


class Stage(Ledgers):
    """One beat, one Redis, and all schedules of `tasks`."""

    def __init__(self, home: Path, url: str) -> None:
        super().__init__(url)
        self.steps = Steps(home / "steps.log")
        self.beat = Beat(
            home, url, module="tests.resilience.outcomes.tasks", BEAT_INTERVAL="0.1", **only_ours(self.steps)
        )

    def __enter__(self) -> Self:
        self.beat.says("registered")
        return self

    def __exit__(self, *_: object) -> None:
        self.beat.__exit__()
        self.close()

    # --- acts --------------------------------------------------------------------------------------------------------

    def fire(self, schedule_id: str) -> str:
        """Makes this second a tick of a schedule, and waits until it is fired; the id of the job."""
        key, state = f"beat:schedule:{schedule_id}", self.state(schedule_id)
        fired, last = int(state.get("run_count", 0)), state.get("last_run")
        tick = max(seconds_of(self.redis), int(_instant(last).timestamp()) + 1 if last else 0)
        text = datetime.fromtimestamp(tick, UTC).isoformat().replace("+00:00", "Z")
        with self.redis.pipeline() as pipe:
            pipe.hset(key, mapping={"next_run": text, "due_at": text})
            pipe.zadd("beat:due", {schedule_id: tick * 1000})
            pipe.execute()
        wait_until(lambda: self.count(schedule_id, "run") == fired + 1, PATIENCE_S, lambda: self.beat.log)
        return self.state(schedule_id)["last_job"]

    def worker(self, *queues: str, options: Iterable[str] = ()) -> Worker:
        """A worker of these queues."""
        return Worker(self.url, self.steps, *queues, options=options)

    def maintain(self, queue: str) -> Worker:
        """A worker that comes, does RQ's maintenance and what work there is, and leaves."""
        with self.worker(queue, options=["--burst"]) as worker:
            worker.ends()
        return worker

    def requeue(self, job: str, queue: str) -> None:
        """As an operator does."""
        command = [*RQ, "requeue", "--url", self.url, "--queue", queue, job]
        subprocess.run(command, check=True, capture_output=True, env=environment(self.steps))

    def stop(self, job: str) -> None:
        """RQ's command to the worker that runs it."""
        with Redis.from_url(self.url) as redis:
            send_stop_job_command(redis, job)

    def rq_job(self, job: str) -> Job:
        """The job, as RQ's own code sees it."""
        return Job.fetch(job, connection=self._raw)

    def hold(self) -> None:
        """The jobs that wait to be told wait."""
        self._signal.unlink(missing_ok=True)

    def go(self) -> None:
        """The jobs that wait to be told may end."""
        self._signal.touch()

    @property
    def _signal(self) -> Path:
        return self.steps.log.with_name(self.steps.log.name + ".go")

    # --- facts -------------------------------------------------------------------------------------------------------

    def ended(self, job: str, *types: str, seconds: float = PATIENCE_S) -> dict[str, Any]:
        """Waits until this is what the ledger says about one run, and no more; the newest line."""

        def said() -> str:
            kept = f"record {self.record(job)}, RQ {self.status(job)}, said {self.steps.words(job)}"
            return f"for {types} of {job}: {self.lines(job)}; {kept}\n{self.beat.log[-1500:]}"

        wait_until(lambda: len(self.types(job)) >= len(types), seconds, said)
        assert self.types(job) == list(types), said()
        assert job not in self.open()
        self.agree(schedule_of(job))
        return self.lines(job)[-1]

    def ends_as(self, job: str, outcome: str) -> dict[str, Any]:
        """Waits until the ledger's last word on a run is this, whatever it said before; that line."""
        wait_until(lambda: self.types(job)[-1:] == [outcome], PATIENCE_S, lambda: f"for {outcome}: {self.lines(job)}")
        self.agree(schedule_of(job))
        return self.lines(job)[-1]

    def is_missed(self, job: str) -> None:
        """Waits until beat has noticed that a run is not where it should be."""
        wait_until(lambda: (self.record(job) or {}).get("missing"), PATIENCE_S, lambda: f"to miss {self.record(job)}")

    def is_missed_for_long(self, job: str, ms: int = DAY_MS) -> None:
        """Wait until beat has noticed it, and let so much time pass."""
        wait_until(lambda: self.age(job, ms), PATIENCE_S, lambda: f"to miss {self.record(job)}")

    def stays_open(self, job: str) -> bool:
        """Whether beat goes on to look at a run, as often as it likes, and finds that it is not over."""
        end = time.monotonic() + (
            6 if self.status(job) == "started" else 0
        )  # of life it makes sure once in five seconds

        def is_enough() -> bool:
            self.look(job)
            return bool(self.types(job)) or time.monotonic() >= end

        wait_until(is_enough)
        return job in self.open() and not self.types(job)


def soon(line: dict[str, Any], end: float) -> None:
    """Beat knew soon; said so that a machine that was too busy is given a second chance."""
    late = _instant(line["at"]).timestamp() - end
    assert late <= SOON_S, f"waited {late:.1f} s in vain for an outcome: {line}"


def only_ours(steps: Steps) -> dict[str, str]:
    """What a beat needs in its environment to import the jobs."""
    return {name: value for name, value in environment(steps).items() if os.environ.get(name) != value}


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
