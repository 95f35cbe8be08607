"""Schedules that fall due when a benchmark wants it: as if their time had come, and not before everybody is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.storage.keys import Keys
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Sequence

KEYS = Keys()
_UNDISTURBED_MS = 50_000


def fall_due(redis: Any, ids: Sequence[str], at: int) -> None:
    """Their next tick is at `at` (seconds since the epoch), whatever their definition says.

    Registering would put a future tick right that is none of the definition's own, so the beats must be done with it;
    what would have them do it again, the repair of every minute, is put off as if it had just been done.
    """
    redis.set(KEYS.repaired, "benchmark", px=_UNDISTURBED_MS)
    text = clock.text(clock.from_ms(at * 1000))
    with redis.pipeline(transaction=True) as pipe:
        for each in ids:
            pipe.hset(KEYS.schedule(each), mapping={"next_run": text, "due_at": text})
        pipe.zadd(KEYS.due, dict.fromkeys(ids, at * 1000))
        pipe.execute()


def fired_at(redis: Any, ids: Sequence[str], tick: int) -> list[float | None]:
    """When that tick of each was enqueued, by Redis' clock in seconds; None where it was not."""
    text = clock.text(clock.from_ms(tick * 1000))
    with redis.pipeline(transaction=False) as pipe:
        for each in ids:
            pipe.hmget(KEYS.schedule(each), "last_run", "last_enqueued")
        found = pipe.execute()
    return [clock.to_ms(clock.read(enqueued)) / 1000 if last == text else None for last, enqueued in found]


def forget_runs(redis: Any) -> None:
    """Nothing is open any more, as if workers had done it all: looking at it is measured elsewhere."""
    redis.delete(KEYS.open, KEYS.records, KEYS.closed)
