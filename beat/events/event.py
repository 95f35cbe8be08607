"""Define what a reader of the event stream yields: an event, or that some events were missed.

Any client can write to Redis. So entries that are not events are skipped, and types and fields of a newer version of
beat are passed on.
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
"""The fields of a decision's event that are only in its ledger line, with their names there."""


@dataclass(frozen=True)
class Notice:
    """An event of a schedule: a decision, an outcome or a change."""

    id: str
    """The id in the event stream; later events have larger ids."""
    type: str
    """enqueued, skipped, succeeded, failed …; a newer version of beat may have others."""
    schedule_id: str
    tick: datetime | None
    """None if the event is not about a tick, or about a manual run."""
    job_id: str | None
    by: str
    """The scheduler or the operator that caused the event."""
    at: datetime
    """The time of the event, by Redis' clock."""
    entry: Mapping[str, Any]
    """The whole ledger line; empty if it cannot be read."""
    more: Mapping[str, str] = field(default_factory=dict)
    """The fields that this version of beat does not know."""

    @classmethod
    def read(cls, event_id: str, fields: Mapping[bytes, bytes]) -> Notice | None:
        """Parse an entry of the stream; return None if it is not an event. Never raises."""
        words = {_text(name): _text(value) for name, value in fields.items()}
        try:
            at = clock.from_ms(int(event_id.partition("-")[0]))
        except (ValueError, OverflowError):  # outside the calendar
            return None
        if not words.get("type"):
            return None
        entry = _object(words.get("entry", ""))
        if "tick" not in words:  # the event of a decision has the rest in its ledger line
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
        """Return the event as a dict for `json.dumps`, with times as text."""
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
    """Events that were trimmed or deleted before they could be read."""

    count: int | None
    """How many; None if that is unknown, and then perhaps none were missed."""
    after: str
    """The id of the last event that was read or delivered."""
    before: str
    """The id of the next event that is still there; empty if none is."""

    type: ClassVar[str] = "missed"

    def plain(self) -> dict[str, Any]:
        """Return the same as a dict for `json.dumps`."""
        return {"type": self.type, "count": self.count, "after": self.after, "before": self.before}


def _object(written: str) -> dict[str, Any]:
    """Parse a JSON object; return an empty dict if it is invalid, or cannot be written again as with NaN."""
    try:
        found = json.loads(written)
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
