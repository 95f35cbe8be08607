"""Measure the web UI with many schedules, from the HTTP request to the last byte of the response.

Every schedule has a ledger of forty runs and some skipped ticks, so each row draws the maximum number of bars.
*schedules, first page* is the list by id, each time with fifty schedules that were not requested before. *asked again*
is the cost of an open page every two seconds while little changes. The other figures are actions on that page, each
also repeated. They search for a part of ids that no id begins with, sort by next tick, sort by last run (which has no
index), and open the last page. *overview* is the start page. It is measured last because it computes its strip of the
day in the background, which uses the processor for a while. Server and client share a process. Like a browser, the
client keeps one connection alive and requests compressed responses.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from beat.history import ledger
from beat.storage.store import pages
from beat.timing import clock
from beat.web import create_app
from beat.web.server import Serving
from benchmarks.due import KEYS
from benchmarks.figures import Figure
from benchmarks.stage import Beat, stage, tasks, until_registered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from benchmarks.figures import Say, Scale
    from benchmarks.stage import Stage

TITLE = "The page"
SUITE = "web"
PERIOD = timedelta(hours=12)
RUNS, SKIPPED_EVERY, FAILED_EVERY = 40, 9, 7
PAGE = 50
KINDS = 2 * PAGE
"""The number of distinct ledgers: no two schedules on a page have the same times."""
ANY = "s------"
"""Stands for the id of a schedule in the lines of a ledger."""


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    (schedules,), (times,) = scale.pick((10_000,), (1_000,)), scale.pick((15,), (5,))
    with stage() as made:
        home = made.clean()
        begin = made.now() + PERIOD.total_seconds() / 2
        (home / "tasks.py").write_text(tasks(schedules, start=begin, every="12h"), encoding="utf-8")
        say(f"{schedules:,} schedules and their ledgers")
        with Beat(home, made.url) as beat:
            until_registered(made, beat, schedules)
        lived(made, schedules)
        at = {"schedules": schedules}
        with Serving(create_app(made.url), "127.0.0.1", 0) as page, connected(page.port) as connection:
            say("schedules, first page")
            yield from figures("schedules, first page", [asked(connection, fresh(n)) for n in range(times + 2)], at)
            for what, path in paths(schedules).items():
                say(what)
                yield from figures(what, [asked(connection, path) for _ in range(times + 2)], at)


def fresh(n: int) -> str:
    """Return the path of fifty schedules that were not requested before, as on the first visit to the list."""
    return f"schedules?after=s{n * PAGE:06d}"


def paths(schedules: int) -> dict[str, str]:
    """Return the path of each figure."""
    return {
        "schedules, asked again": "schedules",
        "schedules, a part of ids": "schedules?match=7",
        "schedules, by next tick": "schedules?sort=next",
        "schedules, by last run": "schedules?sort=last",
        "schedules, last page": f"schedules?after=s{schedules - PAGE - 1:06d}",
        "overview": "",
    }


@contextlib.contextmanager
def connected(port: int) -> Iterator[http.client.HTTPConnection]:
    """Keep one connection for all requests."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        yield connection


def figures(what: str, answers: list[tuple[float, float]], at: Mapping[str, int]) -> Iterator[Figure]:
    """Yield the times and sizes of these responses, without the first two, which warm up."""
    taken, sizes = zip(*answers[2:], strict=True)
    yield Figure(SUITE, what, taken, "ms", at=at)
    yield Figure(SUITE, f"{what}, on the wire", sizes, "KB", at=at)


def asked(connection: http.client.HTTPConnection, path: str) -> tuple[float, float]:
    """Return the ms until a response was complete, and its KB on the wire; raise RuntimeError if a list is not full."""
    began = time.perf_counter()
    connection.request("GET", f"/{path}", headers={"accept-encoding": "gzip"})
    body = connection.getresponse().read()
    took = (time.perf_counter() - began) * 1000
    text = gzip.decompress(body)
    if path.startswith("schedules") and (text.count(b'<tr id="s-'), text.count(b'<svg class="bars"')) != (PAGE, PAGE):
        raise RuntimeError(f"{path} has {text.count(b'<tr id=')} rows")
    return took, len(body) / 1024


def lived(made: Stage, schedules: int) -> None:
    """Write ledgers and states as if all schedules had run for three weeks."""
    now = clock.at(int(made.now()))
    times = [now - n * timedelta(seconds=1, milliseconds=7) for n in range(KINDS)]
    ledgers = [[json.dumps(ledger.plain(each)) for each in entries(at)] for at in times]
    for page in pages(range(schedules)):
        with made.redis.pipeline(transaction=False) as pipe:
            for n in page:
                each, kind = f"s{n:06d}", n % KINDS
                pipe.lpush(KEYS.runs(each), *(line.replace(ANY, each) for line in ledgers[kind]))
                pipe.hset(KEYS.schedule(each), mapping=state(times[kind]))
            pipe.execute()


def entries(now: datetime) -> Iterator[ledger.Entry]:
    """Yield the ledger of one schedule, oldest first: runs, failures and skipped ticks."""
    for n in range(RUNS):
        tick = now - (RUNS - n) * PERIOD
        if n % SKIPPED_EVERY == 0:
            yield ledger.Skipped(tick, tick, 1, "misfire", n + 1, tick, "web-1")
        job, took = KEYS.job(ANY, clock.floor(tick)), 1 + n * 37 % 11
        yield ledger.Enqueued(tick, job, "scheduler", 4, n + 1, tick, "web-1")
        end = tick + timedelta(seconds=took)
        kind = "succeeded" if n % FAILED_EVERY else "failed"
        yield ledger.Outcome(kind, tick, job, tick, end, took, "host.1234", 1, end, "web-1")


def state(now: datetime) -> dict[str, str]:
    """Return the fields of the schedule's hash that match its ledger."""
    last = clock.text(now - PERIOD)
    return {
        "last_run": last,
        "last_enqueued": last,
        "last_success": last,
        "run_count": f"{RUNS}",
        "success_count": "34",
    }
