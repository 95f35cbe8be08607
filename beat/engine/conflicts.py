"""Compare the code of a scheduler with what other live schedulers declare, and warn where they contradict each other.

A comparison is made once for each announcement that comes. While it shows a difference, the heartbeats are read twice
a minute, because only they tell a deploy from a conflict.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from beat.engine.events import Event
from beat.storage import announcements
from beat.storage.announcements import Declaration

if TYPE_CHECKING:
    from beat.engine.events import Emit
    from beat.engine.registrar import Sync
    from beat.storage.announcements import Announcer, Comparison
    from beat.storage.store import Store

LOOK_S = 30


class Neighbours:
    """The announcements of other live schedulers, compared with this scheduler's own."""

    def __init__(self, store: Store, sync: Sync, emit: Emit) -> None:
        self._store, self._sync, self._emit = store, sync, emit
        self._compared: dict[str, Comparison] = {}
        self._warned: set[tuple[str, str]] = set()
        self._looked_at = -float(LOOK_S)

    @property
    def unrelated(self) -> bool:
        """Return whether this application is announced by code that has no schedule in common with this one."""
        own = f"{self._sync.app}."
        return any(
            digest.startswith(own) and comparison.size and not comparison.common
            for digest, comparison in self._compared.items()
        )

    def turn(self, live: str) -> None:
        """Compare the digests that are announced now, and warn once about each conflict."""
        if not self._sync.schedules:
            return
        others = {digest for digest in live.split() if digest != self._sync.digest}
        self._compared = {digest: known for digest, known in self._compared.items() if digest in others}
        self._warned = {(digest, kind) for digest, kind in self._warned if digest in others}
        fresh = others - self._compared.keys()
        for digest in fresh:
            self._compared[digest] = announcements.compare(self._store, self._sync.schedules, Declaration.of, digest)
        is_due = time.monotonic() - self._looked_at >= LOOK_S
        if (fresh or is_due) and (self.unrelated or any(each.differing for each in self._compared.values())):
            self._looked_at = time.monotonic()
            self._warn()

    def _warn(self) -> None:
        now = self._store.time()
        known = announcements.announcers(announcements.alive(self._store, now))
        own = known.get(self._sync.digest)
        for digest, comparison in self._compared.items() if own else ():
            other = known.get(digest)  # without one, the announcement lingers after its scheduler stopped
            if own and other:
                self._judge(own, other, comparison)

    def _judge(self, own: Announcer, other: Announcer, comparison: Comparison) -> None:
        if announcements.unrelated(own, other, comparison) and self._is_news(other, "unrelated"):
            words, remedy = announcements.unrelated_words(own, other)
            self._emit(Event("unrelated", fields={"words": words, "remedy": remedy, "hosts": list(other.hosts)}))
        for each in announcements.conflicts(own, other, comparison, self._store.time()):
            if self._is_news(other, each.kind):
                fields = {"words": each.words, "remedy": each.remedy, "ids": list(each.ids), "count": each.number}
                self._emit(Event("conflict", each.ids[0], fields))

    def _is_news(self, other: Announcer, kind: str) -> bool:
        key = other.digest, kind
        is_news = key not in self._warned
        self._warned.add(key)
        return is_news
