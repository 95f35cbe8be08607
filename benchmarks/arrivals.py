"""Watch the queues, and compute how fast and how late jobs arrive.

This module knows nothing of the scheduler that fills the queues. Errors of measurement favour the peers.
"""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from redis import Redis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

BATCH = 1000
PAUSE_S = 0.005
PART = 0.1
"""The share of a processor that counting may use, so that it does not slow down the scheduler. Only processor time
counts. When the pause also grew with the wait for a busy Redis, the last of 10,000 jobs was seen up to 50 ms late."""


class Sample(NamedTuple):
    """How many jobs had arrived by an instant of the wall clock, in seconds."""

    at: float
    arrived: int


def rate(samples: Sequence[Sample]) -> float:
    """Return arrivals per second, from the first sample with jobs to the last arrival.

    The rate excludes the jobs of that first sample, and the time before it (start-up, reading what is due).
    """
    last = _last(samples)
    first = next(sample for sample in samples if sample.arrived)
    if first.arrived == last.arrived:
        raise ValueError("no rate: everything was there at the first look")
    return (last.arrived - first.arrived) / (last.at - first.at)


def rate_since(began: float, samples: Sequence[Sample]) -> float:
    """Return arrivals per second from the instant `began` to the last arrival, counting every job."""
    last = _last(samples)
    return last.arrived / (last.at - began)


def _last(samples: Sequence[Sample]) -> Sample:
    """Return the first sample that has all jobs."""
    if not samples or not samples[-1].arrived:
        raise ValueError("no rate: nothing ever arrived")
    return next(sample for sample in samples if sample.arrived == samples[-1].arrived)


def past_the_second(arrivals: Iterable[float]) -> list[float]:
    """Return the lateness in seconds of jobs that are due on whole seconds and less than one second late."""
    return [arrived % 1.0 for arrived in arrivals]


def past_the_gap(arrivals: Iterable[float], period: float = 1.0) -> list[float]:
    """Return the lateness in seconds of jobs that are each due one period after the previous arrival.

    A scheduler that counts from the previous arrival drifts. Each step counts as lateness, but the sum does not.
    """
    return [max(0.0, later - earlier - period) for earlier, later in pairwise(arrivals)]


def count(redis: Any, queues: Sequence[str]) -> int:
    """Return the total length of these lists."""
    with redis.pipeline(transaction=False) as pipe:
        for queue in queues:
            pipe.llen(queue)
        return sum(pipe.execute())


def looked(redis: Any, command: str, *, patience_s: float, alive: Callable[[], bool]) -> float:
    """Wait until Redis has run this command since its statistics were reset; return the wall clock in seconds.

    The result is a little later than the scheduler sent the command, which favours the scheduler. Raise TimeoutError
    if the command does not come, and ChildProcessError if the scheduler has ended.
    """
    end = time.monotonic() + patience_s
    while f"cmdstat_{command}" not in redis.info("commandstats"):
        if not alive():
            raise ChildProcessError(f"it ended before it looked for what is due ({command})")
        if time.monotonic() > end:
            raise TimeoutError(f"it never looked for what is due: no {command} in {patience_s:.0f} s")
        time.sleep(PAUSE_S)
    return time.time()


def watch(
    redis: Any, queues: Sequence[str], total: int, *, cap_s: float, patience_s: float, alive: Callable[[], bool]
) -> list[Sample]:
    """Sample the queues until `total` jobs have arrived, or until `cap_s` seconds after the first.

    Raise TimeoutError if no job arrives, and ChildProcessError if the scheduler has ended.
    """
    samples: list[Sample] = []
    began = first = time.monotonic()
    while not samples or (samples[-1].arrived < total and time.monotonic() - first < cap_s):
        looked, used = time.monotonic(), time.thread_time()
        number = count(redis, queues)
        took = time.thread_time() - used
        if number:
            first = first if samples else looked
            samples.append(Sample(time.time(), number))
        elif looked - began > patience_s:
            raise TimeoutError(f"nothing arrived in {patience_s:.0f} s")
        if not alive():
            raise ChildProcessError(f"it ended after {number:,} of {total:,} jobs")
        time.sleep(max(PAUSE_S, took / PART - took))
    return samples


class Watcher(threading.Thread):
    """Pop each job as it arrives and note the time, as an idle worker would see it."""

    def __init__(self, url: str, queue: str) -> None:
        super().__init__(daemon=True)
        self.seen: list[tuple[float, str]] = []
        """When each element arrived, in seconds of the wall clock, and the element."""
        self._redis: Any = Redis.from_url(url, decode_responses=True)
        self._queue, self._over = queue, threading.Event()

    def run(self) -> None:
        """Pop elements until `close`."""
        while not self._over.is_set():
            if taken := self._redis.blpop([self._queue], timeout=0.2):
                self.seen.append((time.time(), taken[1]))
                while more := self._redis.lpop(self._queue, BATCH):
                    now = time.time()
                    self.seen += ((now, each) for each in more)

    def close(self) -> None:
        """Stop the thread and close its connection."""
        self._over.set()
        self.join()
        self._redis.close()
