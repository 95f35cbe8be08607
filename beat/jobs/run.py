"""Describe a run in the meta of its job: the schedule, the tick, and what triggered it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beat.errors import BadInstant
from beat.timing import clock

if TYPE_CHECKING:
    from datetime import datetime

META_KEY = "beat"
"""The key of a job's meta that holds its run."""
_USUAL, _NO_TICK = "scheduler", "-"
CONTEXT_KEYS = ("traceparent", "tracestate")
"""The keys of a job's meta that hold its trace context, named as by the W3C."""


@dataclass(frozen=True)
class Run:
    """The run that a job performs, as `get_current_run` returns it."""

    schedule_id: str
    scheduled_for: datetime | None
    """The tick in UTC; None for a manual run."""
    triggered_by: str
    shard: int = 0
    """The number of this job among those of a broadcast tick, from 0."""
    shards: int = 1
    """How many jobs the tick became."""
    after: str | None = None
    """The id of the job whose success this run follows."""

    def __post_init__(self) -> None:
        if self.scheduled_for is not None:
            object.__setattr__(self, "scheduled_for", clock.utc(self.scheduled_for, "scheduled_for"))

    def plain(self) -> str | dict[str, str | int | None]:
        """Return the run as the job's meta keeps it, usually one line such as `report 2026-11-16T09:00:00Z`.

        A short line keeps the job's hash compact: Redis uses a listpack while no value exceeds 64 bytes.
        """
        tick = None if self.scheduled_for is None else clock.text(self.scheduled_for)
        if self.shards == 1 and not self.after:
            by = "" if self.triggered_by == _USUAL else f" {self.triggered_by}"
            return f"{self.schedule_id} {tick or _NO_TICK}{by}"
        part = {"shard": self.shard, "shards": self.shards} if self.shards > 1 else {}
        return {
            "schedule_id": self.schedule_id,
            "scheduled_for": tick,
            "triggered_by": self.triggered_by,
            **part,
            **({"after": self.after} if self.after else {}),
        }

    @classmethod
    def read(cls, plain: object) -> Run | None:
        """Parse what `plain` wrote, and ignore additions by newer versions; return None for anything else."""
        if isinstance(plain, str):
            plain = _words(plain)
        match plain:
            case {"schedule_id": str(schedule_id), "scheduled_for": tick, "triggered_by": str(triggered_by)}:
                try:
                    return cls(schedule_id, None if tick is None else clock.read(tick), triggered_by, **_others(plain))
                except BadInstant:
                    return None
        return None


def _words(line: str) -> dict[str, str | None]:
    """Return the fields of a line; the text behind the tick is `triggered_by`, by default the scheduler."""
    schedule_id, _, rest = line.partition(" ")
    tick, _, by = rest.partition(" ")
    return {
        "schedule_id": schedule_id,
        "scheduled_for": None if tick == _NO_TICK else tick,
        "triggered_by": by or _USUAL,
    }


def _others(plain: Any) -> dict[str, Any]:
    """Return the optional fields that have valid types."""
    shard, shards, after = plain.get("shard"), plain.get("shards"), plain.get("after")
    part = {"shard": shard, "shards": shards} if type(shard) is type(shards) is int else {}
    return {**part, **({"after": after} if isinstance(after, str) else {})}
