"""Measure the basic parts: a lock, the state of one schedule, and the next tick of an expression.

Each part is called as beat calls it, one call after another on one connection, so each figure includes a round trip to
Redis. `benchmarks.ticks` measures `Cron.after` in turns with croniter, and the best turn counts.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from beat.engine import fire_items
from beat.engine.registrar import Sync
from beat.policies.decide import Fire
from beat.schedule.registry import Registry
from beat.storage import connection
from beat.storage.keys import Keys
from beat.storage.lock import Lock
from beat.storage.store import Store
from beat.timing import clock
from benchmarks import ticks
from benchmarks.due import fall_due
from benchmarks.figures import Figure
from benchmarks.stage import stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beat.engine.events import Event
    from beat.schedule.schedule import Schedule
    from benchmarks.figures import Say, Scale
    from benchmarks.stage import Stage

TITLE = "Lock, state, next tick"
SUITE = "parts"
ID = "work"


def work() -> None:
    """Stand in for the function of the schedule."""


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    """Measure the parts that need Redis, then the ticks."""
    calls, times = scale.pick((500,), (100,))[0], scale.pick((7,), (3,))[0]
    with stage() as found:
        found.clean()
        store = Store(connection.connect(found.url), Keys())
        parts = {
            "lock acquire and release": lock(store),
            "state write": write(store),  # before it is read, so that there is something to read
            "state read": lambda: store.look([ID]),
        }
        for what, part in parts.items():
            say(what)
            yield Figure(SUITE, what, tuple(each_us(part, calls) for _ in range(times)), "µs")
        say("redis.call per fire")
        yield Figure(SUITE, "redis.call per fire", (float(calls_of_a_fire(store, found)),), "")
        store.client.close()
    yield from next_ticks(scale.pick((3,), (1,))[0], say)


def each_us(part: Callable[[], object], calls: int) -> float:
    """Return microseconds per call."""
    part()
    began = time.perf_counter()
    for _ in range(calls):
        part()
    return (time.perf_counter() - began) / calls * 1e6


def lock(store: Store) -> Callable[[], None]:
    """Return a function that acquires and releases a lock without contention."""
    mine = Lock(store.client, store.keys.lock(ID), 10_000)

    def turn() -> None:
        if not (mine.acquire() and mine.release()):
            raise RuntimeError("the lock was not ours")

    return turn


def write(store: Store) -> Callable[[], None]:
    """Return a function that replaces the definition in Redis with a different one: read, prepare and write."""
    told: list[str] = []

    def emit(event: Event) -> None:
        told.append(event.name)

    versions = [Sync(store, [_declared(words)], beat="benchmark", emit=emit) for words in ("one", "another")]

    def turn() -> None:
        versions.reverse()
        versions[0].register([ID])
        if told[-1:] not in ([], ["updated"]):
            raise RuntimeError(f"the definition was not replaced: {told[-1]}")

    return turn


def calls_of_a_fire(store: Store, made: Stage) -> int:
    """Return how many commands the fire script calls for a single tick, which shares nothing with a page."""
    fall_due(made.redis, [ID], int(made.now()) - 5)
    (claim,) = store.claim(token=ID, lock_ttl=10_000, lookahead=0, limit=1).claims
    schedule, tick = _declared("any"), clock.read(claim.tick)
    chain = fire_items.chain(claim, claim.rev, schedule, [Fire(tick, schedule.after(tick))], store.keys)
    made.redis.config_resetstat()
    (reply,) = store.fire(chain.items, token=ID).replies
    if reply.code != "OK":
        raise RuntimeError(f"the tick was not fired: {reply}")
    stats = made.redis.info("commandstats")
    mine = {"cmdstat_evalsha", "cmdstat_eval", "cmdstat_config|resetstat", "cmdstat_info"}
    return sum(int(each["calls"]) for name, each in stats.items() if name not in mine)


def _declared(words: str) -> Schedule:
    made = Registry()
    made.register(work, "0 9 * * mon-fri", tz="Europe/Paris", id=ID, description=words)
    [schedule] = made
    return schedule


def next_ticks(times: int, say: Say) -> Iterator[Figure]:
    """Yield the time of beat and croniter for the most common expressions."""
    instants = ticks.varied_instants()
    for shape in (shape for shape in ticks.SHAPES if shape.common):
        say(f"Cron.after: {shape.name}")
        rows = [ticks.measure_after(shape, instants) for _ in range(times)]
        for who in ("beat", "croniter"):
            best = tuple(row.times[who].best for row in rows)
            yield Figure(SUITE, "Cron.after", best, "µs", who=who, at={"shape": shape.name})
