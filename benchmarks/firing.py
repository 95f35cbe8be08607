"""Measure how fast one contender enqueues the jobs of many schedules that are all due at once."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.arrivals import count, looked, rate, rate_since, watch
from benchmarks.peers.stage import Crew
from benchmarks.processor import cpu_s
from benchmarks.stage import Beat, tasks, until_registered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers.crowds import Crowd
    from benchmarks.stage import Stage

STARTS_S = 1.5
EACH_S, MANY = 1 / 2000, 5_000
"""The assumed time to register one schedule, until a run with at least MANY has measured it."""
AHEAD_S = 1.6
"""How long before the due instant a scheduler must be ready: it claims one second ahead. Start-up does not count."""
PATIENCE_S = 180.0
TRIES = 4
APART_S, SLOWEST = 5, 2_500
"""The least time between two due instants, and the lowest assumed rate of fires in between."""
FROM_FIRST = "fires per second, from the first job"
"""The rate of a peer if the time to look for due schedules did not count."""


class TooLate(Exception):
    """The due instant came before the scheduler was ready."""


class BeatAct:
    """`beat run` on one stage. It learns how long registration takes, to choose the earliest safe due instant."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._each_s = EACH_S

    def __call__(self, schedules: int, queues: int, *, times: int) -> dict[str, float]:
        """Fire all schedules `times` times, and return the figures by name."""
        for _ in range(TRIES):
            try:
                return self._fire(schedules, queues, times)
            except TooLate:
                self._each_s *= 1.5
        raise TimeoutError(f"{schedules:,} schedules were not registered in time, {TRIES} times")

    def _fire(self, schedules: int, queues: int, times: int) -> dict[str, float]:
        home, keys = self._stage.clean(), [f"rq:queue:q{n}" for n in range(queues)]
        began = self._stage.now()
        start = math.ceil(began + STARTS_S + AHEAD_S + 1.3 * schedules * self._each_s)
        apart = max(APART_S, schedules // SLOWEST)
        (home / "tasks.py").write_text(
            tasks(schedules, start=start, queues=queues, every=f"{apart}s"), encoding="utf-8"
        )
        with Beat(home, self._stage.url) as beat:
            until_registered(self._stage, beat, schedules)
            if schedules >= MANY:
                self._each_s = (self._stage.now() - began) / schedules
            if self._stage.now() > start - AHEAD_S:
                raise TooLate
            time.sleep(start - AHEAD_S + 0.1 - self._stage.now())
            self._stage.redis.config_resetstat()
            used = cpu_s(beat.process.pid)
            rates = [self._rate(beat, keys, schedules, start + n * apart, n) for n in range(times)]
            return {
                "fires per second": statistics.median(rates),
                "Redis time per fire": self._stage.busy_us() / schedules / times,
                "beat CPU per fire": (cpu_s(beat.process.pid) - used) * 1e6 / schedules / times,
            }

    def _rate(self, beat: Beat, keys: Sequence[str], schedules: int, due: int, before: int) -> float:
        """Return fires per second from the due instant to the last job; jobs of `before` earlier times stay queued."""
        samples = watch(
            self._stage.redis, keys, total := schedules * (before + 1), cap_s=PATIENCE_S, patience_s=AHEAD_S + 30,
            alive=lambda: beat.process.poll() is None,
        )  # fmt: skip
        if samples[-1].arrived != total:
            raise TimeoutError(f"{samples[-1].arrived:,} of {total:,} fired in {PATIENCE_S:.0f} s")
        return schedules / (samples[-1].at - due)


def peer(stage: Stage, crowd: Crowd, schedules: int, queues: int, *, cap_s: float) -> dict[str, float]:
    """Measure the rate of a peer.

    A peer that looks in Redis for due schedules is timed from that look to its last job, so neither start-up nor
    storing counts. A peer that keeps its schedules in memory is timed from its first job to its last, or for `cap_s`.
    """
    contender = crowd(schedules, queues)
    crew = Crew(contender, stage.url, stage.clean())
    if crew.prepared:
        raise ChildProcessError(f"{contender.title} could not be prepared: {crew.last_words('prepare')}")
    try:
        stage.redis.config_resetstat()  # what `prepare` asked for is no look
        crew.start(0)
        process = crew.process(0)

        def alive() -> bool:
            return process.poll() is None

        seen = partial(watch, stage.redis, contender.queues, schedules, patience_s=PATIENCE_S, alive=alive)
        if not contender.looks:
            return {"fires per second": rate(seen(cap_s=cap_s))}
        began = looked(stage.redis, contender.looks, patience_s=PATIENCE_S, alive=alive)
        samples = seen(cap_s=PATIENCE_S)
        if samples[-1].arrived != schedules:
            raise TimeoutError(f"{samples[-1].arrived:,} of {schedules:,} arrived in {PATIENCE_S:.0f} s")
        return {"fires per second": rate_since(began, samples), FROM_FIRST: rate(samples)}
    except OSError as e:  # it did not look, nothing came, or it ended
        raise type(e)(f"{e}; it said last: {crew.last_words()[-500:]}") from None
    finally:
        crew.close()


def floor(stage: Stage, program: str, schedules: int, queues: int) -> dict[str, float]:
    """Run a program of `benchmarks.floors` in its own process, like a scheduler, and return its rate."""
    stage.clean()
    words = [sys.executable, "-m", "benchmarks.floors", program, stage.url, str(schedules), str(queues)]
    said = subprocess.run(words, check=False, capture_output=True, text=True, timeout=PATIENCE_S)  # noqa: S603 (ours)
    if said.returncode:
        raise ChildProcessError(f"it said last: {said.stderr[-500:]}")
    there = count(stage.redis, [f"rq:queue:q{n}" for n in range(queues)])
    if there != schedules:
        raise AssertionError(f"{there:,} of {schedules:,} jobs are in the queues")
    return {"fires per second": schedules / float(said.stdout)}
