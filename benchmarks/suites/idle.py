"""Measure the cost of waiting: many schedules, and none is due for hours.

**idle pass** is the median time of one `Ticker.turn`, built as in a scheduler and timed in this process. The numbers of
schedules take turns, pass by pass, each in its own database. **Redis time per idle pass** is the time that Redis counts
for its scripts in further passes.

**CPU when idle** is the processor time of the scheduler's process per second. All contenders run side by side on one
Redis for the same period, once all have loaded their schedules and are idle. At full scale the period is just over a
minute, so it includes one of beat's repairs, which checks every schedule. The quick scale includes none. beat and
rq-scheduler look every second (rq-scheduler's default is every minute). The others sleep as long as they can, so they
cost next to nothing: rq cron one minute, Celery beat and RedBeat five, APScheduler until the next tick.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from beat.config import settings
from beat.engine.definition_cache import Book
from beat.engine.health import Health
from beat.engine.pacing import Pace
from beat.engine.ticker import Ticker
from beat.storage import connection
from beat.storage.keys import Keys
from beat.storage.pipelined import Dialogue
from benchmarks.figures import Figure
from benchmarks.peers.crowds import CROWDS
from benchmarks.peers.stage import Crew
from benchmarks.processor import cpu_s
from benchmarks.stage import Beat, stage, tasks, until_registered, wait_for

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping, Sequence

    from beat.engine.events import Event
    from benchmarks.figures import Say, Scale
    from benchmarks.stage import Stage

    Present = Mapping[str, subprocess.Popen[bytes]]

TITLE = "Idle: many schedules, none due"
HOURS_S = 6 * 3600
TURNS = 300
WARM = 20
AT_REST = 0.1
"""A process that uses less than this share of a processor has loaded its schedules."""
MOST_FOR_PEERS = 10_000


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    calm_s, seconds = scale.pick((5, 72), (0, 3))
    sizes = scale.pick((1_000, 10_000, 100_000), (1_000,))
    with stage() as made:
        for database, schedules in enumerate(sizes, 1):
            at = {"schedules": schedules}
            peers = [who for who in CROWDS if who == "rq cron" or not scale.quick]
            with at_rest(made, schedules, peers if schedules <= MOST_FOR_PEERS else [], say) as present:
                time.sleep(calm_s)
                say(f"CPU when idle, {schedules:,} schedules, {seconds} s")
                used = spent(present, seconds)
            for who in present.keys() - used.keys():
                say(f"{who} failed: it has ended")
            for who, ms in used.items():
                yield Figure("idle", "CPU when idle", (ms,), "ms/s", who, at)
            made.redis.swapdb(0, database)
        say(f"idle passes, {' and '.join(f'{schedules:,}' for schedules in sizes)} schedules in turn")
        for schedules, (turns, redis_us) in zip(sizes, passes(made, range(1, len(sizes) + 1)), strict=True):
            at = {"schedules": schedules}
            yield Figure("idle", "idle pass", (statistics.median(turns) * 1000,), "ms", at=at)
            yield Figure("idle", "Redis time per idle pass", (redis_us,), "µs", at=at)


@contextlib.contextmanager
def at_rest(made: Stage, schedules: int, peers: Sequence[str], say: Say) -> Iterator[Present]:
    """Start beat and these peers side by side; yield their processes once all are idle."""
    home = made.clean()
    (home / "tasks.py").write_text(tasks(schedules, start=made.now() + HOURS_S, every="12h"), encoding="utf-8")
    with contextlib.ExitStack() as ends:
        present: dict[str, subprocess.Popen[bytes]] = {}
        for who in peers:
            say(f"{who}: {schedules:,} schedules to wait with")
            try:
                crew = seated(made, who, schedules)
            except Exception as e:  # noqa: BLE001 (whatever it is, the figures of the others are not lost for it)
                say(f"{who} failed: {type(e).__name__}: {e}")
                continue
            ends.callback(crew.close)
            present[who] = crew.process(0)
        say(f"beat: {schedules:,} schedules to wait with")
        beat = ends.enter_context(Beat(home, made.url))
        present["beat"] = beat.process
        until_registered(made, beat, schedules)
        with contextlib.suppress(TimeoutError):  # who never rests is measured as it is
            wait_for(lambda: all(used < AT_REST * 1000 for used in spent(present, 0.7).values()), 120)
        yield present


def seated(made: Stage, who: str, schedules: int) -> Crew:
    """Start a peer with this many schedules, none of them due."""
    crew = Crew(CROWDS[who](schedules, 1, due=False), made.url, Path(tempfile.mkdtemp(dir=made.directory)))
    if crew.prepared:
        raise ChildProcessError(f"it could not be prepared: {crew.last_words('prepare')}")
    crew.start(0)
    return crew


def spent(present: Present, seconds: float) -> dict[str, float]:
    """Return ms of processor time per second for each process that is still running at the end."""
    before = {who: cpu_s(process.pid) for who, process in present.items() if process.poll() is None}
    began = time.monotonic()
    time.sleep(seconds)
    lasted = time.monotonic() - began
    there = [who for who in before if present[who].poll() is None]
    return {who: (cpu_s(present[who].pid) - before[who]) * 1000 / lasted for who in there}


def passes(made: Stage, databases: Sequence[int]) -> list[tuple[list[float], float]]:
    """Return for each database the seconds of each pass, and the microseconds of Redis time per pass."""
    clients = [connection.connect(f"{made.url.removesuffix('/0')}/{number}") for number in databases]
    tickers, stopping = [_ticker(client) for client in clients], threading.Event()
    turns: list[list[float]] = [[] for _ in tickers]
    for _ in range(WARM + TURNS):
        for ticker, taken in zip(tickers, turns, strict=True):
            began = time.perf_counter()
            ticker.turn(stopping)
            taken.append(time.perf_counter() - began)
    busy = [made.busy_us()]
    for ticker in tickers:
        for _ in range(TURNS):
            ticker.turn(stopping)
        busy.append(made.busy_us())
    for client in clients:
        client.close()
    spent_us = [(after - before) / TURNS for before, after in itertools.pairwise(busy)]
    return [(taken[WARM:], used) for taken, used in zip(turns, spent_us, strict=True)]


def _ticker(client: connection.Redis) -> Ticker:
    mine = settings.load(environ={}).settings
    limits = {"history_limit": mine.history_limit, "events_limit": mine.events_limit}
    store = Dialogue(client, Keys(mine.prefix), **limits)
    return Ticker(store, Book(store), Pace.of(mine), token="benchmark", emit=_nobody, health=Health(_nobody))  # noqa: S106


def _nobody(_: Event) -> None:
    """Ignore the event."""
