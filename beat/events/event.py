"""What a reader of the outbox is told: a notice of something that happened, or that some were missed.

Anybody can write to Redis: what is no notice of ours is passed over, and what is newer than this beat is passed on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_KNOWN = ("type", "schedule", "tick", "job", "by", "entry")
_SAID = {"tick": "tick", "job": "job", "by": "beat"}
"""What the line of a verdict says by which name."""


@dataclass(frozen=True)
class Notice:
    """One thing that happened to a schedule."""

    id: str
    """Its place in the outbox; a later one is larger."""
    type: str
    """enqueued, skipped, succeeded, failed …; a newer beat may have others."""
    schedule_id: str
    tick: datetime | None
    """None if it is about no tick, or about a run that somebody asked for."""
    job_id: str | None
    by: str
    """Which beat, or which person."""
    at: datetime
    """When, by Redis' clock."""
    entry: Mapping[str, Any]
    """The line of the ledger, all of it; empty if it cannot be read."""
    more: Mapping[str, str] = field(default_factory=dict)
    """The fields that this beat does not know."""

    @classmethod
    def read(cls, event_id: str, fields: Mapping[bytes, bytes]) -> Notice | None:
        """The notice of an entry of the stream; None for what is none. Never raises."""
        words = {_text(name): _text(value) for name, value in fields.items()}
        try:
            at = clock.from_ms(int(event_id.partition("-")[0]))
        except (ValueError, OverflowError):  # not in our calendar
            return None
        if not words.get("type"):
            return None
        entry = _object(words.get("entry", ""))
        if "tick" not in words:  # of a verdict, its line says the rest
            words |= {name: told for name, word in _SAID.items() if isinstance(told := entry.get(word), str)}
        return cls(
            id=event_id,
            type=words["type"],
            schedule_id=words.get("schedule", ""),
            tick=clock.found(words.get("tick", "")),
            job_id=words.get("job") or None,
            by=words.get("by", ""),
            at=at,
            entry=entry,
            more={name: value for name, value in words.items() if name not in _KNOWN},
        )

    def plain(self) -> dict[str, Any]:
        """The same for `json.dumps`, with times as text."""
        return {
            **self.more,
            "id": self.id,
            "type": self.type,
            "schedule": self.schedule_id,
            "tick": None if self.tick is None else clock.text(self.tick),
            "job": self.job_id,
            "by": self.by,
            "at": clock.text(self.at),
            "entry": dict(self.entry),
        }


@dataclass(frozen=True)
class Missed:
    """Events that were trimmed, or deleted, before they could be read."""

    count: int | None
    """How many; None if nobody knows, and perhaps it is none."""
    after: str
    """The last one that was read, or at least handed out."""
    before: str
    """The next one that is still there; nothing if none is."""

    type: ClassVar[str] = "missed"

    def plain(self) -> dict[str, Any]:
        """The same for `json.dumps`."""
        return {"type": self.type, "count": self.count, "after": self.after, "before": self.before}


def _object(written: str) -> dict[str, Any]:
    """An object of JSON that can be written again: no NaN, no infinity, no depth without end."""
    try:
        found = json.loads(written)
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
