"""Kill a scheduler with SIGKILL while it holds claims, and measure how late its schedules and all others become.

Two schedulers share 1,000 schedules. Every second 500 of them tick, in turns, so some are always unclaimed. The
scheduler with the most locks is stopped, its locks are read from Redis, and it is killed. The ledger gives the lateness
of every tick from then until the dead scheduler's locks have expired and normal operation has resumed. *claimed* are
the schedules whose lock the dead scheduler owned, *not claimed* all others.
"""

from __future__ import annotations

import contextlib
import json
import math
import signal
from typing import TYPE_CHECKING, NamedTuple

from beat.timing import clock
from benchmarks.due import KEYS
from benchmarks.figures import Figure
from benchmarks.stage import Beat, stage, wait_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from benchmarks.figures import Say, Scale
    from benchmarks.stage import Stage

TITLE = "Takeover after kill -9"
SUITE = "takeover"
SCHEDULES = 1_000
PERIOD_S = 2
IDS = tuple(f"s{n:06d}" for n in range(SCHEDULES))
TASKS = f"""
from datetime import datetime, timezone
from beat import register

def work(): ...

for n in range({SCHEDULES}):
    start = datetime.fromtimestamp(n % {PERIOD_S}, timezone.utc)
    register(work, every="{PERIOD_S}s", start=start, id=f"s{{n:06d}}", queue="q0")
"""


class Delays(NamedTuple):
    """The longest lateness of a tick, in seconds."""

    claimed: float
    others: float


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    """Kill one of two schedulers repeatedly; start a new one each time."""
    (lock_ttl,), (kills,) = scale.pick((10,), (2,)), scale.pick((5,), (1,))
    found: list[Delays] = []
    with stage() as made, contextlib.ExitStack() as hall:
        home, beats = made.clean(), list[Beat]()
        (home / "tasks.py").write_text(TASKS, encoding="utf-8")
        for number in range(1, kills + 1):
            say(f"two beats, {SCHEDULES // PERIOD_S} ticks a second; kill {number} of {kills}")
            while len(beats) < 2:  # noqa: PLR2004 (a pair)
                beats.append(hall.enter_context(Beat(home, made.url, env={"BEAT_LOCK_TTL": f"{lock_ttl}s"})))
            wait_for(lambda: all(is_there(made, beat) for beat in beats), 60)
            found.append(kill(made, beats, lock_ttl))
    at: Mapping[str, int | str] = {"lock_ttl": f"{lock_ttl} s"}
    yield Figure(SUITE, "takeover, not claimed", tuple(each.others for each in found), "s", at=at)
    yield Figure(SUITE, "takeover, claimed", tuple(each.claimed for each in found), "s", at=at)


def is_there(made: Stage, beat: Beat) -> bool:
    """Return whether the scheduler has registered and sends heartbeats."""
    return any(f"-{beat.process.pid}-" in name for name in made.redis.zrange(KEYS.instances, 0, -1))


def kill(made: Stage, beats: list[Beat], lock_ttl: int) -> Delays:
    """Kill one of the schedulers during its work, wait until the other has caught up, and return the delays."""
    wait_for(lambda: all(reached(made, int(made.now()) - 1)), 60)  # nobody lags behind
    [(victim, claimed)] = wait_for(lambda: stopped_with_claims(made, beats), 60, pause=0.05)
    at = made.now()
    victim.kill()
    beats.remove(victim)
    first, last = int(at), math.ceil(at) + lock_ttl + 2  # what was due just then may not have been fired yet
    wait_for(lambda: all(reached(made, last)), 3 * lock_ttl + 20, pause=0.2)
    ticks = {each: range(first + (n - first) % PERIOD_S, last + 1, PERIOD_S) for n, each in enumerate(IDS)}
    return delays(ledgers(made), claimed, ticks)


def stopped_with_claims(made: Stage, beats: Sequence[Beat]) -> list[tuple[Beat, Collection[str]]]:
    """Stop the scheduler with the most claims and return both. If it has none by then, resume it and return []."""
    victim = max(beats, key=lambda beat: len(claims(made, beat)))
    victim.process.send_signal(signal.SIGSTOP)
    if mine := claims(made, victim):
        return [(victim, mine)]
    victim.process.send_signal(signal.SIGCONT)
    return []


def claims(made: Stage, beat: Beat) -> Collection[str]:
    """Return the schedules whose lock this scheduler owns. The lock's value is its name, which contains its pid."""
    tokens = made.redis.mget([KEYS.lock(each) for each in IDS])
    return {each for each, token in zip(IDS, tokens, strict=True) if token and f"-{beat.process.pid}-" in token}


def reached(made: Stage, second: int) -> Iterator[bool]:
    """Yield for each schedule whether its last tick up to this second has fired."""
    wanted = clock.text(clock.at(second - PERIOD_S + 1))
    with made.redis.pipeline(transaction=False) as pipe:
        for each in IDS:
            pipe.hget(KEYS.schedule(each), "last_run")
        yield from ((last or "") >= wanted for last in pipe.execute())


def ledgers(made: Stage) -> Mapping[str, Sequence[str]]:
    """Return the ledger of each schedule."""
    with made.redis.pipeline(transaction=False) as pipe:
        for each in IDS:
            pipe.lrange(KEYS.runs(each), 0, -1)
        return dict(zip(IDS, pipe.execute(), strict=True))


def delays(lines: Mapping[str, Sequence[str]], claimed: Collection[str], ticks: Mapping[str, Sequence[int]]) -> Delays:
    """Return the longest lateness of these ticks by the ledgers, for claimed schedules and for the others.

    Raise RuntimeError if a tick was skipped or is missing, because that is a loss and not a delay.
    """
    latest = {True: 0.0, False: 0.0}
    for each, seconds in ticks.items():
        entries = (json.loads(line) for line in lines[each])
        late = {entry["tick"]: entry["late_ms"] for entry in entries if entry["type"] == "enqueued"}
        wanted = [clock.text(clock.at(second)) for second in seconds]
        if missing := set(wanted) - late.keys():
            raise RuntimeError(f"{each} has not fired for {min(missing)}")
        latest[each in claimed] = max(latest[each in claimed], *(late[tick] / 1000 for tick in wanted))
    return Delays(latest[True], latest[False])
