"""Pause, defer, remove and retire schedules, in one atomic step each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat.storage.messages import Reply, decoded, replies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.storage.store import Store


class Stretch(NamedTuple):
    """One item of `retire`: a schedule, and the range of ticks that it skips when it is retired."""

    id: str
    tick: str = ""
    last: str = ""
    number: int = 0
    next: str = ""


class Operations:
    """The operations on the schedules of one installation."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def pause(
        self, ids: Sequence[tuple[str, str]], *, by: str, untl: str = "", reason: str = "", scope: str = "one"
    ) -> list[Reply]:
        """Pause these schedules; each is an id with its required version (empty for any)."""
        return replies(self._store.run("pause", ids, by=by, untl=untl, reason=reason, scope=scope))

    def defer(self, *, schedule_id: str, rev: str, tick: str, due_at: str, version: str, by: str) -> Reply:
        """Set the due time of the next tick, once."""
        keys = self._store.keys
        own = {"schedule": keys.schedule(schedule_id), "runs": keys.runs(schedule_id), "schedule_id": schedule_id}
        said = self._store.run("defer", rev=rev, tick=tick, due_at=due_at, version=version, by=by, **own)
        return Reply(*map(decoded, said))

    def remove(self, ids: Sequence[tuple[str, str]], *, by: str, state: str = "") -> list[Reply]:
        """Delete these schedules and all their data; each is an id with its required version (empty for any)."""
        return replies(self._store.run("remove", ids, by=by, state=state))

    def retire(self, items: Sequence[Stretch], *, beat: str, app: str, retire_after: int) -> list[Reply]:
        """Put schedules on hold that no running scheduler declares, and retire them after `retire_after` ms."""
        return replies(self._store.run("retire", items, beat=beat, app=app, retire_after=retire_after))
