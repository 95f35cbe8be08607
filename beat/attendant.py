"""The attendant: sees to the slots, that is to ticks which wait for an earlier run to end.

Runs that have ended are closed, ticks that waited take their turn, and a run whose place a newer tick is to have is
taken out of its queue or stopped in its worker. Whoever dies meanwhile, the next beat that looks goes on: all that has
to be known stands in Redis, and `fire` lets each tick in once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat import jobs, policies, verdicts
from beat.event import Event
from beat.health import Once
from beat.protocol import Claim
from beat.slots import Slots

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beat.book import Book
    from beat.event import Emit
    from beat.protocol import Item, Reply, Slot
    from beat.schedule import Schedule
    from beat.store import Store
    from beat.watcher import Watcher

INTERVAL_MS = 900
"""How soon a slot is looked at again, if nothing happens meanwhile."""
_PAGE = 50


class Attendant:
    """One thread's care for the slots."""

    def __init__(self, store: Store, book: Book, watcher: Watcher, *, token: str, emit: Emit) -> None:
        self._store, self._slots, self._book, self._watcher = store, Slots(store), book, watcher
        self._token, self._emit, self._once = token, emit, Once(emit)

    def clear(self, ended: int) -> None:
        """Closes so many runs that have ended, and lets in who waits for them: those come first."""
        self._watcher.look(ended)
        self.turn(1)

    def turn(self, most: int = 10) -> None:
        """Sees to the slots that are due to be looked at, so many pages of them: the others wait for the next turn."""
        for _ in range(most):
            slots = self._slots.attend(limit=_PAGE, interval=INTERVAL_MS)
            if not slots:
                return
            self._watcher.look(sum(slot.ended for slot in slots))
            pages = self._book.find([Claim(slot.id, slot.rev, "", 0, "") for slot in slots])
            items: list[Item] = []
            for slot, page in zip(slots, pages, strict=True):
                if page.schedule is None:
                    self._once.say(slot.id, Event("broken", slot.id, {"code": "BADSTATE", "error": page.problem}))
                else:
                    items += self._admitted(slot, page.rev, page.schedule)
            if items:
                self._tell(items, self._store.fire(items, token=self._token).replies)

    def _admitted(self, slot: Slot, rev: str, schedule: Schedule) -> Iterable[Item]:
        """Those who may come in; `fire` has the last word about the room."""
        room, lives = policies.slot(schedule), slot.state in {"active", "finished"}
        free = room.running - len(slot.running) + slot.ended if room and lives else len(slot.waiting)
        if room and room.overlap == "replace" and lives:
            self._slots.withdraw(slot.running)
        for words in (waiting.split(" ") for waiting in slot.waiting[: max(0, free)]):
            _, tick, by = words
            yield verdicts.admitted(rev, schedule, tick, by, self._store.keys)

    def _tell(self, items: Iterable[Item], replies: Iterable[Reply]) -> None:
        for item, reply in zip(items, replies, strict=True):
            if reply.code == "OK":
                self._once.forget(item.id)
                queue = jobs.queue_name(item.queue)
                self._emit(Event("admitted", item.id, {"tick": item.tick, "job_id": item.job, "queue": queue}))
            elif reply.code == "SKIPPED":
                fields = {"tick": item.tick, "count": 1, "reason": reply.words, "next_run": ""}
                self._emit(Event("skipped", item.id, fields))
            elif reply.code in {"BADTYPE", "BADSTATE", "BADARG"}:
                self._once.say(item.id, Event("broken", item.id, {"code": reply.code, "error": reply.words}))
