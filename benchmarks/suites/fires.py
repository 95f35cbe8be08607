"""Fires per second with all schedules due at once: beat beside its peers, and beside what Redis can take.

One Redis with AOF everysec for all, emptied between two contenders, who take turns: round after round, each round has
all of them. beat also stands on a second Redis that persists nothing, under a name that says so.

`beat` is `beat run` with default settings, idle when the due instant comes; its rate is counted from that instant until
the last job is in the queue. One such moment says little on a shared machine, so they are due three times (five times
where budgets are held against it, 100,000 in several queues once), and the median counts; nobody takes the jobs out, so
the later times find more runs to watch. It is flattering that so many are claimed and prepared ahead of time. **Peers**
are started by their public entry points with everything due already. Those that look in Redis for what is due (RedBeat,
rq-scheduler, APScheduler) are counted from when they begin to look, as they would at a due instant, which Redis'
statistics tell, until the last job is there. Neither starting nor storing counts; reading what is due does (RedBeat
reads it one by one before it enqueues the first, which is a fifth of its time), and what their rate would be without it
is a figure of its own. rq cron and Celery beat have it all in memory and are counted from the first arrival that is
seen until the last, for a few seconds only, since Celery beat would need many minutes. All are told not to log every
job. The **floors** are in `benchmarks.floors`.
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
"""Without persistence no more are tried than this: it would take minutes, and says nothing new."""
UNITS = {"fires per second": "/s", FROM_FIRST: "/s", "Redis time per fire": "µs", "beat CPU per fire": "µs"}
MOST_KEPT = 10_000
FLOORS = {"enqueue_many": "enqueue_many", "packed commands": "packed"}


class Size(NamedTuple):
    """How much, how often, and for how many seconds peers are watched that have it in memory; with 0 no peer is."""

    schedules: int
    queues: int
    rounds: int = 1
    peers_s: float = 0
    times: int = 3
    """How often beat's are due in a round."""


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
    """All of them; with the largest number only who keeps it in its memory: the others take minutes to be given it."""
    crowds = {who: crowd for who, crowd in CROWDS.items() if size.schedules <= MOST_KEPT or who == "rq cron"}
    return {who: functools.partial(peer, made, crowd, *size[:2], cap_s=size.peers_s) for who, crowd in crowds.items()}
