"""Who watches the queues, and what that says: how fast jobs came, and how late.

Nothing here knows who fills the queues. What is said of the peers errs in their favour.
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
"""Counting many queues may take this part of the time, so that it does not slow down what it counts."""


class Sample(NamedTuple):
    """So many had arrived by then, in seconds of the wall clock."""

    at: float
    arrived: int


def rate(samples: Iterable[Sample]) -> float:
    """Arrivals per second, from the first that was seen until the last.

    What a scheduler does before its first job (start, read its schedules) is left out, and so is what came with it.
    """
    seen = [sample for sample in samples if sample.arrived]
    if not seen or seen[0].arrived == seen[-1].arrived:
        raise ValueError("no rate: everything was there at the first look, or nothing ever")
    first, last = seen[0], next(sample for sample in seen if sample.arrived == seen[-1].arrived)
    return (last.arrived - first.arrived) / (last.at - first.at)


def past_the_second(arrivals: Iterable[float]) -> list[float]:
    """Lateness in seconds of what is due on whole seconds and never a whole one late."""
    return [arrived % 1.0 for arrived in arrivals]


def past_the_gap(arrivals: Iterable[float], period: float = 1.0) -> list[float]:
    """Lateness in seconds of what is due one period after the one before it, whenever that was.

    Who counts from when it got round to the last one drifts; it is charged with each step, not with the sum.
    """
    return [max(0.0, later - earlier - period) for earlier, later in pairwise(arrivals)]


def count(redis: Any, queues: Sequence[str]) -> int:
    """How many lie in these lists together."""
    with redis.pipeline(transaction=False) as pipe:
        for queue in queues:
            pipe.llen(queue)
        return sum(pipe.execute())


def watch(
    redis: Any, queues: Sequence[str], total: int, *, cap_s: float, patience_s: float, alive: Callable[[], bool]
) -> list[Sample]:
    """Looks until `total` have come, or `cap_s` are over since the first.

    TimeoutError when none comes, ChildProcessError when whoever fills the queues is no longer alive.
    """
    samples: list[Sample] = []
    began = first = time.monotonic()
    while not samples or (samples[-1].arrived < total and time.monotonic() - first < cap_s):
        looked = time.monotonic()
        number = count(redis, queues)
        took = time.monotonic() - looked
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
    """Takes each job out of a queue as it comes and notes the time, as an idle worker would see it."""

    def __init__(self, url: str, queue: str) -> None:
        super().__init__(daemon=True)
        self.seen: list[tuple[float, str]] = []
        """When, in seconds of the wall clock, and what."""
        self._redis: Any = Redis.from_url(url, decode_responses=True)
        self._queue, self._over = queue, threading.Event()

    def run(self) -> None:
        """Until `close`."""
        while not self._over.is_set():
            if taken := self._redis.blpop([self._queue], timeout=0.2):
                self.seen.append((time.time(), taken[1]))
                while more := self._redis.lpop(self._queue, BATCH):
                    now = time.time()
                    self.seen += ((now, each) for each in more)

    def close(self) -> None:
        """Take no more."""
        self._over.set()
        self.join()
        self._redis.close()
