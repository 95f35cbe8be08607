"""Log each obstacle that makes Redis reject a schedule: once when it begins, and once when it ends.

Examples are a key of the wrong type, a missing right, and a group without a limit. Every scheduler retries the ticks,
and each logs the obstacles that it has met itself.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beat.engine.events import Event
from beat.jobs import job_template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.engine.events import Emit
    from beat.storage.messages import Item, Reply

REJECTIONS = {"BADTYPE", "BADSTATE", "BADARG"}
"""The codes with which the scripts reject a schedule or a tick."""
FORGOTTEN_S = 3600
"""An obstacle not met for this long is logged again, because another scheduler may have seen it end."""
_NO_RIGHT = "Redis does not let"
_RETRIED_S = 60
"""How long after its last rejection an obstacle counts as being retried."""


@dataclass
class _Obstacle:
    event: Event
    began: float
    """When this scheduler first met it, by the monotonic clock."""
    met: float
    rejected_ms: int
    """When Redis last rejected the schedule, by Redis' clock."""


class Obstacles:
    """The obstacles of one scheduler, shared by its threads."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._met: dict[str, _Obstacle] = {}

    def rejected(self, event: Event, now_ms: int) -> None:
        """Remember that Redis rejected a schedule at `now_ms` of its clock; emit the event unless it is known."""
        now = time.monotonic()
        with self._lock:
            known = self._met.get(event.schedule_id)
            if known and now - known.met >= FORGOTTEN_S:
                known = None
            began = known.began if known else now
            self._met[event.schedule_id] = _Obstacle(event, began, now, now_ms)
        if not known or known.event != event:
            self._emit(event)

    def accepted(self, schedule_id: str, dues: Sequence[int]) -> None:
        """Emit `recovered` if the schedule had an obstacle; `dues` are the due times in ms of its decided ticks."""
        with self._lock:
            known = self._met.pop(schedule_id, None)
        if not known:
            return
        late = sum(due <= known.rejected_ms for due in dues)
        fields = {
            "seconds": round(time.monotonic() - known.began, 1),
            "count": late,
            "why": "" if late else "another scheduler decided the late ones",
        }
        self._emit(Event("recovered", schedule_id, fields))

    def retries(self) -> bool:
        """Return whether a rejected schedule is being retried."""
        since = time.monotonic() - _RETRIED_S
        with self._lock:
            return any(obstacle.met >= since for obstacle in self._met.values())


def rejection(schedule_id: str, reply: Reply, func: str = "", item: Item | None = None) -> Event:
    """Return the event of a rejection; its error says what to do about it."""
    words = reply.words
    if item and item.job and words.startswith(_NO_RIGHT):
        words = words.replace(item.job, "*")  # the user lacks the right to all jobs, which is one obstacle
    error = "; ".join(filter(None, (words or reply.code, _remedy(words))))
    if reply.code == "BADTYPE" and item and any(key in reply.words for key in _keys_of_rq(item)):
        return Event("enqueue_failed", schedule_id, {"func": func, "job_name": func, "error": error})
    return Event("broken", schedule_id, {"code": reply.code, "error": error})


def _keys_of_rq(item: Item) -> Sequence[str]:
    return (*item.queue.split("\n"), item.job, job_template.QUEUES_KEY)


def _remedy(words: str) -> str:
    if words.startswith(_NO_RIGHT):
        return "grant that right: `beat doctor --acl` prints the rule"
    if " is a " in words:
        return "rename that key, or delete it"
    if not words or ": HSET " in words:  # the words contain the remedy
        return ""
    if words.endswith(" is missing"):
        return "restart a scheduler that declares the schedule, or write the field again"
    return "write a sound value; `beat doctor` checks all of them"
