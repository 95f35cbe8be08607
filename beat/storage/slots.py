"""Manage the slots of one installation in Redis, and the ticks that wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beat.jobs import job_template
from beat.storage.messages import Slot, decoded
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.storage.store import Store

_ASIDE_MS = 5_000
"""How soon another scheduler may try a group's tick whose definition this one cannot read."""
_CANCELLED_S = 86_400
"""How long RQ keeps the record of a job that was taken out of its queue."""
_TOLD_MS = 90_000
"""How soon a worker may get another stop command for a job; RQ allows callbacks a minute."""


class HandedOn(NamedTuple):
    """The result of passing successes on to followers."""

    code: str
    words: str
    dropped: Sequence[tuple[str, str]] = ()
    """The schedules whose success cannot be passed on to all followers, each with the reason."""


class Slots:
    """The schedules and groups for whose slots ticks wait."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.pending = 0
        """How many successes were still to be passed on to followers at the last request."""

    def follow(self, *, token: str) -> HandedOn:
        """Pass successes on to some of their followers; `pending` says how many successes are left."""
        code, _, words, *dropped = self._store.run("follow", token=token)
        reply = HandedOn(decoded(code), decoded(words), [(decoded(each), decoded(why)) for each, why in dropped])
        self.pending = int(reply.words) if reply.code == "OK" else 0
        return reply

    def attend(self, *, limit: int, interval: int) -> tuple[int, list[Slot]]:
        """Return how many waiting lists were checked, and those on which ticks wait.

        At most `limit` are checked, each about once in `interval` ms by all schedulers together. If none was checked,
        nothing is left to check for now.
        """
        _, looked, self.pending, *found = self._store.run("attend", limit=limit, interval=interval)
        return looked, [
            Slot(decoded(each), decoded(rev), decoded(state), ended, _texts(running), _texts(waiting), **_rest(rest))
            for each, rev, state, ended, running, waiting, rest in found
        ]

    def step_aside(self, group: str, waiting: Sequence[str]) -> None:
        """Take ticks off a group's waiting list that this scheduler cannot admit, so that they do not block the others.

        They stay on the waiting lists of their schedules.
        """
        keys, now = self._store.keys, clock.to_ms(self._store.time())
        with self._store.client.pipeline() as pipe:
            pipe.zrem(keys.waiting(group), *waiting)
            pipe.zadd(keys.waiting_slots, {words.partition(" ")[0]: now + _ASIDE_MS for words in waiting})
            pipe.execute()

    def withdraw(
        self, slot: str, ids: Sequence[str], *, kept: int = _CANCELLED_S, told: int = _TOLD_MS, tick: str
    ) -> None:
        """End jobs that a newer tick replaces: those in a queue at once, the others by a stop command to their worker.

        A schedule or group whose slot this frees is checked next.
        """
        left, freed = list(ids), False
        while left:
            replies = self._store.run("withdraw", [(each,) for each in left], tick=tick, kept=kept, told=told)
            for each, (code, worker) in zip(left, replies, strict=True):
                if code == b"STARTED":
                    job_template.stop(self._store.client, each, decoded(worker))
            freed = freed or any(code == b"OK" for code, _ in replies)
            left = [each for each, (code, _) in zip(left, replies, strict=True) if code == b"LATER"]
        if freed:
            self._store.client.zadd(self._store.keys.waiting_slots, {slot: 0}, xx=True)


def _rest(told: Any) -> dict[str, Any]:
    return {"revs": _texts(told)} if isinstance(told, list) else {"hall": told}


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(map(decoded, values))
