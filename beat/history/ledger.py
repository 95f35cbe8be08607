"""Parse and write ledger lines: decisions on ticks, outcomes of runs, changes of definitions, actions of operators.

Any client can write to the Redis list, so a line that does not parse is ignored and never raises.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from beat.history.ledger_fields import FLAG, GARBLED, INSTANT, JSON, MAPPING, MAYBE, SECONDS, WHOLE, WORD, Value, either

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

OUTCOMES = ("succeeded", "failed", "stopped", "lost")
CHANGES = ("registered", "updated", "moved", "rescheduled", "reset")
"""Kinds of changes: the code causes the first three, an operator the others."""
ASKED = ("manual", "backfill")
"""Triggers of runs that a person requested; such a run is never late."""
ACTIONS = ("paused", "resumed", "deferred", "retired")
LONGEST_TRACEBACK = 2_000
"""How many characters of a traceback the ledger keeps."""
_BLANK = " \t\r\n"  # JSON's whitespace; a line restored by hand may end with it


@dataclass(frozen=True)
class Enqueued:
    """A decision: the tick became a job. A manual run has no tick."""

    tick: datetime | None
    job: str
    by: str
    """The trigger: scheduler, catchup, follows, manual or backfill."""
    late_ms: int
    number: int
    """The schedule's run_count from then on."""
    at: datetime
    beat: str
    queue: str = ""
    """The queue, if the schedule chooses among several."""
    why: str = ""
    """Why this queue was chosen, in words."""
    shards: int = 0
    """The number of parts of a broadcast; `job` is then the id of the tick, and each part has its own."""
    after: str = ""
    """The job whose success this tick follows."""


@dataclass(frozen=True)
class Skipped:
    """A decision: a range of ticks was skipped."""

    tick: datetime
    """The first tick of the range."""
    last: datetime
    count: int
    reason: str
    number: int
    """The schedule's skip_count from then on."""
    at: datetime
    beat: str
    behind: str = ""
    """The job that blocked the ticks."""
    why: str = ""
    """What was missing, in words."""
    after: str = ""
    """The job whose success the tick would have followed."""


@dataclass(frozen=True)
class Waiting:
    """Not yet a decision: the tick waits for a slot, and a later entry decides it."""

    tick: datetime
    job: str
    """The id that its job will have."""
    behind: str
    """The newest job that occupies a slot; empty if other ticks are ahead on the waiting list."""
    at: datetime
    beat: str
    group: str = ""
    """The group whose capacity is used up; empty if it is the schedule's own capacity."""


@dataclass(frozen=True)
class Error:
    """The exception that a run failed with."""

    type: str
    message: str
    traceback: str


@dataclass(frozen=True)
class Outcome:
    """How a run ended; `type` is one of OUTCOMES."""

    type: str
    tick: datetime | None
    job: str
    started: datetime | None
    ended: datetime | None
    duration: float | None
    """In seconds."""
    worker: str | None
    attempts: int
    at: datetime
    """When a scheduler recorded the outcome."""
    beat: str
    error: Error | None = None
    reason: str = ""
    """Why the run was stopped or counts as lost, in words."""
    reported: bool = False
    """Whether the run failed by its own report, without an exception."""
    message: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    of: str = ""
    """For a part of a broadcast, the job id of the tick."""
    shard: int = 0
    """The number of the part, from 0."""


@dataclass(frozen=True)
class Reopened:
    """A run that had ended was started again."""

    tick: datetime | None
    job: str
    was: str
    """The outcome that no longer counts."""
    attempts: int
    at: datetime
    beat: str
    of: str = ""
    shard: int = 0


@dataclass(frozen=True)
class Changed:
    """A definition was registered or replaced; `type` is one of CHANGES."""

    type: str
    rev: str
    rule: Mapping[str, Any]
    """What determines the ticks from then on, as `serialize.ticks` writes it."""
    was: Mapping[str, Any] | None
    before: datetime | None
    """The next tick before the change; its key in the line is `from`."""
    next: datetime | None
    at: datetime
    beat: str


@dataclass(frozen=True)
class Acted:
    """An action that leaves the rule of the schedule unchanged; `type` is one of ACTIONS."""

    type: str
    at: datetime
    beat: str
    """The operator, or the scheduler if a pause expired or the code is gone."""
    reason: str = ""
    """The operator's reason."""
    until: datetime | None = None
    """The end of a pause, if it has one; for a deferred tick, its new due time."""
    tick: datetime | None = None
    """The next tick before the action."""


