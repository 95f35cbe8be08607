"""What a monitor is told of one run: that it has started, ended well, or failed."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beat.events import Notice
    from beat.schedule.schedule import Schedule

BEGINS = {"enqueued", "reopened"}
"""The events after which a run may start."""
ENDS = {"succeeded": "ok", "failed": "fail", "lost": "fail", "stopped": "fail"}
"""The events with which it ends, and what a monitor is told then."""
CODE = "code"
"""The source of a schedule that an application declares."""
_NAMESPACE = uuid.UUID("c2b7a6de-6c0c-5d8b-9d0b-6f0a5b7c9e31")
_LONGEST = 5000


class Ping(NamedTuple):
    """One message about one run."""

    kind: str
    """`start`, `ok` or `fail`."""
    schedule: Schedule
    """With its monitor."""
    job_id: str
    settles: tuple[str, ...]
    """The events that need not be handed out again when it was sent."""
    seconds: float | None = None
    """How long the run took."""
    words: str = ""
    source: str = CODE
    """Where the schedule comes from, as its hash says."""

    @property
    def run_id(self) -> uuid.UUID:
        """The same whoever sends it, and however often."""
        return uuid.uuid5(_NAMESPACE, self.job_id)


class Request(NamedTuple):
    """A message as it is posted."""

    service: str
    """The host, and its port if it names one: what can be said aloud."""
    url: str
    headers: Mapping[str, str]
    body: bytes
    refusal: Callable[[bytes], str] | None = None
    """Finds in the body of a good answer why the message was not taken all the same; nothing if it was."""


def ended(notice: Notice, schedule: Schedule, source: str = CODE) -> Ping:
    """Return the message about a run that has ended."""
    entry = notice.entry
    seconds = entry.get("duration")
    found = seconds if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0 else None
    kind = ENDS[notice.type]
    words = f"{notice.type}: {_error(entry)}" if kind == "fail" else notice.type
    return Ping(kind, schedule, str(notice.job_id), (notice.id,), found, words[:_LONGEST], source)


def _error(entry: Mapping[str, Any]) -> str:
    """What went wrong, in the words of the ledger, without the traceback."""
    error = entry.get("error")
    if isinstance(error, dict):
        return ": ".join(str(error[name]) for name in ("type", "message") if error.get(name))
    return str(entry.get("message") or entry.get("reason") or "no reason is known")
