"""Measure many schedulers on one Redis: how they share what is due in one second, and how long they block Redis.

The figures:

- *claims per second*, *claim latency*: processes that only claim (`benchmarks.claimers`), all at the same instant, with
  1,000 schedules due. A claim is one schedule handed out. The latency covers every call, including calls that come too
  late and return nothing.
- *wasted claims*: whole schedulers, with 1,000 and then 5,000 schedules due in one second. It is the share of schedules
  that a scheduler found in the index but did not fire. Either another scheduler had the lock (LOCKED), its own lock had
  expired (FENCED), or another scheduler had already decided (STALE, CHANGED).
- *longest script*: the same runs, by the server's slow log, over all scripts of all clients. It is wall time, so on two
  cores it includes the time in which the server waited for a core.
- *5,000 drained after*: whole schedulers, from the second at which 5,000 schedules are due until the last is enqueued,
  by Redis' clock.
"""

from __future__ import annotations

import contextlib
import json
import math
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import claimers
from benchmarks.due import KEYS, fall_due, fired_at, forget_runs
from benchmarks.figures import Figure
from benchmarks.readings import SlowLog, longest_ms, percentile
from benchmarks.stage import Beat, stage, tasks, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.figures import Say, Scale
    from benchmarks.stage import Stage

TITLE = "Many beats on one Redis"
SUITE = "crowd"
FEW, MANY = 1_000, 5_000
FAR_S = 7 * 86_400
AHEAD_S = 2.5
"""Longer than the time to write the due instants, and longer than a scheduler's lookahead."""
WASTED = ("locked", "fenced", "passed_on")
ROUNDS = 10
STAGGER = 4
"""How many schedulers start at once: more would only wait for each other."""
WITNESS = """
import collections, json, signal
import beat, tasks

seen = collections.Counter()
signal.signal(signal.SIGUSR1, lambda *_: print(json.dumps(seen), flush=True))
beat.Scheduler(listeners=[lambda event: seen.update([event.name])]).run()
"""
"""A scheduler, started from Python, that prints how often each event occurred when it receives SIGUSR1."""


class Act(NamedTuple):
    """The measurements of schedules that fell due in one second."""

    drained_s: float
    longest_ms: float


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    """Measure growing numbers of schedulers on one Redis with one set of schedules."""
    sizes = scale.pick((1, 2, 4, 8, 50), (4,))
    with stage() as found, contextlib.ExitStack() as hall:
        crowd = Crowd(found, hall)
        say(f"registering {MANY:,} schedules")
        for beats in sizes:
            crowd.grow(beats, say)
            yield from whole_beats(crowd, scale.pick((3,), (1,))[0], say)
        hall.close()
        for beats in sizes:
            say(f"{beats} claim at once, {FEW:,} due")
            yield from only_claims(found, beats, scale.pick((5,), (1,))[0])


class Crowd:
    """The schedulers, with their Redis and their files."""

    def __init__(self, found: Stage, hall: contextlib.ExitStack) -> None:
        self.stage, self._hall, self._home = found, hall, found.clean()
        self.log = SlowLog(found)
        hall.callback(self.log.close)
        self.beats: list[Beat] = []
        (self._home / "tasks.py").write_text(tasks(MANY, start=time.time() + FAR_S), encoding="utf-8")
        (self._home / "witness.py").write_text(WITNESS, encoding="utf-8")

    def grow(self, beats: int, say: Say) -> None:
        """Start schedulers until there are `beats` of them, and wait until all have registered and are idle."""
        while len(self.beats) < beats:
            for _ in range(min(STAGGER if self.beats else 1, beats - len(self.beats))):
                self.beats.append(self._hall.enter_context(Beat(self._home, self.stage.url, program=("witness.py",))))
            say(f"{len(self.beats)} of {beats} beats start")
            wait_for(lambda: self.stage.redis.zcard(KEYS.instances) >= len(self.beats), 600)
        wait_for(lambda: is_calm(self.beats), 120)

    def told(self) -> Counter[str]:
        """Return how often each event has occurred, summed over all schedulers."""
        return sum((_told(beat) for beat in self.beats), Counter[str]())


