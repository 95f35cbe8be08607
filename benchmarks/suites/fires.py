"""Measure fires per second with all schedules due at once: beat, its peers, and the floors of Redis.

All contenders use one Redis with AOF everysec, which is emptied between two contenders. They take turns, and each round
runs all of them. beat also runs on a second Redis without persistence, as *beat, no persistence*.

`beat` is `beat run` with default settings. It is idle when the due instant comes, and its rate is measured from that
instant until the last job is in the queue. One measurement says little on a shared machine, so the schedules are due
three times, and the median counts. They are due five times where a budget applies, and once for 100,000 schedules in
several queues. No worker takes the jobs out, so later times have more open runs to track. The rate flatters beat,
because it claims and prepares many schedules ahead of time.

**Peers** are started by their public entry points with everything already due. RedBeat, rq-scheduler and APScheduler
look in Redis for what is due. They are measured from that look, which Redis' statistics show, until the last job is in
the queue. Neither start-up nor storing counts, but reading what is due does. RedBeat reads schedules one by one before
it enqueues the first, which takes a fifth of its time. A separate figure shows the rate without this reading. rq cron
and Celery beat keep their schedules in memory. They are measured from the first arrival seen to the last, for only a
few seconds, because Celery beat would need many minutes. No contender logs every job.

The **floors** are in `benchmarks.floors`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.figures import Figure
from benchmarks.firing import FROM_FIRST, BeatAct, floor, peer
from benchmarks.peers.crowds import CROWDS
from benchmarks.stage import stage
from benchmarks.turns import in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.figures import Say, Scale
    from benchmarks.stage import Stage

    Act = Callable[[], Mapping[str, float]]

TITLE = "Fires per second, all schedules due at once"
MOST_VOLATILE = 10_000
"""The most schedules measured without persistence: more would take minutes and show nothing new."""
UNITS = {"fires per second": "/s", FROM_FIRST: "/s", "Redis time per fire": "µs", "beat CPU per fire": "µs"}
MOST_KEPT = 10_000
FLOORS = {"enqueue_many": "enqueue_many", "packed commands": "packed"}


class Size(NamedTuple):
    """The size of one measurement. `peers_s` limits how long in-memory peers are watched; 0 leaves out all peers."""

    schedules: int
    queues: int
    rounds: int = 1
    peers_s: float = 0
    times: int = 3
    """How often beat's schedules are due in a round."""


FULL = (
    Size(1_000, 1, peers_s=8),
    Size(1_000, 10),
    Size(1_000, 100),
    Size(10_000, 1, rounds=5, peers_s=8, times=5),
    Size(10_000, 10),
    Size(10_000, 100),
    Size(100_000, 1, peers_s=5),
    Size(100_000, 10, times=1),
    Size(100_000, 100, times=1),
)
QUICK = (Size(1_000, 1, peers_s=2, times=1), Size(10_000, 1, times=1))


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    with stage() as kept, stage(persistent=False) as unkept:
        persistent, volatile = BeatAct(kept), BeatAct(unkept)
        for size in QUICK if scale.quick else FULL:
            acts: dict[str, Act] = {"beat": functools.partial(persistent, *size[:2], times=size.times)}
            if size.peers_s and size.schedules <= MOST_VOLATILE:
                acts["beat, no persistence"] = functools.partial(volatile, *size[:2], times=size.times)
            if size.peers_s:
                acts |= peers(kept, size)
            acts |= {who: functools.partial(floor, kept, program, *size[:2]) for who, program in FLOORS.items()}
            words = f"{size.schedules:,} schedules, {size.queues} queues"
            at = {"schedules": size.schedules, "queues": size.queues}
            for (who, what), values in in_turns(size.rounds, acts, words, say).items():
                yield Figure("fires", what, values, UNITS[what], who, at)


def peers(made: Stage, size: Size) -> dict[str, Act]:
    """Return all peers; for the largest size only rq cron, because storing takes the others minutes."""
    crowds = {who: crowd for who, crowd in CROWDS.items() if size.schedules <= MOST_KEPT or who == "rq cron"}
    return {who: functools.partial(peer, made, crowd, *size[:2], cap_s=size.peers_s) for who, crowd in crowds.items()}
