"""Read the facts that ticks depend on besides their time: queue load, slow runs, and other schedules.

`claim` reads most of them; the rest is read here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from beat.policies import routing
from beat.policies.facts import Facts, Parent, Told
from beat.storage.queue_workers import staff

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from beat.policies.facts import Staff, Uses
    from beat.schedule.schedule import Schedule
    from beat.storage.store import Store

_FRESH_MS = 900
"""How long the load of a queue counts as known; a longer cycle reads it again."""
_LATEST_MS = 1_000
"""How far after `now` a slow run may have ended and still counts, because `now` is an estimate."""


class Inquiry:
    """The facts as one thread reads them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._staff: dict[str, Staff] = {}
        self._asked_ms = 0.0

    def about(
        self, schedules: Iterable[Schedule], now_ms: float, told: Mapping[str, Told] | None = None
    ) -> dict[str, Facts]:
        """Return the facts for the schedules that depend on any; most do not.

        `told` are the facts that `claim` has read already.
        """
        asking = [each for each in schedules if _depends(each)]
        if not asking:
            return {}
        self._learn([queue for each in asking for queue in routing.looks_at(each)], now_ms)
        known = dict(told or {})
        if unknown := [each for each in asking if each.id not in known or not _is_whole(known[each.id], each)]:
            known |= self.read(unknown, now_ms)
        return {each.id: self._facts(known[each.id]) for each in asking}

    def read(self, schedules: Sequence[Schedule], now_ms: float) -> dict[str, Told]:
        """Read the facts that `claim` would have read with these schedules."""
        keys = self._store.keys
        with self._store.client.pipeline(transaction=False) as pipe:
            for each in schedules:
                pipe.hget(keys.schedule(each.id), "uses")
                slow = routing.lane(each)
                oldest = now_ms - slow.window.total_seconds() * 1000 if slow else now_ms
                pipe.zcount(keys.slow(each.id), int(oldest), int(now_ms) + _LATEST_MS)
                for required in each.requires:
                    pipe.hmget(keys.schedule(required.id), "state", "last_success")
            found = iter(pipe.execute(raise_on_error=False))
        return {each.id: _told(each, found) for each in schedules}

    def _facts(self, told: Told) -> Facts:
        return Facts(_uses(told.uses), told.slow or 0, told.parents, self._staff)

    def _learn(self, queues: Sequence[str], now_ms: float) -> None:
        """Read the workers and the load of these queues, unless they were read just now."""
        if abs(now_ms - self._asked_ms) > _FRESH_MS:
            self._staff, self._asked_ms = {}, now_ms
        if new := [each for each in queues if each not in self._staff]:
            self._staff |= staff(self._store, new)


def _depends(schedule: Schedule) -> bool:
    return bool(schedule.requires or schedule.slow_queue or routing.remembers(schedule) or routing.looks_at(schedule))


def _is_whole(told: Told, schedule: Schedule) -> bool:
    """Return whether nothing is missing; `claim` decides what to read by fields that any client can write."""
    if schedule.slow_queue and told.slow is None:
        return False
    return all(required.id in told.parents for required in schedule.requires)


def _told(schedule: Schedule, found: Iterator[Any]) -> Told:
    uses, slow = _text(next(found)), next(found)
    said = ((required.id, next(found)) for required in schedule.requires)
    parents = {each: Parent(*map(_text, words)) if isinstance(words, list) else Parent() for each, words in said}
    count = slow if isinstance(slow, int) else 0
    return Told(uses, count if schedule.slow_queue else None, parents)


def _uses(written: str) -> Uses:
    """Parse the queues that a schedule has used; return none if the text, which any client can write, is invalid."""
    if not written:
        return ()
    try:
        found = [(str(queue), int(count)) for queue, count in json.loads(written)]
    except (ValueError, TypeError, OverflowError, RecursionError):
        return ()
    return tuple(each for n, each in enumerate(found) if each[0] not in {queue for queue, _ in found[n + 1 :]})


def _text(value: Any) -> str:
    return str(value.decode(errors="replace")) if isinstance(value, bytes) else ""
