"""Turn the replies of Redis into events, and find the chains that must be sent again."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from beat.engine import fire_items
from beat.engine.events import Event
from beat.engine.health import Once
from beat.engine.obstacles import REJECTIONS, Obstacles, rejection
from beat.jobs import job_template
from beat.storage.backoff import cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beat.engine.events import Emit
    from beat.engine.fire_items import Chain
    from beat.storage.messages import Claimed, Item, Reply

FRESH_S = 60
UNREAD_S = 60
"""How long this scheduler skips a schedule that it cannot read and another scheduler can."""
_DECIDED = {"OK", "WAITS", "SKIPPED"}
LONGEST_WAIT_MS = 3_000
"""The longest wait for an early tick; one that is earlier is released."""


def misplaced(reply: Reply) -> Event:
    """Return the event for a shared key that has a wrong type or a newer format."""
    if reply.code == "NEWER":
        words = f"the keys in Redis have format {reply.words}, which this beat does not understand: upgrade it"
        return Event("misplaced", fields={"error": words})
    return Event("misplaced", fields={"error": f"{reply.words}: rename it, or delete it"})


class Replies:
    """The replies to one ticker. The last error of each schedule is logged once and stored with its next fire."""

    def __init__(self, emit: Emit, obstacles: Obstacles | None = None) -> None:
        self._emit = emit
        self.obstacles = obstacles or Obstacles(emit)
        self._errors: dict[str, tuple[str, float]] = {}
        self._troubles = Once(emit)
        self._unread: dict[str, float] = {}

    def unread(self) -> list[str]:
        """Return the schedules that another scheduler can read and this one could not, within the last `UNREAD_S`."""
        now = time.monotonic()
        self._unread = {each: since for each, since in self._unread.items() if now - since < UNREAD_S}
        return list(self._unread)

    def stamped(self, item: Item) -> Item:
        """Return the item with the error of earlier attempts, if that is recent."""
        if item.id not in self._errors or item.kind != "fire":
            return item
        error, at = self._errors[item.id]
        fresh = time.monotonic() - at < FRESH_S  # an older error is about a tick that another scheduler has fired
        return item._replace(error=error) if fresh else item

    def refused(self, schedules: Iterable[tuple[str, str]], error: BaseException) -> None:
        """Log that Redis did not enqueue the due ticks of these schedules (id, function), or did not confirm it."""
        for schedule_id, func in schedules:
            before = self._errors.get(schedule_id)
            if not before or time.monotonic() - before[1] >= FRESH_S:  # another scheduler saw the older error end
                fields = {"func": func, "job_name": func, "error": cause(error)}
                self._emit(Event("enqueue_failed", schedule_id, fields))
            self._errors[schedule_id] = cause(error), time.monotonic()

    def trouble(self, schedule_id: str, reply: Reply, now: int) -> None:
        """Emit the event for a schedule that cannot fire now; without an id, none can."""
        if not schedule_id:
            self._troubles.say("", Event("holding") if reply.code == "HOLD" else misplaced(reply))
            return
        if reply.code in REJECTIONS:
            self.obstacles.rejected(rejection(schedule_id, reply), now)
            return
        if reply.code == "OTHERS":
            self._unread[schedule_id] = time.monotonic()
        names = {"LOCKED": "locked", "FENCED": "fenced", "GONE": "gone", "OTHERS": "unread"}
        name = names.get(reply.code, "passed_on")
        self._emit(Event(name, schedule_id, {"code": reply.code, "words": reply.words}))

    def well(self) -> None:
        """Take note that the shared keys are sound, so that the next problem is logged again."""
        self._troubles.forget("")

    def met(self, claimed: Claimed) -> float:
        """Process the schedules that `claim` met but did not claim.

        Returns when the first of their locks expires, in ms by Redis' clock; infinity if none is locked.
        """
        if claimed.code == "OK":
            self.well()
        freed = math.inf
        for schedule_id, reply in claimed.troubles:
            self.trouble(schedule_id, reply, claimed.now)
            if reply.code == "LOCKED":
                freed = min(freed, claimed.now + int(reply.words) + 1)
        return freed

    def settle(self, chain: Chain, replies: Sequence[Reply], now: int) -> Chain | None:
        """Process the replies to a chain, and return what must be sent again; None if nothing must."""
        again = self._settle(chain, replies, now)
        if not any(reply.code in REJECTIONS for reply in replies):
            decided = [n for n, reply in enumerate(replies) if reply.code in _DECIDED or _happened(chain, n, reply)]
            if dues := [chain.items[n].due for n in decided if chain.items[n].kind == "fire"]:
                self.obstacles.accepted(chain.id, dues)
        return again

    def _settle(self, chain: Chain, replies: Sequence[Reply], now: int) -> Chain | None:
        for n, (item, reply) in enumerate(zip(chain.items, replies, strict=True)):
            if reply.code == "EARLY":
                wait = int(reply.words)
                if wait > LONGEST_WAIT_MS:
                    return fire_items.released(chain.id)
                return chain._replace(items=chain.items[n:], due=now + wait)
            if reply.code == "ENDED":
                cleared = item._replace(slot=_cleared(item.slot), group=_cleared(item.group))
                return chain._replace(items=(cleared, *chain.items[n + 1 :]), due=now)
            if reply.code == "OK" or _happened(chain, n, reply):
                self._decided(item, chain, now)
            elif reply.code in {"WAITS", "SKIPPED"}:
                self._no_room(item, reply)
            elif reply.code in REJECTIONS:
                event = rejection(chain.id, reply, chain.func, item if item.kind == "fire" else None)
                self.obstacles.rejected(event, now)
            else:
                self.trouble(chain.id, reply._replace(words=item.error) if reply.code == "OTHERS" else reply, now)
        return None

    def _no_room(self, item: Item, reply: Reply) -> None:
        self._errors.pop(item.id, None)
        if reply.code == "WAITS":
            self._emit(Event("waiting", item.id, {"tick": item.tick, "behind": reply.words}))
        else:
            fields = {"tick": item.tick, "count": 1, "reason": reply.words, "next_run": item.next, "why": item.why}
            self._emit(Event("skipped", item.id, fields))

    def _decided(self, item: Item, chain: Chain, now: int) -> None:
        self._errors.pop(item.id, None)
        if item.kind == "quarantine":
            self._emit(Event("broken", item.id, {"code": "BADSTATE", "error": item.error}))
            return
        if item.kind == "fire":
            fields: dict[str, Any] = {
                "tick": item.tick,
                "job_id": item.job,
                "job_name": chain.func,
                "priority": chain.priority,
                "late_ms": now - item.due,
                "queue": ", ".join(queues := job_template.queue_names(item.queue)),
                "queues": queues,
                "next_run": item.next,
            }
            self._emit(Event("fired", item.id, fields))
        elif item.kind == "resume":
            self._emit(Event("resumed", item.id, {"tick": item.tick, "count": item.number, "next_run": item.next}))
        elif item.kind == "skip":
            fields = {
                "tick": item.tick,
                "count": item.number,
                "reason": item.reason,
                "next_run": item.next,
                "why": item.why,
            }
            self._emit(Event("skipped", item.id, fields))


def _happened(chain: Chain, n: int, reply: Reply) -> bool:
    """Return whether an item had been carried out already and only the reply was lost."""
    return reply.code == "STALE" and reply.words in {item.job for item in chain.items[n:]} - {""}


def _cleared(room: str) -> str:
    return f"{room} cleared" if room else ""
