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
"""Counting many queues may take this part of a processor, so that it does not slow down what it counts. Waiting for a
busy Redis is no counting: who then looked away for nine times as long saw the last of 10,000 jobs up to 50 ms late."""


class Sample(NamedTuple):
    """So many had arrived by then, in seconds of the wall clock."""

    at: float
    arrived: int


def rate(samples: Sequence[Sample]) -> float:
    """Arrivals per second, from the first that was seen until the last.

    What a scheduler does before its first job (start, read what is due) is left out, and so is what came with it.
    """
    last = _last(samples)
    first = next(sample for sample in samples if sample.arrived)
    if first.arrived == last.arrived:
        raise ValueError("no rate: everything was there at the first look")
    return (last.arrived - first.arrived) / (last.at - first.at)


def rate_since(began: float, samples: Sequence[Sample]) -> float:
    """Arrivals per second from that instant until the last that was seen: all of them count, and all of the time."""
    last = _last(samples)
    return last.arrived / (last.at - began)


def _last(samples: Sequence[Sample]) -> Sample:
    """When all that ever came was there."""
    if not samples or not samples[-1].arrived:
        raise ValueError("no rate: nothing ever arrived")
    return next(sample for sample in samples if sample.arrived == samples[-1].arrived)


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


def looked(redis: Any, command: str, *, patience_s: float, alive: Callable[[], bool]) -> float:
    """When Redis had first carried out this command since its statistics were reset, in seconds of the wall clock.

    A little later than the scheduler sent it, in its favour. TimeoutError when that does not happen, ChildProcessError
    when the scheduler is no longer alive.
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
    """Looks until `total` have come, or `cap_s` are over since the first.

    TimeoutError when none comes, ChildProcessError when whoever fills the queues is no longer alive.
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
