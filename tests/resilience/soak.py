"""The soak: a beat, and a worker of which something is killed at random every twenty seconds, for ten minutes.

`make soak` runs it. Afterwards `beat verify` must account for every tick, `beat history` show an outcome for every run,
and nothing be open but what is still going; it ends with 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from redis import Redis

from beat.dev import embedded
from tests.support.facts import wait_until
from tests.support.rq_worker import Steps, Worker, children_of, environment, kill
from tests.support.schedulers import Beat

TASKS = """
import random, time
from beat import Report, periodic

@periodic(every="1s")
def quick(): ...

@periodic(every="2s")
def longer():
    time.sleep(random.uniform(0, 1.5))

@periodic(every="3s")
def unlucky():
    if random.random() < 0.5:
        raise RuntimeError("unlucky")

@periodic(every="5s", retry=1, result_ttl=0)
def again():
    if random.random() < 0.5:
        raise RuntimeError("again")

@periodic(every="7s")
def telling():
    return Report(random.random() < 0.5, "said so")
"""
DEAD_S = 200
"""How long it may take until the run of a killed worker is closed, and somewhat more."""


def run(home: Path, url: str, seconds: float, *, every_s: float = 20, seed: int = 0) -> str:
    """Lets it rage for so long; returns what happened, and fails when something is not accounted for."""
    (home / "tasks.py").write_text(TASKS)
    chance, steps, kills = random.Random(seed), Steps(home / "steps.log"), Counter[str]()  # noqa: S311 (to be repeated)
    end = time.monotonic() + seconds
    with Redis.from_url(url, decode_responses=True) as redis, Beat(home, url) as beat:
        workers = [Worker(url, steps) for _ in range(2)]
        while time.monotonic() < end:
            time.sleep(max(0, min(every_s, end - time.monotonic())))
            victim = chance.randrange(len(workers))
            what = chance.choice(["worker", "horse", "both"])
            kills[what] += 1
            horses = children_of(workers[victim].pid)
            if what != "horse":
                workers[victim].kill()
                workers[victim] = Worker(url, steps)
            for horse in horses if what != "worker" else ():
                kill(horse)
        wait_until(
            lambda: redis.llen("rq:queue:default") < len(workers) * 5, DEAD_S, lambda: "for the queue to be short"
        )
        assert beat.end() == 0, beat.log
        wait_until(lambda: redis.llen("rq:queue:default") == 0, DEAD_S, lambda: "for the queue to be empty")
        with Beat(home, url):
            wait_until(lambda: not dead(redis), DEAD_S, lambda: f"for the runs of dead workers: {dead(redis)}")
            said = ask(home, url, steps, "verify", code=0)
        for worker in workers:
            worker.__exit__()
        return f"{dict(kills)} killed; {outcomes(redis, home, url, steps)}\n{said}"


def dead(redis: Any) -> list[str]:
    """Open runs that do not wait, and are older than any job takes."""
    found = [(job, json.loads(redis.hget("beat:records", job))) for job in redis.zrange("beat:open", 0, -1)]
    limit = time.time() - 30
    return [job for job, record in found if when(record["enqueued"]) < limit]


def when(text: str) -> float:
    """Seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


def outcomes(redis: Any, home: Path, url: str, steps: Steps) -> str:
    """How many runs ended how; every one of them did, but for those that are still going."""
    lines = json.loads(ask(home, url, steps, "history", "--json", "-n", "100000"))["lines"]
    fired = [line for line in lines if line["type"] == "run"]
    going = set(redis.zrange("beat:open", 0, -1))
    for line in fired:
        assert line["state"] in {"succeeded", "failed", "stopped", "lost"} or line["job"] in going, line
    assert len(going) < 20, going
    return f"{len(fired)} runs: {dict(Counter(line['state'] for line in fired))}"


def ask(home: Path, url: str, steps: Steps, *command: str, code: int | None = None) -> str:
    """What the command line says."""
    whole = [sys.executable, "-m", "beat", *command]
    told = {**environment(steps), "BEAT_REDIS_URL": url}
    done = subprocess.run(whole, cwd=home, env=told, capture_output=True, text=True, check=False)
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done.stdout


def main() -> int:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="beat-") as place:
        home = Path(place)
        with embedded.start(home / "redis") as server:
            try:
                sys.stdout.write(run(home, server.url, given.seconds, seed=given.seed) + "\n")
            except AssertionError as e:
                sys.stdout.write(f"{e}\n")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
