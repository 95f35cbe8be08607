"""Choose the queue of a tick, with one pure function for each route.

    first, last      always the first or the last queue
    round_robin      each queue in turn
    random           a pseudo-random queue, the same for every scheduler
    least_used       the queue that got the fewest ticks of the schedule
    least_recent     the queue that was not used for the longest time
    hash             by the schedule's id; adding a queue moves few schedules
    shortest         the queue with the fewest waiting jobs
    first_idle       the first queue with an idle worker
    failover         the first queue with a worker
    broadcast        all queues, one job each

While a schedule has too many slow runs, its ticks go to its slow queue regardless of the route. The engine reads the
facts beforehand, and updates them with `taken` after each decision.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from beat.policies.facts import Facts, Staff, Uses
from beat.timing import clock, durations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from beat.schedule.schedule import Schedule

_MS = timedelta(milliseconds=1)
_REMEMBERS = {"round_robin", "least_used", "least_recent"}
_LOOKS = {"shortest", "first_idle", "failover"}
_NOBODY = Staff(0, 0, 0)


class Way(NamedTuple):
    """The queues to which a tick goes: one, or all for a broadcast."""

    queues: tuple[str, ...]
    why: str = ""
    """The reason for the choice in words; "" if there was none to make."""
    uses: Uses = ()
    """The use counts to store afterwards; empty if the route does not need them."""


class Lane(NamedTuple):
    """When a schedule counts as slow: `times` runs longer than `after` within `window`."""

    after: timedelta = timedelta(milliseconds=500)
    times: int = 10
    window: timedelta = timedelta(minutes=1)

    def __str__(self) -> str:
        return f"{self.after // _MS} {self.times} {self.window // _MS}"


def lane(schedule: Schedule) -> Lane | None:
    """Return when a schedule counts as slow; None if it has no slow queue."""
    if not schedule.slow_queue:
        return None
    usual = Lane()
    return Lane(
        schedule.slow_after or usual.after, schedule.slow_times or usual.times, schedule.slow_window or usual.window
    )


def all_queues(schedule: Schedule) -> tuple[str, ...]:
    """Return every queue to which the schedule's ticks may go, including its slow queue."""
    slow = (schedule.slow_queue,) if schedule.slow_queue else ()
    return (*(schedule.queues or (schedule.queue,)), *slow)


def remembers(schedule: Schedule) -> bool:
    """Return whether the route depends on which queues were used before."""
    return schedule.route in _REMEMBERS


def looks_at(schedule: Schedule) -> tuple[str, ...]:
    """Return the queues whose load decides the route."""
    return tuple(schedule.queues) if schedule.route in _LOOKS else ()


def route(schedule: Schedule, tick: datetime, facts: Facts) -> Way:
    """Return the queues of a tick."""
    if not schedule.route and not schedule.slow_queue:
        return _only(schedule.queue)
    slow = lane(schedule)
    if slow and schedule.slow_queue and facts.slow >= slow.times:
        words = f"{slow.times} runs over {durations.short(slow.after)} within {durations.short(slow.window)}"
        return Way((schedule.slow_queue,), f"slow: {words}")
    if not schedule.route:
        return Way((schedule.queue,))
    if schedule.route == "broadcast":
        return Way(tuple(schedule.queues), "broadcast")
    chosen, words = _ROUTES[schedule.route](schedule, tick, facts)
    why = f"{schedule.route}: {words}" if words else schedule.route
    return Way((chosen,), why, _used(facts.uses, chosen, schedule) if remembers(schedule) else ())


@functools.lru_cache(maxsize=1024)
def _only(queue: str) -> Way:
    return Way((queue,))


def taken(facts: Facts, way: Way) -> Facts:
    """Return the facts for the next decision, and add the new jobs to the shared load of their queues in place."""
    for queue in way.queues:
        if found := facts.staff.get(queue):
            idle = found.idle and found.idle - 1
            facts.staff[queue] = found._replace(queued=found.queued + 1, idle=idle)
    return replace(facts, uses=way.uses) if way.uses else facts


def _used(uses: Uses, chosen: str, schedule: Schedule) -> Uses:
    kept = [(queue, count) for queue, count in uses if queue in schedule.queues and queue != chosen]
    return (*kept, (chosen, dict(uses).get(chosen, 0) + 1))


def _first(schedule: Schedule, _tick: datetime, _facts: Facts) -> tuple[str, str]:
    return schedule.queues[0], ""


def _last(schedule: Schedule, _tick: datetime, _facts: Facts) -> tuple[str, str]:
    return schedule.queues[-1], ""


def _round_robin(schedule: Schedule, _tick: datetime, facts: Facts) -> tuple[str, str]:
    before = [queue for queue, _ in facts.uses if queue in schedule.queues]
    place = schedule.queues.index(before[-1]) + 1 if before else 0
    return schedule.queues[place % len(schedule.queues)], ""


def _random(schedule: Schedule, tick: datetime, _facts: Facts) -> tuple[str, str]:
    return schedule.queues[_drawn(f"{schedule.id} {clock.text(tick)}") % len(schedule.queues)], ""


def _least_used(schedule: Schedule, _tick: datetime, facts: Facts) -> tuple[str, str]:
    counts = dict(facts.uses)
    return min(schedule.queues, key=lambda queue: counts.get(queue, 0)), ""


def _least_recent(schedule: Schedule, _tick: datetime, facts: Facts) -> tuple[str, str]:
    before = [queue for queue, _ in facts.uses]
    return min(schedule.queues, key=lambda queue: before.index(queue) if queue in before else -1), ""


def _hash(schedule: Schedule, _tick: datetime, _facts: Facts) -> tuple[str, str]:
    return max(schedule.queues, key=lambda queue: _drawn(f"{schedule.id} {queue}")), ""


def _shortest(schedule: Schedule, _tick: datetime, facts: Facts) -> tuple[str, str]:
    chosen = min(schedule.queues, key=lambda queue: facts.staff.get(queue, _NOBODY).queued)
    return chosen, f"{facts.staff.get(chosen, _NOBODY).queued} in line"


def _first_idle(schedule: Schedule, _tick: datetime, facts: Facts) -> tuple[str, str]:
    for queue in schedule.queues:
        if facts.staff.get(queue, _NOBODY).idle:
            return queue, ""
    chosen, words = _failover(schedule, _tick, facts)
    return chosen, words or "all are busy"


def _failover(schedule: Schedule, _tick: datetime, facts: Facts) -> tuple[str, str]:
    for place, queue in enumerate(schedule.queues):
        if facts.staff.get(queue, _NOBODY).workers != 0:  # None means unknown, so there may be workers
            return queue, f"nobody works at {', '.join(schedule.queues[:place])}" if place else ""
    return schedule.queues[0], "nobody works at any of them"


_ROUTES: Mapping[str, Callable[[Schedule, datetime, Facts], tuple[str, str]]] = {
    "first": _first,
    "last": _last,
    "round_robin": _round_robin,
    "random": _random,
    "least_used": _least_used,
    "least_recent": _least_recent,
    "hash": _hash,
    "shortest": _shortest,
    "first_idle": _first_idle,
    "failover": _failover,
}


def _drawn(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
