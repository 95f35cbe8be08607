"""Define the pings that monitors receive: a run started, succeeded or failed."""

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
"""The events that end a run, and the kind of ping that follows each."""
CODE = "code"
"""The source of a schedule that an application declares."""
_NAMESPACE = uuid.UUID("c2b7a6de-6c0c-5d8b-9d0b-6f0a5b7c9e31")
_LONGEST = 5000


class Ping(NamedTuple):
    """One message about one run."""

    kind: str
    """`start`, `ok` or `fail`."""
    schedule: Schedule
    """The schedule of the run, which has a monitor."""
    job_id: str
    settles: tuple[str, ...]
    """The ids of the events to acknowledge when the ping is done."""
    seconds: float | None = None
    """How long the run took."""
    words: str = ""
    source: str = CODE
    """The source of the schedule, as its hash in Redis says."""

    @property
    def run_id(self) -> uuid.UUID:
        """Return the id of the run, which is the same for every ping and every scheduler."""
        return uuid.uuid5(_NAMESPACE, self.job_id)


class Request(NamedTuple):
    """An HTTP request that carries a ping."""

    service: str
    """The host, with its port if the URL names one; safe to log."""
    url: str
    headers: Mapping[str, str]
    body: bytes
    refusal: Callable[[bytes], str] | None = None
    """A function that finds, in the body of a 2xx response, why the ping was rejected; empty if it was accepted."""


def ended(notice: Notice, schedule: Schedule, source: str = CODE) -> Ping:
    """Return the ping for a run that has ended."""
    entry = notice.entry
    seconds = entry.get("duration")
    found = seconds if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0 else None
    kind = ENDS[notice.type]
    words = f"{notice.type}: {_error(entry)}" if kind == "fail" else notice.type
    return Ping(kind, schedule, str(notice.job_id), (notice.id,), found, words[:_LONGEST], source)


def _error(entry: Mapping[str, Any]) -> str:
    """Return the error of a run in the words of the ledger, without the traceback."""
    error = entry.get("error")
    if isinstance(error, dict):
        return ": ".join(str(error[name]) for name in ("type", "message") if error.get(name))
    return str(entry.get("message") or entry.get("reason") or "no reason is known")
