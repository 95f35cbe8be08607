"""Measure one scrape of a scheduler with many schedules, from the HTTP request to the last byte of the response.

Every schedule has runs, failures, successes, and ticks skipped for two reasons. So the response has its maximum length:
twelve samples per schedule. *scrape, ten of them* has labels for only ten schedules. *longest metrics script* comes
from the server's slow log. Its event stream is full of failures to aggregate, each with a traceback and the maximum of
details.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from benchmarks.due import KEYS
from benchmarks.figures import Figure
from benchmarks.peers.stage import free_port
from benchmarks.readings import SlowLog, longest_ms
from benchmarks.stage import Beat, stage, tasks, until_registered, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.figures import Say, Scale
    from benchmarks.stage import Stage

TITLE = "Metrics"
SUITE = "metrics"
HOURS_S = 6 * 3600
EVENTS = 10_000
LIVED = {
    "last_run": "2026-11-16T09:00:00Z",
    "last_success": "2026-11-16T09:00:03.120Z",
    "consecutive_failures": "1",
    "run_count": "121",
    "skip_count": "6",
    "ends": "succeeded 117 failed 3 stopped 1",
    "skips": "misfire 3 overlap 3",
}
FAILED = {
    "type": "failed",
    "duration": 3.1,
    "waited": 0.02,
    "error": {"traceback": "x" * 2000},
    "details": {f"row_{n}": n for n in range(500)},
}


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    (schedules,), (times,) = scale.pick((10_000,), (2_000,)), scale.pick((10,), (3,))
    at = {"schedules": schedules}
    with stage() as made:
        home = made.clean()
        (home / "tasks.py").write_text(tasks(schedules, start=made.now() + HOURS_S, every="12h"), encoding="utf-8")
        for what, globs in (("scrape", "*"), ("scrape, ten of them", "s00000?")):
            say(f"{what}, {schedules:,} schedules")
            port, log = free_port(), SlowLog(made)
            with Beat(home, made.url, "--metrics-port", str(port), env={"BEAT_METRICS_SCHEDULES": globs}) as beat:
                until_registered(made, beat, schedules)
                live(made, schedules)
                log.forget()
                taken = scrapes(port, times)
            yield Figure(SUITE, what, taken, "s", at=at)
            if globs == "*":
                yield Figure(SUITE, "longest metrics script", (longest_ms(log.scripts()),), "ms", at=at)
            log.close()


def live(made: Stage, schedules: int) -> None:
    """Write the state and events of schedules that have run for a while."""
    with made.redis.pipeline(transaction=False) as pipe:
        for n in range(schedules):
            pipe.hset(KEYS.schedule(f"s{n:06d}"), mapping=LIVED)
        for _ in range(EVENTS):
            pipe.xadd(KEYS.events, {"type": "failed", "entry": json.dumps(FAILED)})
        pipe.execute()


def scrapes(port: int, times: int) -> tuple[float, ...]:
    """Time scrapes after a first one, which aggregates all events."""
    wait_for(lambda: scraped(port) > 0, 60)
    return tuple(scraped(port) for _ in range(times))


def scraped(port: int) -> float:
    """Return the seconds that a scrape took; 0 if the server is not up yet."""
    began = time.perf_counter()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as reply:
            reply.read()
    except urllib.error.URLError:
        return 0
    return time.perf_counter() - began
