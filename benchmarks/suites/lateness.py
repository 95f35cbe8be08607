"""Measure lateness: the time from the due instant until the job is in the queue.

**one schedule** and **500 in one second** are seen by a watcher that pops the queue as an idle worker would. It notes
the time by this machine's clock, so the figure includes its round trip to Redis. beat's job ids name their tick.

*One schedule* is measured three times, in turns with the peers. Each time has its own percentiles, and their median
counts. **A bare process** (`benchmarks.bare`) runs beside beat. It wakes at half seconds, when beat is idle, and pushes
one element to its own list on the same Redis, where a watcher pops it. This is the floor that the machine sets: if both
are late, beat is not the cause.

**1,000 per second** is 1,000 schedules every second for a minute, all due at the beginning of the second. Two stock
`rq worker`s run beside it, as they would in production. They cannot keep up on two cores, but only the time to the
queue is measured. Because they pop the queue, arrivals are read from the event stream, which is written in the same
step as the queue. The id of an entry is Redis' time at the beginning of that step.

**Peers** have one schedule that is due every second. rq cron, APScheduler (both by a cron expression with seconds) and
rq-scheduler (which truncates its times) are due on whole seconds. Their lateness is the time since the last whole
second, as for beat. Celery beat and RedBeat count each second from the previous message, and their messages name no
tick. Their lateness is the gap between two messages minus one second. This omits about a millisecond for sending, and
it does not add up the drift. It is a lower bound that you cannot compare with the other figures. rq-scheduler looks
four times a second (its default is once a minute), so expect an eighth of a second. A 99th percentile of fewer than a
hundred ticks is their maximum.
"""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
import sys
import time
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.arrivals import Watcher, past_the_gap, past_the_second
from benchmarks.figures import Figure
from benchmarks.peers.apscheduler3 import APSCHEDULER
from benchmarks.peers.celery_beat import CELERY_BEAT
from benchmarks.peers.redbeat import REDBEAT
from benchmarks.peers.rq_cron import ON_THE_SECOND
from benchmarks.peers.rq_scheduler import RQ_SCHEDULER
from benchmarks.peers.stage import Crew
from benchmarks.readings import percentile
from benchmarks.stage import Beat, stage, tasks, until_registered, wait_for
from benchmarks.turns import in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.figures import Say, Scale
    from benchmarks.peers.contender import Contender
    from benchmarks.stage import Stage

    Rule = Callable[[Sequence[float]], list[float]]
    Act = Callable[[], dict[str, list[float]]]

TITLE = "Lateness: due instant to job in the queue"
ONE, FLOCK, SUSTAINED = "one schedule", "500 in one second", "1,000 per second"
PEERS: dict[str, tuple[Contender, Rule]] = {
    "rq cron": (ON_THE_SECOND, past_the_second),
    "rq-scheduler": (RQ_SCHEDULER, past_the_second),
    "Celery beat": (CELERY_BEAT, past_the_gap),
    "RedBeat": (REDBEAT, past_the_gap),
    "APScheduler": (APSCHEDULER, past_the_second),
}
PATIENCE_S = 30
EVENTS = "beat:events"
SECONDS, WORKERS = 60, 2
MESSAGES = 15
"""How many ticks of each peer are measured."""
BARE, ITS_LIST = "a bare process", "bare"


class Arrival(NamedTuple):
    """When a job arrived and when it was due, in seconds since the epoch."""

    at: float
    due: float


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    """Measure every load. The quick scale runs only beat and the bare process."""
    rounds, ticks, flocks, stretches = scale.pick((3, 120, 6, 1), (1, 6, 1, 0))
    with stage() as made:
        alone: dict[str, Act] = {"beat": partial(one, made, ticks)}
        flock: dict[str, Act] = {"beat": lambda: {"beat": late(popped(made, schedules=500, every_s=5, rounds=flocks))}}
        steady: dict[str, Act] = {"beat": lambda: {"beat": sustained(made, schedules=1_000, seconds=SECONDS, say=say)}}
        if not scale.quick:
            alone |= {who: partial(paced, made, who, MESSAGES + 1) for who in PEERS}
        for load, acts, times in ((ONE, alone, rounds), (FLOCK, flock, 1), (SUSTAINED, steady, stretches)):
            for (_, who), taken in in_turns(times, acts, load, say).items():
                yield from figures(taken, who, load)


def figures(taken: Sequence[Sequence[float] | None], who: str, load: str) -> Iterator[Figure]:
    """Yield percentiles of the seconds of each repetition; a failed repetition is None."""
    for what, percent in (("p50", 50), ("p99", 99), ("max", 100)):
        values = tuple(None if seconds is None else percentile(seconds, percent) * 1000 for seconds in taken)
        yield Figure("lateness", f"lateness {what}", values, "ms", who, {"load": load})


def one(made: Stage, ticks: int) -> dict[str, list[float]]:
    """Return the lateness of `ticks` ticks of one schedule, and of the bare process meanwhile."""
    with bare(made, ticks + 3 * PATIENCE_S) as watcher:
        ours = popped(made, schedules=1, every_s=1, rounds=ticks)
    pushed = meanwhile([Arrival(at, float(instant)) for at, instant in watcher.seen], ours)
    whole = len(pushed) >= ticks - 1  # one that ended before says nothing; beat's own ticks are not lost for it
    return {"beat": late(ours), BARE: late(pushed)} if whole else {"beat": late(ours)}


