"""How late: from the due instant until the job is in the queue.

**one schedule** and **500 in one second** are seen by a watcher that pops the queue as an idle worker would, and notes
the time of this machine's clock; its own way from Redis and back is in the figure. beat's job ids name their tick.

**1,000 per second** is 1,000 schedules every second for a minute, all of a second due at its beginning, with two stock
`rq worker`s running. They cannot keep up with so much on two cores, and are not meant to: they are there because in
production they are, and what is measured is the time to the queue. Since they pop, arrivals are read from the outbox,
which is written in the same step as the queue: the id of an entry is Redis' time when that step began.

**Peers** have one schedule of one second. Those that can be due on whole seconds are: rq cron and APScheduler by a cron
expression with seconds, rq-scheduler because it cuts its times. Their lateness is what the arrival is past the second,
as it is for beat. Celery beat and RedBeat count the next second from when they got round to the last one, and their
messages name no tick: their lateness is the gap between two messages beyond one second. That leaves out what sending
takes, about a millisecond, and does not add up the drift: a lower bound, not to be held against the others' figures.
rq-scheduler looks four times a second (as it comes: once a minute), so an eighth of a second is what to expect. A 99th
percentile of fewer than a hundred ticks is the worst of them.
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
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.figures import Say, Scale
    from benchmarks.peers.contender import Contender
    from benchmarks.stage import Stage

    Rule = Callable[[Sequence[float]], list[float]]

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
"""So many ticks of each peer."""


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    with stage() as made:
        for words, who, load, act in acts(made, scale, say):
            say(f"{who}: {load}, {words}")
            try:
                late = act()
            except Exception as e:  # noqa: BLE001 (whatever it is, the figures of the others are not lost for it)
                say(f"{who} failed: {type(e).__name__}: {e}")
            else:
                yield from figures(late, who, load)


def acts(made: Stage, scale: Scale, say: Say) -> Iterator[tuple[str, str, str, Callable[[], Sequence[float]]]]:
    """How much, who, with which load, and how it is measured; quick is beat alone."""
    ticks, flocks = scale.pick((300, 6), (6, 1))
    yield f"{ticks} ticks", "beat", ONE, partial(popped, made, schedules=1, every_s=1, rounds=ticks)
    yield f"{flocks} times", "beat", FLOCK, partial(popped, made, schedules=500, every_s=5, rounds=flocks)
    if not scale.quick:
        words = f"{SECONDS} s, {WORKERS} workers"
        yield words, "beat", SUSTAINED, partial(sustained, made, schedules=1_000, seconds=SECONDS, say=say)
        for who, (contender, rule) in PEERS.items():
            yield f"{MESSAGES} ticks", who, ONE, partial(paced, made, contender, rule, MESSAGES + 1)


def figures(lateness: Sequence[float], who: str, load: str) -> Iterator[Figure]:
    """From seconds."""
    for what, percent in (("p50", 50), ("p99", 99), ("max", 100)):
        yield Figure("lateness", f"lateness {what}", (percentile(lateness, percent) * 1000,), "ms", who, {"load": load})


def popped(made: Stage, *, schedules: int, every_s: int, rounds: int) -> list[float]:
    """So many rounds of all these schedules at once, as the watcher saw them."""
    home = made.clean()
    start = math.ceil(made.now() + (1 + schedules / 200))
    (home / "tasks.py").write_text(tasks(schedules, start=start, every=f"{every_s}s"), encoding="utf-8")
    with watching(made, "rq:queue:q0") as watcher, Beat(home, made.url) as beat:
        until_registered(made, beat, schedules)
        wait_for(lambda: len(watcher.seen) >= schedules * rounds, PATIENCE_S + every_s * rounds)
    return [arrived - tick_of(job) for arrived, job in watcher.seen[: schedules * rounds]]


def tick_of(job: str) -> int:
    """In seconds since the epoch."""
    return int(job.rpartition("_")[2])


@contextlib.contextmanager
def watching(made: Stage, queue: str) -> Iterator[Watcher]:
    watcher = Watcher(made.url, queue)
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.close()


def paced(made: Stage, contender: Contender, rule: Rule, number: int) -> list[float]:
    """What the rule says of so many messages of a peer; the first ones, while it starts, do not count."""
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
    return rule([arrived for arrived, _ in watcher.seen[settled : settled + number]])


def sustained(made: Stage, *, schedules: int, seconds: int, say: Say) -> list[float]:
    """All ticks of so many seconds, by Redis' clock."""
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
    """How late each tick from `begin` until `end` was enqueued, in seconds; not waiting for ever."""
    found: list[float] = []
    last, until = "0", time.monotonic() + end - made.now() + PATIENCE_S
    while len(found) < total and time.monotonic() < until:
        for _, entries in made.redis.xread({EVENTS: last}, count=5_000) or ():
            last = entries[-1][0]
            found += lateness(entries, begin, end)
        time.sleep(0.25)
    return found


def lateness(entries: Sequence[tuple[str, dict[str, str]]], begin: int, end: int) -> list[float]:
    """Of the enqueued ticks among these entries of the outbox that lie from `begin` until `end`."""
    enqueued = [(each, json.loads(fields["entry"])) for each, fields in entries if fields["type"] == "enqueued"]
    ticks = [(int(each.partition("-")[0]) / 1000, datetime.fromisoformat(line["tick"])) for each, line in enqueued]
    return [at - tick.timestamp() for at, tick in ticks if begin <= tick.timestamp() < end]


@contextlib.contextmanager
def worker(home: Path, url: str, n: int) -> Iterator[None]:
    """A stock `rq worker`."""
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
