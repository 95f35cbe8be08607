"""How soon the end of a run is in the ledger, and what looking costs Redis, with many runs open.

A real beat on a private Redis with AOF everysec. The runs are fired by it; their ends are written as RQ writes them, at
random instants, so that the figure is beat's alone and not that of a thousand workers on two cores.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from redis import Redis
from rq.job import Job

from beat import embedded

SECONDS = 20
LINE = (
    "{runs:,} open runs: outcome after p50 {p50:.0f} ms, p99 {p99:.0f} ms, max {max:.0f} ms; "
    "Redis is busy {idle_ms_per_s} ms/s with looking, {busy_ms_per_s} ms/s while they end"
)


def tasks(runs: int) -> str:
    """A module whose schedules have all fallen due once within two seconds of its start."""
    start = datetime.fromtimestamp(int(time.time()) + 8, UTC).isoformat()
    return f"""
from datetime import datetime
from beat import register
def work(): ...
for n in range({runs}):
    register(work, every="1h", start=datetime.fromisoformat({start!r}), id=f"s{{n}}")
"""


def measure(home: Path, url: str, runs: int) -> dict[str, Any]:
    """Lags in ms, and Redis' time in ms per second: while nothing ends, and while everything does."""
    (home / "work.py").write_text(tasks(runs))
    command = [sys.executable, "-m", "beat", "run", "work", "--redis-url", url, "--log-level", "error"]
    with Redis.from_url(url) as redis, subprocess.Popen(command, cwd=home) as beat:  # noqa: S603 (our own)
        while redis.zcard("beat:open") < runs:
            time.sleep(0.1)
        jobs = [job.decode() for job in redis.zrange("beat:open", 0, -1)]
        for job in jobs:  # started by a worker that shows life
            redis.hset(Job.key_for(job), mapping={"status": "started", "started_at": stamp(), "worker_name": "w"})
            redis.zadd(f"rq:executions:{job}", {"x": time.time() + 1000})
            redis.hset(f"rq:execution:{job}:x", "last_heartbeat", time.time())
        time.sleep(2)
        idle = busy_ms(redis, 5)
        ends = sorted((random.uniform(0, SECONDS), job) for job in jobs)  # noqa: S311 (no secret)
        began, spent = time.monotonic(), usec(redis)
        for at, job in ends:
            time.sleep(max(0, began + at - time.monotonic()))
            finish(redis, job)
        while redis.zcard("beat:open"):
            time.sleep(0.1)
        loaded = (usec(redis) - spent) / 1000 / (time.monotonic() - began)
        beat.send_signal(signal.SIGTERM)
    lags = sorted(lag(redis, f"s{n}") for n in range(runs))
    return {"runs": runs, "p50": statistics.median(lags), "p99": lags[int(len(lags) * 0.99)], "max": lags[-1],
            "idle_ms_per_s": round(idle, 2), "busy_ms_per_s": round(loaded, 2)}  # fmt: skip


def finish(redis: Any, job: str) -> None:
    """As RQ does, in one step."""
    with redis.pipeline() as pipe:
        pipe.hset(Job.key_for(job), mapping={"status": "finished", "ended_at": stamp()})
        pipe.xadd(f"rq:results:{job}", {"type": 1, "worker_name": "w"})
        pipe.delete(f"rq:execution:{job}:x")
        pipe.execute()


def lag(redis: Any, schedule_id: str) -> float:
    """From the end of its run to the line in the ledger, in ms."""
    lines = [json.loads(line) for line in redis.lrange(f"beat:runs:{schedule_id}", 0, -1)]
    [line] = [line for line in lines if line["type"] == "succeeded"]
    return (datetime.fromisoformat(line["at"]) - datetime.fromisoformat(line["ended"])).total_seconds() * 1000


def usec(redis: Any) -> int:
    """What scripts have cost."""
    stats = redis.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {}).get("usec", 0) for name in ("evalsha", "eval"))


def busy_ms(redis: Any, seconds: float) -> float:
    """Milliseconds of scripts in each second."""
    before = usec(redis)
    time.sleep(seconds)
    return (usec(redis) - before) / 1000 / seconds


def stamp() -> str:
    """As RQ writes it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs="+", default=[1000, 10_000])
    for runs in parser.parse_args().runs:
        with tempfile.TemporaryDirectory(prefix="beat-") as place, embedded.start(Path(place) / "redis") as server:
            found = measure(Path(place), server.url, runs)
            print(LINE.format(**found))


if __name__ == "__main__":
    main()
