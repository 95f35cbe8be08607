"""Make schedules due at the instant that a benchmark chooses, once every process is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.storage.keys import Keys
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Sequence

KEYS = Keys()
_UNDISTURBED_MS = 50_000


def fall_due(redis: Any, ids: Sequence[str], at: int) -> None:
    """Set the next tick of these schedules to `at` (seconds since the epoch), whatever their definition says.

    Registration would correct a future tick that does not match the definition, so all schedulers must have finished
    registering. The repair of every minute would also correct it, so it is postponed as if it had just run.
    """
    redis.set(KEYS.repaired, "benchmark", px=_UNDISTURBED_MS)
    text = clock.text(clock.from_ms(at * 1000))
    with redis.pipeline(transaction=True) as pipe:
        for each in ids:
            pipe.hset(KEYS.schedule(each), mapping={"next_run": text, "due_at": text})
        pipe.zadd(KEYS.due, dict.fromkeys(ids, at * 1000))
        pipe.execute()


def fired_at(redis: Any, ids: Sequence[str], tick: int) -> list[float | None]:
    """Return when this tick of each schedule was enqueued, in seconds by Redis' clock; None if it was not."""
    text = clock.text(clock.from_ms(tick * 1000))
    with redis.pipeline(transaction=False) as pipe:
        for each in ids:
            pipe.hmget(KEYS.schedule(each), "last_run", "last_enqueued")
        found = pipe.execute()
    return [clock.to_ms(clock.read(enqueued)) / 1000 if last == text else None for last, enqueued in found]


def forget_runs(redis: Any) -> None:
    """Forget all open runs, because another suite measures the cost of tracking them."""
    redis.delete(KEYS.open, KEYS.records, KEYS.closed)
