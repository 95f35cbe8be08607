"""What the ticks of a page depend on besides their time, read from Redis for all of them at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from beat import routing
from beat.facts import Facts, Parent
from beat.staff import staff

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beat.facts import Staff, Uses
    from beat.schedule import Schedule
    from beat.store import Store

_FRESH_MS = 900
"""For so long it is known who works at a queue: not for longer than a pass."""


class Inquiry:
    """One thread's questions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._staff: dict[str, Staff] = {}
        self._asked_ms = 0.0

    def about(self, schedules: Iterable[Schedule], now_ms: float) -> dict[str, Facts]:
        """Of those that depend on anything; most do not, and nothing is asked."""
        asked = {each.id: each for each in schedules if _depends(each)}
        if not asked:
            return {}
        self._learn([queue for each in asked.values() for queue in routing.looks_at(each)], now_ms)
        return dict(zip(asked, self._read(list(asked.values()), now_ms), strict=True))

    def _read(self, schedules: Sequence[Schedule], now_ms: float) -> list[Facts]:
        keys = self._store.keys
        with self._store.client.pipeline(transaction=False) as pipe:
            for each in schedules:
                pipe.hget(keys.schedule(each.id), "uses")
                slow = routing.lane(each)
                oldest = now_ms - slow.window.total_seconds() * 1000 if slow else now_ms
                pipe.zcount(keys.slow(each.id), int(oldest), "+inf")
                for required in each.requires:
                    pipe.hmget(keys.schedule(required.id), "state", "last_success", "renamed_to")
            found = iter(pipe.execute(raise_on_error=False))
        return [self._facts(each, next(found), next(found), [next(found) for _ in each.requires]) for each in schedules]

    def _facts(self, schedule: Schedule, uses: Any, slow: Any, parents: Sequence[Any]) -> Facts:
        told = [Parent(*map(_text, each)) if isinstance(each, list) else Parent() for each in parents]
        known = {required.id: parent for required, parent in zip(schedule.requires, told, strict=True)}
        return Facts(_uses(uses), slow if isinstance(slow, int) else 0, known, self._staff)

    def _learn(self, queues: Sequence[str], now_ms: float) -> None:
        """Who works there, unless that was asked just now."""
        if abs(now_ms - self._asked_ms) > _FRESH_MS:
            self._staff, self._asked_ms = {}, now_ms
        if new := [each for each in queues if each not in self._staff]:
            self._staff |= staff(self._store, new)


def _depends(schedule: Schedule) -> bool:
    return bool(schedule.requires or schedule.slow_queue or routing.remembers(schedule) or routing.looks_at(schedule))


def _uses(written: Any) -> Uses:
    """Anything may stand there, since anybody can write to Redis."""
    try:
        found = [(str(queue), int(count)) for queue, count in json.loads(written or b"[]")]
    except (ValueError, TypeError, OverflowError, RecursionError):
        return ()
    return tuple(each for n, each in enumerate(found) if each[0] not in {queue for queue, _ in found[n + 1 :]})


def _text(value: Any) -> str:
    return str(value.decode(errors="replace")) if isinstance(value, bytes) else ""
