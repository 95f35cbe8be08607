"""The ledger's nemesis: beats, workers and jobs of every kind, killed, stopped, deleted and requeued at random.

Afterwards every run has an outcome, and the log that the jobs wrote confirms it. `make ledger` goes on until 1,000 runs
have ended, and waits for what dead workers leave (minutes). The tests run it shorter, and make time pass by hand. It
exits with 1 if the ledger and the log disagree.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Self

from redis import Redis
from rq.command import send_stop_job_command
from rq.exceptions import InvalidJobOperation, NoSuchJobError
from rq.job import Job

from beat.dev import embedded
from tests.resilience.ledger_tasks import JSON, KINDS, MIXED
from tests.resilience.ledger_truth import Harm, compare
from tests.resilience.outcomes.ledgers import Ledgers, schedule_of
from tests.resilience.outcomes.stage import only_ours
from tests.resilience.soak import ask
from tests.support.rq_worker import SIMPLE, Steps, Worker, horses_of, is_gone, kill
from tests.support.schedulers import Beat

if TYPE_CHECKING:
    from collections.abc import Callable

SPARE = "spare"
QUEUES = (MIXED, JSON, SPARE)
FLEET = (
    ((MIXED,), ("--with-scheduler",)),
    ((MIXED, SPARE), ()),
    ((MIXED,), SIMPLE),
    ((JSON,), ("--serializer", "json")),
)
"""The queues and the options of each worker."""
PAUSE_S = 0.3
"""Between two deeds, on average."""
Refused = (NoSuchJobError, InvalidJobOperation)
"""What RQ says when a job is not what it was a moment ago."""


class Nemesis:
    """Everything that lives, and what is done to it."""

    def __init__(self, home: Path, url: str, *, seed: int, beats: int = 2) -> None:
        self.ledgers, self.steps = Ledgers(url), Steps(home / "steps.log")
        self.harm, self.done = Harm(), Counter[str]()
        self._home, self._url, self._rq = home, url, Redis.from_url(url)
        self._chance = random.Random(seed)  # noqa: S311 (to be repeated)
        self._beats = [self._beat() for _ in range(beats)]
        self._workers = [self._worker(place) for place in range(len(FLEET))]
        self._dead: list[Worker] = []
        self._deeds: dict[str, tuple[int, Callable[[], bool]]] = {
            "killed a work-horse": (4, self._kill_horse),
            "killed a worker": (2, lambda: self._kill_worker(with_horse=False)),
            "killed both": (3, lambda: self._kill_worker(with_horse=True)),
            "killed a beat": (2, self._kill_beat),
            "stopped a run": (2, self._stop),
            "cancelled one": (1, lambda: self._in_queue("cancelled", Job.cancel)),
            "deleted one": (1, lambda: self._in_queue("deleted", Job.delete)),
            "took one to its grave": (1, self._pop),
            "requeued one": (3, self._requeue),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for beat in self._beats:
            beat.__exit__()
        for worker in (*self._workers, *self._dead):
            worker.__exit__()
        self._rq.close()
        self.ledgers.close()

    def _beat(self, *options: str) -> Beat:
        return Beat(self._home, self._url, *options, module="tests.resilience.ledger_tasks", **only_ours(self.steps))

    def _worker(self, place: int) -> Worker:
        queues, options = FLEET[place]
        return Worker(self._url, self.steps, *queues, options=options)

    # --- deeds: each is noted before it is done ----------------------------------------------------------------------

    def strike(self) -> None:
        """One deed, by chance; nothing happens if there is nobody to do it to."""
        weights = [weight for weight, _ in self._deeds.values()]
        what = self._chance.choices(list(self._deeds), weights)[0]
        with contextlib.suppress(*Refused):
            self.done[what] += self._deeds[what][1]()

    def _kill_horse(self) -> bool:
        horses = [horse for worker in self._workers for horse in horses_of(worker.pid)]
        self._kill(*horses[:1])
        return bool(horses)

    def _kill_worker(self, *, with_horse: bool) -> bool:
        place = self._chance.randrange(len(self._workers))
        worker, horses = self._workers[place], horses_of(self._workers[place].pid)
        self.harm.killed.add(worker.pid)
        worker.kill()
        self._kill(*horses if with_horse else ())
        self._dead.append(worker)
        self._workers[place] = self._worker(place)
        return True

    def _kill(self, *pids: int) -> None:
        self.harm.killed.update(pids)
        for pid in pids:
            kill(pid)

    def _kill_beat(self) -> bool:
        place = self._chance.randrange(len(self._beats))
        self._beats[place].kill()
        self._beats[place] = self._beat()
        return True

    def _stop(self) -> bool:
        going = [job for job in self.ledgers.open() if self.ledgers.status(job) == "started"]
        return bool(going) and self._do("stopped", self._chance.choice(going), self._send_stop)

    def _send_stop(self, job: str) -> None:
        send_stop_job_command(self._rq, job)

    def _in_queue(self, deed: str, act: Callable[[Job], object]) -> bool:
        waiting = self.ledgers.redis.lrange(f"rq:queue:{MIXED}", 0, -1)
        return bool(waiting) and self._do(deed, self._chance.choice(waiting), lambda job: act(self._job(job)))

    def _requeue(self) -> bool:
        failed = self.ledgers.redis.zrange(f"rq:failed:{MIXED}", 0, -1)
        return bool(failed) and self._do("requeued", self._chance.choice(failed), lambda job: self._job(job).requeue())

    def _do(self, deed: str, job: str, act: Callable[[str], object]) -> bool:
        self.harm.deeds[job].add(deed)
        act(job)
        return True

    def _job(self, job: str) -> Job:
        return Job.fetch(job, connection=self._rq)

    def _pop(self) -> bool:
        """As a worker of several queues does that dies at once."""
        job = self.ledgers.redis.lpop(f"rq:queue:{MIXED}")
        if job:
            self.harm.deeds[job].add("popped")
        return bool(job)

    # --- until all is quiet ------------------------------------------------------------------------------------------

    def rage(self, runs: int) -> None:
        """Goes on until so many runs have been fired."""
        while sum(self.ledgers.count(each, "run") for each in KINDS) < runs:
            time.sleep(self._chance.uniform(0, 2 * PAUSE_S))
            self.strike()

    def calm(self, seconds: float, *, patient: bool) -> None:
        """Nothing is fired any more, and nobody killed; waits until every run has ended."""
        for beat in self._beats:
            beat.says("registered")
            assert beat.end(30) == 0, beat.log
        self._beats = [self._beat("--only", "nothing")]
        end = time.monotonic() + seconds
        while left := self._left():
            assert time.monotonic() < end, f"waited {seconds} s in vain for {left}\n{self._beats[0].log[-1500:]}"
            if not patient:
                self._let_time_pass()
            self._maintain()
            time.sleep(5 if patient else 0.5)  # each new worker takes what the beat needs to close runs

    def _left(self) -> list[str]:
        """All that waits or goes on, for RQ and for beat."""
        redis = self.ledgers.redis
        lists = [key for queue in QUEUES for key in (f"rq:queue:{queue}", f"rq:queue:{queue}:intermediate")]
        sets = [f"rq:{name}:{queue}" for name in ("wip", "scheduled") for queue in QUEUES]
        return [*self.ledgers.open(), *(key for key in lists if redis.llen(key)), *(k for k in sets if redis.zcard(k))]

    def _let_time_pass(self) -> None:
        """For each run at which nobody is any more, and for the lock of a worker killed in maintenance."""
        redis = self.ledgers.redis
        redis.delete(*(f"rq:clean_registries:{queue}" for queue in QUEUES))
        entries = [entry for queue in QUEUES for entry in redis.zrange(f"rq:wip:{queue}", 0, -1)]
        entries += [entry for queue in QUEUES for entry in redis.lrange(f"rq:queue:{queue}:intermediate", 0, -1)]
        for job in {*self.ledgers.open(), *(entry.partition(":")[0] for entry in entries)}:
            queue = KINDS[schedule_of(job)][2].get("queue", MIXED)
            if self._is_over(job):
                self.ledgers.let_life_lapse(job, queue)
                redis.set(f"rq:queue:{queue}:intermediate:first_seen:{job}", 0, xx=True)
            self.ledgers.age(job)

    def _is_over(self, job: str) -> bool:
        """Whether no process is at it; a worker that lives may have been, and have gone on to something else."""
        worker_keys = [f"rq:worker:{worker.name}" for worker in self._workers]
        busy = [self.ledgers.redis.hmget(key, "state", "current_job") for key in worker_keys]
        alive = {worker.pid for worker in self._workers}
        at_it = {step.pid for step in self.steps.of(job)} - alive
        return ["busy", job] not in busy and all(is_gone(pid) for pid in at_it)

    def _maintain(self) -> None:
        """A new worker looks after what the dead have left, and does what work there is."""
        for queues, options in (((MIXED, SPARE), ()), ((JSON,), ("--serializer", "json"))):
            with Worker(self._url, self.steps, *queues, options=("--burst", *options)) as worker:
                worker.ends(120)


def run(home: Path, url: str, runs: int, *, seed: int, patient: bool = False) -> str:
    """Lets it rage until so many runs were fired; returns what happened, and fails when the ledger is not true."""
    with Nemesis(home, url, seed=seed) as nemesis:
        nemesis.rage(runs)
        nemesis.calm(1200 if patient else 300, patient=patient)
        told = compare(nemesis.ledgers, nemesis.steps, nemesis.harm)
        verified = ask(home, url, nemesis.steps, "verify", code=0).splitlines()[-1]
        return f"seed {seed}: {dict(nemesis.done)}; {told}; {verified}"


def main() -> int:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--hurry", action="store_true", help="Make time pass by hand, as the tests do.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="beat-") as place:
        home = Path(place)
        with embedded.start(home / "redis") as server:
            try:
                told = run(home, server.url, given.runs, seed=given.seed, patient=not given.hurry)
            except AssertionError as e:
                sys.stdout.write(f"seed {given.seed}: {e}\n")
                return 1
    sys.stdout.write(f"{told}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
