"""Measure one scheduler with many schedules: starting, repairing, reading, and memory.

- *first start*: from the start of the `beat run` process until all schedules are in the index of an empty Redis.
- *declaring*: the part of the first start until the user's module, with all its schedules, is imported. The scheduler
  has not used Redis yet.
- *unchanged start*: the same code again on the same Redis, from the start of the process until the scheduler's first
  heartbeat, which it sends once all is registered. *once declared* is the part after the user's module is imported.
- *repair*: the index was deleted. From the time at which a starting scheduler begins the repair until all schedules are
  in the index again and the repair lock is gone. *longest repair script* and *repair page* (how many schedules one
  script repairs) come from the same run, by the server's slow log.
- *listing, first page*: the work of `beat list` after its start-up. It reads the first rows by id, each with its state
  and its last 20 runs, the number of schedules, and the running schedulers.
- *memory of a beat*: the memory of the scheduler beyond that of a scheduler with one schedule. *memory of Redis per
  schedule*: `used_memory` beyond that with one schedule, without the event stream, whose size is bounded. A *ledger
  entry* is one decision in a ledger of a thousand. An *event* is the entry for one decision in the event stream.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from beat import Client
from beat.storage import connection, scripts
from benchmarks.due import KEYS, fall_due
from benchmarks.figures import Figure
from benchmarks.readings import SlowLog, longest_ms
from benchmarks.stage import Beat, stage, tasks, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from benchmarks.figures import Say, Scale
    from benchmarks.readings import Ran
    from benchmarks.stage import Stage

TITLE = "Many schedules"
SUITE = "many"
FAR_S = 7 * 86_400
PATIENCE_S = 600
ENTRIES = 1_000
PERIOD_S = 600
PAGE = 50


class Memory(NamedTuple):
    """Memory in bytes."""

    beat: int
    redis: int
    """Without the event stream."""


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    """Measure one schedule as the baseline, then many."""
    (schedules,), (times,) = scale.pick((100_000,), (2_000,)), scale.pick((2,), (1,))
    at: Mapping[str, int | str] = {"schedules": schedules}
    with stage() as made:
        say("a beat with one schedule")
        one, per_entry, per_event = alone(made)
        yield Figure(SUITE, "memory of Redis per ledger entry", (per_entry,), "bytes")
        yield Figure(SUITE, "memory of Redis per event", (per_event,), "bytes")
        home = made.clean()
        (home / "tasks.py").write_text(tasks(schedules, start=time.time() + FAR_S), encoding="utf-8")
        say(f"first start with {schedules:,} schedules")
        first_s, declaring_s, many = first_start(made, home, schedules)
        yield Figure(SUITE, "first start", (first_s,), "s", at=at)
        yield Figure(SUITE, "declaring", (declaring_s,), "s", at=at)
        yield Figure(SUITE, "memory of a beat per schedule", ((many.beat - one.beat) / schedules,), "bytes", at=at)
        yield Figure(SUITE, "memory of Redis per schedule", ((many.redis - one.redis) / schedules,), "bytes", at=at)
        say(f"unchanged start with {schedules:,} schedules")
        whole, after = zip(*(unchanged_start(made, home) for _ in range(times)), strict=True)
        yield Figure(SUITE, "unchanged start", whole, "s", at=at)
        yield Figure(SUITE, "unchanged start, once declared", after, "s", at=at)
        say(f"repair of {schedules:,} schedules")
        for what, value, unit in repair(made, home, schedules):
            yield Figure(SUITE, what, (value,), unit, at=at)
        say("reading")
        yield Figure(SUITE, "listing, first page", tuple(listing_ms(made) for _ in range(5)), "ms", at=at)


def alone(made: Stage) -> tuple[Memory, float, float]:
    """Return memory with one schedule, bytes per ledger entry, and bytes per event."""
    home, first = made.clean(), int(made.now()) - 10 - (ENTRIES - 1) * PERIOD_S
    (home / "tasks.py").write_text(tasks(1, start=first, every=f"{PERIOD_S}s"), encoding="utf-8")
    with Beat(home, made.url, env={"BEAT_MISFIRE_AFTER": "7d"}) as beat:
        until_it_rests(made, 1)
        memory = held(made, beat)
        made.redis.delete(KEYS.events)
        fall_due(made.redis, ["s000000"], first)
        wait_for(lambda: made.redis.llen(KEYS.runs("s000000")) >= ENTRIES, 60)
    per_entry = usage(made, KEYS.runs("s000000")) / made.redis.llen(KEYS.runs("s000000"))
    return memory, per_entry, usage(made, KEYS.events) / made.redis.xlen(KEYS.events)


def usage(made: Stage, key: str) -> int:
    """Return the memory of a key with all of its elements, in bytes."""
    return int(made.redis.memory_usage(key, samples=0) or 0)


def held(made: Stage, beat: Beat) -> Memory:
    """Return the memory of a scheduler, and of Redis without the event stream."""
    return Memory(beat.rss_bytes(), int(made.redis.info("memory")["used_memory"]) - usage(made, KEYS.events))


def until_it_rests(made: Stage, schedules: int) -> None:
    """Wait until all schedules are in the index, and the scheduler's first repair is over."""
    wait_for(lambda: made.redis.zcard(KEYS.due) == schedules and made.redis.exists(KEYS.repaired), PATIENCE_S)
    wait_for(lambda: not made.redis.exists(KEYS.repairing), PATIENCE_S)