def late(arrivals: Sequence[Arrival]) -> list[float]:
    return [arrival.at - arrival.due for arrival in arrivals]


def meanwhile(arrivals: Sequence[Arrival], others: Sequence[Arrival]) -> list[Arrival]:
    """Return the arrivals that were due between the first and the last of the others."""
    first, last = min(other.due for other in others), max(other.due for other in others)
    return [arrival for arrival in arrivals if first <= arrival.due <= last]


@contextlib.contextmanager
def bare(made: Stage, times: int) -> Iterator[Watcher]:
    """Run the bare process for at most `times` elements; yield its watcher once the first element has arrived."""
    words = [sys.executable, "-m", "benchmarks.bare", made.url, ITS_LIST, str(times)]
    with watching(made, ITS_LIST) as watcher:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)  # noqa: S603 (ours)

        def at_work() -> bool:
            if process.poll() is not None:
                raise ChildProcessError("the bare process has ended")
            return bool(watcher.seen)

        try:
            wait_for(at_work, PATIENCE_S)
            yield watcher
        finally:
            process.kill()
            process.wait()


def popped(made: Stage, *, schedules: int, every_s: int, rounds: int) -> list[Arrival]:
    """Return the arrivals of `rounds` rounds, in each of which all schedules are due at once."""
    home = made.clean()
    start = math.ceil(made.now() + (2 + schedules / 200))
    (home / "tasks.py").write_text(tasks(schedules, start=start, every=f"{every_s}s"), encoding="utf-8")
    with watching(made, "rq:queue:q0") as watcher, Beat(home, made.url) as beat:
        until_registered(made, beat, schedules)
        wait_for(lambda: len(watcher.seen) >= schedules * rounds, PATIENCE_S + every_s * rounds)
    return [Arrival(at, tick_of(job)) for at, job in watcher.seen[: schedules * rounds]]


def tick_of(job: str) -> int:
    """Return the tick in a job id, in seconds since the epoch."""
    return int(job.rpartition("_")[2])


@contextlib.contextmanager
def watching(made: Stage, queue: str) -> Iterator[Watcher]:
    watcher = Watcher(made.url, queue)
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.close()


def paced(made: Stage, who: str, number: int) -> dict[str, list[float]]:
    """Return the lateness of `number` messages of a peer by its rule, without the first messages after its start."""
    contender, rule = PEERS[who]
    with watching(made, contender.queue) as watcher:
        crew = Crew(contender, made.url, made.clean())
        try:
            crew.start(0)
            wait_for(lambda: watcher.seen, PATIENCE_S)
            settled = len(watcher.seen) + 2
            wait_for(lambda: len(watcher.seen) >= settled + number, PATIENCE_S + 2 * number)
        except TimeoutError as e:
            raise TimeoutError(f"{e}; it said last: {crew.last_words()[-500:]}") from None
        finally:
            crew.close()
    return {who: rule([arrived for arrived, _ in watcher.seen[settled : settled + number]])}


def sustained(made: Stage, *, schedules: int, seconds: int, say: Say) -> list[float]:
    """Return the lateness of all ticks of these seconds, by Redis' clock."""
    home = made.clean()
    start = math.ceil(made.now() + 2 + schedules / 200)
    (home / "tasks.py").write_text(tasks(schedules, start=start, every="1s"), encoding="utf-8")
    with contextlib.ExitStack() as ends:
        for n in range(WORKERS):
            ends.enter_context(worker(home, made.url, n))
        until_registered(made, ends.enter_context(Beat(home, made.url)), schedules)
        found = outbox(made, start, start + seconds, schedules * seconds)
    if missing := schedules * seconds - len(found):
        say(f"beat: {missing:,} of {schedules * seconds:,} ticks were not fired {PATIENCE_S} s after the end")
    return found


def outbox(made: Stage, begin: int, end: int, total: int) -> list[float]:
    """Return how late each tick from `begin` until `end` was enqueued, in seconds; stop waiting after PATIENCE_S."""
    found: list[float] = []
    last, until = "0", time.monotonic() + end - made.now() + PATIENCE_S
    while len(found) < total and time.monotonic() < until:
        for _, entries in made.redis.xread({EVENTS: last}, count=5_000) or ():
            last = entries[-1][0]
            found += lateness(entries, begin, end)
        time.sleep(0.25)
    return found


def lateness(entries: Sequence[tuple[str, dict[str, str]]], begin: int, end: int) -> list[float]:
    """Return the lateness of the ticks from `begin` until `end` that these event stream entries enqueued."""
    enqueued = [(each, json.loads(fields["entry"])) for each, fields in entries if fields["type"] == "enqueued"]
    ticks = [(int(each.partition("-")[0]) / 1000, datetime.fromisoformat(line["tick"])) for each, line in enqueued]
    return [at - tick.timestamp() for at, tick in ticks if begin <= tick.timestamp() < end]


@contextlib.contextmanager
def worker(home: Path, url: str, n: int) -> Iterator[None]:
    """Run a stock `rq worker`."""
    words = [str(Path(sys.executable).parent / "rq"), "worker", "--url", url, "--quiet", "q0"]
    with (home / f"worker-{n}.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # noqa: S603
    try:
        yield
    finally:
        process.terminate()  # a warm end: it waits for its work-horse
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