Entry = Enqueued | Skipped | Waiting | Outcome | Reopened | Changed | Acted


def read(line: bytes) -> Entry | None:
    """Return the entry that the line holds, or None if it is not a valid ledger line."""
    try:
        found, end = JSON.raw_decode(text := line.decode(errors="replace").strip(_BLANK))
        kind = _KINDS[found["type"] if end == len(text) else ""]
        named: dict[str, Any] = {
            name: own if type(own) is value.plain else value.read(own)
            for name, key, value, needed in _SHAPES[kind]
            if (own := found.get(key)) is not None or (needed and key in found)
        }
        return kind(**named)
    except (ValueError, TypeError, KeyError, RecursionError):  # not text, not JSON, not an object, or incomplete
        return None


def plain(entry: Entry) -> dict[str, Any]:
    """Return the JSON object of the entry's line, without optional fields that are empty."""
    written = {"type": _NAMES.get(type(entry), "")}
    for name, key, value, needed in _SHAPES[type(entry)]:
        own = getattr(entry, name)
        if needed or own:
            written[key] = value.write(own)
    return written


_ERROR = Value(lambda found: Error(*(WORD.read(found[name]) for name in ("type", "message", "traceback"))), asdict)
_VALUES: Mapping[type[Entry], Mapping[str, Value]] = {
    Enqueued: {
        "tick": MAYBE, "job": WORD, "by": WORD, "after": WORD, "shards": WHOLE, "queue": WORD, "why": WORD,
        "late_ms": WHOLE, "number": WHOLE, "at": INSTANT, "beat": WORD,
    },
    Skipped: {
        "tick": INSTANT, "last": INSTANT, "count": WHOLE, "reason": WORD, "behind": WORD, "why": WORD,
        "after": WORD, "number": WHOLE, "at": INSTANT, "beat": WORD,
    },
    Waiting: {"tick": INSTANT, "job": WORD, "behind": WORD, "group": WORD, "at": INSTANT, "beat": WORD},
    Outcome: {
        "type": WORD, "tick": MAYBE, "job": WORD, "of": WORD, "shard": WHOLE, "started": MAYBE, "ended": MAYBE,
        "duration": either(None, SECONDS), "worker": either(None, WORD), "attempts": WHOLE, "error": _ERROR,
        "reason": WORD, "reported": FLAG, "message": WORD, "details": MAPPING, "at": INSTANT, "beat": WORD,
    },
    Reopened: {
        "tick": MAYBE, "job": WORD, "of": WORD, "shard": WHOLE, "was": WORD, "attempts": WHOLE, "at": INSTANT,
        "beat": WORD,
    },
    Changed: {
        "type": WORD, "rev": WORD, "rule": MAPPING, "was": either(None, MAPPING), "before": either("", GARBLED),
        "next": either("", INSTANT), "at": INSTANT, "beat": WORD,
    },
    Acted: {
        "type": WORD, "tick": either("", GARBLED), "until": either("", INSTANT), "reason": WORD, "at": INSTANT,
        "beat": WORD,
    },
}  # fmt: skip
_NAMES: Mapping[type[Entry], str] = {
    Enqueued: "enqueued", Skipped: "skipped", Waiting: "waiting", Reopened: "reopened",
}  # fmt: skip
_KINDS: Mapping[str, type[Entry]] = {
    **{name: kind for kind, name in _NAMES.items()},
    **dict.fromkeys(OUTCOMES, Outcome),
    **dict.fromkeys(CHANGES, Changed),
    **dict.fromkeys(ACTIONS, Acted),
}
_KEYS = {"number": "n", "before": "from"}  # all other keys equal the names of their fields
_SHAPES: Mapping[type[Entry], list[tuple[str, str, Value, bool]]] = {
    kind: [
        (own.name, _KEYS.get(own.name, own.name), values[own.name], own.default is own.default_factory is MISSING)
        for own in sorted(fields(kind), key=lambda own: list(values).index(own.name))
    ]
    for kind, values in _VALUES.items()
}
"""For each field of an entry, in the order of the line: name, key, value type, and whether it is required."""
