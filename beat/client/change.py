"""Share what all changes need: the operator's name, the expected version, retries, and errors for refused changes."""

from __future__ import annotations

import copy
import getpass
import socket
from typing import TYPE_CHECKING, Any, Self

from beat.client.queries import Questions
from beat.errors import BadInstant, BadOption, Conflict, Refused
from beat.storage.operations import Operations

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.schedule.schedule import Schedule
    from beat.storage.connection import Redis
    from beat.storage.messages import Reply

LONGEST = 500
_TRIES = 10
WAIT_OR_FORCE = "wait for that run to end, or run it anyway with --force (`force` in Python and the API)"
MEANWHILE = {"RETRY", "CHANGED", "STALE"}
"""Replies that mean another client was faster, so the schedule is read again and the change is retried."""


class Changing(Questions):
    """A client that makes changes; `by` names the operator."""

    def __init__(self, redis: Redis | str | None = None, *, by: str | None = None, **options: Any) -> None:
        super().__init__(redis, **options)
        self.by = one_line(by, "by") or _somebody()
        self._operations = Operations(self._store)

    def named(self, by: str) -> Self:
        """Return a copy of this client whose changes name another operator."""
        other = copy.copy(self)
        other.by = one_line(by, "by")
        return other

    def _until_it_stands(
        self, schedule_id: str, version: int | None, step: Callable[[Standing, datetime], Reply]
    ) -> Standing:
        """Apply a change as `_settle` does, and return the schedule as it is afterwards."""
        self._settle(schedule_id, version, step)
        return self.get(schedule_id)

    def _settle(self, schedule_id: str, version: int | None, step: Callable[[Standing, datetime], Reply]) -> None:
        """Apply a change, and retry it while other clients are faster; raise if it is refused.

        Raise Conflict if `version` is given and the schedule has another one.
        """
        with self._asking():
            for _ in range(_TRIES):
                found = self.get(schedule_id)
                if version is not None and version != found.version:
                    raise Conflict(_conflict(schedule_id, str(found.version)))
                reply = step(found, self._store.time())
                conflict = reply.code == "CONFLICT" and version is None
                if reply.code not in MEANWHILE and not conflict:
                    break
            self._refuse(schedule_id, reply)

    def _refuse(self, schedule_id: str, reply: Reply) -> None:
        """Raise the error for a reply that refuses the change; do nothing if the change was made."""
        if reply.code in {"OK", "SAME", "NEW", "UPDATED", "MOVED"}:
            return
        if reply.code == "GONE":
            raise self._unknown(schedule_id)
        if reply.code == "CONFLICT":
            raise Conflict(_conflict(schedule_id, reply.words))
        if reply.code == "PAST":
            raise BadInstant(f"that time is past: by Redis' clock it is {reply.words}")
        words = _REFUSALS.get(reply.code, "{id} was not changed: {code} {words}")
        raise Refused(words.format(id=schedule_id, code=reply.code, words=reply.words or "broken").rstrip())


_REFUSALS = {
    "INACTIVE": "{id} is {words}: nothing was changed",
    "FULL": f"{{id}} may not overlap, and {{words}} has not ended: {WAIT_OR_FORCE}",
    "DECLARED": "{id} is declared by a live beat, and would come back at once: take it out of the code, or pause it",
    "TAKEN": "{id} is a schedule that comes from {words}: change it there, or give this one another id",
    "HIDDEN": (
        "no application exposes {words}: decorate the function with @schedulable (or @periodic), and start a beat that "
        "imports it"
    ),
}


def definition_of(found: Standing) -> Schedule:
    """Return the schedule in force; raise Refused if its definition cannot be read."""
    if found.policies is None:
        raise Refused(f"the definition of {found.schedule_id} cannot be read: see `beat show {found.schedule_id}`")
    return found.policies


def timed(found: Standing) -> Schedule:
    """Return the schedule in force; raise Refused if it follows another one and has no times of its own."""
    schedule = definition_of(found)
    if schedule.follows:
        raise Refused(f"{found.schedule_id} follows {schedule.follows}: it has no times of its own")
    return schedule


def one_line(text: str | None, name: str) -> str:
    """Return the text, stripped; raise BadOption unless it is one line of at most LONGEST characters."""
    told = (text or "").strip()
    if not told.isprintable() or len(told) > LONGEST:
        raise BadOption(f"{name} must be one line of at most {LONGEST} characters")
    return told


def _conflict(schedule_id: str, version: str) -> str:
    return f"{schedule_id} has version {version or 0} by now: another client has changed it; look again, then try again"


def _somebody() -> str:
    """Return the user and the host of this process."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # the user id has no name
        user = "somebody"
    return one_line(f"{user}@{socket.gethostname()}"[:LONGEST], "by")