def _told(beat: Beat) -> Counter[str]:
    lines = beat.log.count("\n")
    beat.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: beat.log.count("\n") > lines, 10)
    return Counter(json.loads(beat.log.splitlines()[-1]))


def whole_beats(crowd: Crowd, times: int, say: Say) -> Iterator[Figure]:
    """Make schedules due `times` times: first the 1,000, then the 5,000."""
    ids, few, many, before = [f"s{n:06d}" for n in range(MANY)], list[Act](), list[Act](), crowd.told()
    for number in range(1, times + 1):
        say(f"{len(crowd.beats)} beats: {FEW:,} due, then {MANY:,} ({number} of {times})")
        few.append(act(crowd, ids[:FEW]))
        many.append(act(crowd, ids))
    at = {"beats": len(crowd.beats)}
    yield Figure(SUITE, "wasted claims", (wasted_percent(crowd.told() - before),), "%", at=at)
    yield Figure(SUITE, "longest script", tuple(each.longest_ms for each in few), "ms", at=at)
    yield Figure(SUITE, "5,000 drained after", tuple(each.drained_s for each in many), "s", at=at)
    yield Figure(SUITE, "longest script, 5,000 due", tuple(each.longest_ms for each in many), "ms", at=at)


def is_calm(crowd: Sequence[Beat], seconds: float = 0.5) -> bool:
    """Return whether the schedulers use hardly any processor time, so their start-up work is done."""
    before = sum(each.cpu_s() for each in crowd)
    time.sleep(seconds)
    return sum(each.cpu_s() for each in crowd) - before <= seconds * (0.1 + 0.02 * len(crowd))


def act(crowd: Crowd, ids: Sequence[str]) -> Act:
    """Make these schedules due in one second, and wait until all have fired."""
    found = crowd.stage
    forget_runs(found.redis)
    due = math.ceil(found.now() + AHEAD_S)
    fall_due(found.redis, ids, due)
    crowd.log.forget()
    wait_for(lambda: found.redis.zcard(KEYS.open) == len(ids), 120, pause=0.02)
    instants = [instant for instant in fired_at(found.redis, ids, due) if instant is not None]
    if len(instants) != len(ids):
        raise RuntimeError(f"{len(ids) - len(instants)} of {len(ids)} ticks were not fired")
    return Act(max(instants) - due, longest_ms(crowd.log.scripts()))


def wasted_percent(told: Mapping[str, int]) -> float:
    """Return the share of schedules that the schedulers found but did not fire, in percent."""
    wasted = sum(told.get(name, 0) for name in WASTED)
    return 100 * wasted / (wasted + told.get("fired", 0))


def only_claims(found: Stage, beats: int, times: int) -> Iterator[Figure]:
    """Run `times` repetitions of ROUNDS rounds. Each round claims all 1,000 schedules."""
    ids = [f"s{n:06d}" for n in range(FEW)]
    past = int(found.now()) - 60

    def refill() -> None:
        found.redis.delete(*(KEYS.lock(each) for each in ids))
        found.redis.zadd(KEYS.due, dict.fromkeys(ids, past * 1000))

    fall_due(found.redis, ids, past)
    rounds = claimers.measure(found.url, beats, times * ROUNDS, refill)
    groups = [[call for one in rounds[n : n + ROUNDS] for call in one] for n in range(0, len(rounds), ROUNDS)]
    at = {"beats": beats}
    yield Figure(SUITE, "claims per second", tuple(claimers.rate(each) for each in rounds), "/s", at=at)
    for percent in (50, 99):
        latencies = tuple(percentile([call.ms for call in group], percent) for group in groups)
        yield Figure(SUITE, f"claim latency p{percent}", latencies, "ms", at=at)
