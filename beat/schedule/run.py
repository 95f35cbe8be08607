"""A run: which schedule it belongs to, which tick, and who asked for it. Told to the job in its meta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beat.errors import BadInstant
from beat.timing import clock

if TYPE_CHECKING:
    from datetime import datetime

META_KEY = "beat"
"""Where a job's meta says which run it is."""
_USUAL, _NO_TICK = "scheduler", "-"
CONTEXT_KEYS = ("traceparent", "tracestate")
"""Where a job's meta says to which trace it belongs, by the names of the W3C."""


@dataclass(frozen=True)
class Run:
    """The run that a job is, as the job itself can ask for it."""

    schedule_id: str
    scheduled_for: datetime | None
    """The tick, in UTC; None when somebody asked for the run."""
    triggered_by: str
    shard: int = 0
    """Which part of the work it does, where a tick was broadcast: from 0 on."""
    shards: int = 1
    """How many parts there are."""
    after: str | None = None
    """The job whose success it follows."""

    def __post_init__(self) -> None:
        if self.scheduled_for is not None:
            object.__setattr__(self, "scheduled_for", clock.utc(self.scheduled_for, "scheduled_for"))

    def plain(self) -> str | dict[str, str | int | None]:
        """As the job's meta keeps it: nearly always a line, `report 2026-11-16T09:00:00Z`.

        Redis keeps a hash in one small block as long as none of its values has more than 64 bytes.
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
        """The run that `plain()` wrote, whatever a newer beat has added to it; None for anything else."""
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
    """What the words of a line are; who triggered the run is the rest, if it was not the scheduler."""
    schedule_id, _, rest = line.partition(" ")
    tick, _, by = rest.partition(" ")
    return {
        "schedule_id": schedule_id,
        "scheduled_for": None if tick == _NO_TICK else tick,
        "triggered_by": by or _USUAL,
    }


def _others(plain: Any) -> dict[str, Any]:
    """What not every run has, as far as it makes sense."""
    shard, shards, after = plain.get("shard"), plain.get("shards"), plain.get("after")
    part = {"shard": shard, "shards": shards} if type(shard) is type(shards) is int else {}
    return {**part, **({"after": after} if isinstance(after, str) else {})}