def declared_at(home: Path) -> float:
    """Return when the newest process had imported its schedules, in seconds since the epoch."""
    return float((home / "declared").read_text(encoding="ascii"))


def first_start(made: Stage, home: Path, schedules: int) -> tuple[float, float, Memory]:
    """Return the total seconds, the seconds until the schedules were declared, and the memory once idle."""
    began = time.time()
    with Beat(home, made.url) as beat:
        wait_for(lambda: made.redis.zcard(KEYS.due) == schedules, PATIENCE_S)
        took = time.time() - began
        until_it_rests(made, schedules)
        return took, declared_at(home) - began, held(made, beat)


def unchanged_start(made: Stage, home: Path) -> tuple[float, float]:
    """Return the total seconds, and the seconds after the schedules were declared."""
    made.redis.delete(KEYS.instances)
    began = time.time()
    with Beat(home, made.url) as beat:
        wait_for(lambda: made.redis.zcard(KEYS.instances), PATIENCE_S)
        ready = time.time()
        beat.kill()  # it would finish what else it does at the beginning
    return ready - began, ready - declared_at(home)


def repair(made: Stage, home: Path, schedules: int) -> Iterator[tuple[str, float, str]]:
    """Repair a deleted index; yield the name, value and unit of each figure."""
    made.redis.delete(KEYS.due, KEYS.repaired, KEYS.repairing)
    with contextlib.closing(SlowLog(made)) as log, Beat(home, made.url):
        wait_for(lambda: made.redis.exists(KEYS.repaired), PATIENCE_S)
        began = time.monotonic()
        until_it_rests(made, schedules)
        yield "repair", time.monotonic() - began, "s"
        ran = repairs(log.scripts())
    yield "longest repair script", longest_ms(ran), "ms"
    yield "repair page", max(each.arguments for each in ran) - len(_words()), ""


def repairs(ran: Iterable[Ran]) -> list[Ran]:
    """Return the calls of the repair script."""
    sha = scripts.script("repair").sha
    return [each for each in ran if each.sha == sha]


def _words() -> list[str]:
    """Return the arguments of a repair call before the first id."""
    script = scripts.script("repair")
    return ["EVALSHA", script.sha, str(len(script.keys)), *script.keys, *script.args]


def listing_ms(made: Stage) -> float:
    """Time the first page of schedules, with everything that `beat list` reads for it."""
    redis: Any = connection.connect(made.url)
    with contextlib.closing(redis):
        client = Client(redis)
        client.now()  # connects
        began = time.perf_counter()
        found = list(itertools.islice(client.schedules(runs=20, page=PAGE), PAGE))
        client.counts(), client.beats()
        took = (time.perf_counter() - began) * 1000
    if len(found) != PAGE:
        raise RuntimeError(f"a page of {len(found)}")
    return took
