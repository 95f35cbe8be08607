"""Read how a schedule relates to others: its group, what it requires or follows, its followers, its slow queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beat.policies import routing
from beat.storage import group_limits
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.config.groups import Group
    from beat.schedule.schedule import Schedule
    from beat.storage.store import Store


class Parent(NamedTuple):
    """A schedule that another one requires or follows."""

    id: str
    state: str
    """Empty if there is no such schedule any more."""
    last_success: datetime | None


class Shared(NamedTuple):
    """A group and its present load."""

    name: str
    limits: Group | None
    """None if the group has no limits in Redis."""
    running: int
    waiting: int


class Places(NamedTuple):
    """The relations of one schedule."""

    group: Shared | None = None
    requires: tuple[Parent, ...] = ()
    follows: Parent | None = None
    followers: tuple[str, ...] = ()
    slow: int = 0
    """How many of its runs within the window of the slow queue were slow."""


def look(store: Store, known: Standing, now: datetime) -> Places:
    """Return the relations of a schedule; only its followers if its definition cannot be read."""
    followers: Any = _sane(store, "smembers", store.keys.followers(known.schedule_id), set())
    names = tuple(sorted(each.decode(errors="replace") for each in followers))
    schedule = known.policies
    if schedule is None:
        return Places(followers=names)
    named = [*(each.id for each in schedule.requires), *([schedule.follows] if schedule.follows else [])]
    found = parents(store, named)
    return Places(
        group=_shared(store, schedule.group) if schedule.group else None,
        requires=tuple(found[: len(schedule.requires)]),
        follows=found[-1] if schedule.follows else None,
        followers=names,
        slow=_slow(store, schedule, now),
    )


def parents(store: Store, ids: Sequence[str]) -> list[Parent]:
    """Return the state and the last success of each of these schedules."""
    with store.client.pipeline(transaction=False) as pipe:
        for each in ids:
            pipe.hmget(store.keys.schedule(each), "state", "last_success")
        found: list[Any] = pipe.execute(raise_on_error=False)
    told = [[_text(value) for value in values] if isinstance(values, list) else [""] * 2 for values in found]
    return [Parent(each, state, clock.found(at)) for each, (state, at) in zip(ids, told, strict=True)]


def _shared(store: Store, name: str) -> Shared:
    slot = f"@{name}"
    running, waiting = (_sane(store, "zcard", key, 0) for key in (store.keys.running(slot), store.keys.waiting(slot)))
    return Shared(name, group_limits.known(store).get(name), running, waiting)


def _slow(store: Store, schedule: Schedule, now: datetime) -> int:
    lane = routing.lane(schedule)
    if lane is None:
        return 0
    window = clock.to_ms(now - lane.window), clock.to_ms(now)
    return int(_sane(store, "zcount", store.keys.slow(schedule.id), 0, *window))


def _sane(store: Store, command: str, key: str, nothing: Any, *words: Any) -> Any:
    """Return the reply, or `nothing` if Redis refuses, for example because the key has another type."""
    with store.client.pipeline(transaction=False) as pipe:
        getattr(pipe, command)(key, *words)
        [found] = pipe.execute(raise_on_error=False)
    return nothing if isinstance(found, Exception) else found


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""
