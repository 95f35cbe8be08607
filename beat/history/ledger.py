"""The ledger's lines as values: what was decided about each tick, what became of its run, what changed the rule.

Anything may stand in the list, since anybody can write to Redis: what is no line of ours is passed over, never raised.
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
"""The first three by the code, the others by an operator."""
ASKED = ("manual", "backfill")
"""By whom a run is wanted that nobody was late with: somebody asked for it when it was enqueued."""
ACTIONS = ("paused", "resumed", "deferred", "retired")
LONGEST_TRACEBACK = 2_000
"""How many characters of a traceback the ledger keeps."""
_BLANK = " \t\r\n"  # JSON's; a line that somebody has put back may end with one


@dataclass(frozen=True)
class Enqueued:
    """A verdict: the tick became a job; without a tick, somebody asked for the run."""

    tick: datetime | None
    job: str
    by: str
    """Who wanted it: scheduler, catchup, follows, manual or backfill."""
    late_ms: int
    number: int
    """The schedule's run_count from then on."""
    at: datetime
    beat: str
    queue: str = ""
    """Where it went, if that was a choice."""
    why: str = ""
    """How its queue was chosen, in words."""
    shards: int = 0
    """To how many queues it went, if to all of them: `job` is then the tick's, and each part has one of its own."""
    after: str = ""
    """The job whose success it follows."""


@dataclass(frozen=True)
class Skipped:
    """A verdict: a stretch of ticks passed without a job."""

    tick: datetime
    """The first of them."""
    last: datetime
    count: int
    reason: str
    number: int
    """The schedule's skip_count from then on."""
    at: datetime
    beat: str
    behind: str = ""
    """The job that was in its way."""
    why: str = ""
    """What was missing, in words."""
    after: str = ""
    """The job whose success it was to follow."""


@dataclass(frozen=True)
class Waiting:
    """No verdict yet: the tick waits for an earlier run to end. Its verdict is a later line."""

    tick: datetime
    job: str
    """The id that its job will have."""
    behind: str
    """The newest of the jobs that have the room; nothing where ticks wait before it."""
    at: datetime
    beat: str
    group: str = ""
    """The group for whose room it waits; nothing where that is its own."""


@dataclass(frozen=True)
class Error:
    """What a run failed with."""

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
    """Seconds."""
    worker: str | None
    attempts: int
    at: datetime
    """When it was learnt."""
    beat: str
    error: Error | None = None
    reason: str = ""
    """Why it was stopped or called lost, in words."""
    reported: bool = False
    """It failed by its own report, without an exception."""
    message: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    of: str = ""
    """Of a part of a broadcast: the job of its tick."""
    shard: int = 0
    """Which part it is, from 0 on."""


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
    """The definition came, or was replaced; `type` is one of CHANGES."""

    type: str
    rev: str
    rule: Mapping[str, Any]
    """What decides the ticks from then on, as `definitions.ticks` writes it."""
    was: Mapping[str, Any] | None
    before: datetime | None
    """The next tick as it was; in the line it is called `from`."""
    next: datetime | None
    at: datetime
    beat: str


@dataclass(frozen=True)
class Acted:
    """Somebody did something to the schedule that leaves its rule as it is; `type` is one of ACTIONS."""

    type: str
    at: datetime
    beat: str
    """The operator; a beat, where a pause ended by itself or the code is gone."""
    reason: str = ""
    """In the operator's words."""
    until: datetime | None = None
    """Of a pause its end, where it has one; of what was deferred, when the tick is due now."""
    tick: datetime | None = None
    """The next tick, as it was."""


Entry = Enqueued | Skipped | Waiting | Outcome | Reopened | Changed | Acted


def read(line: bytes) -> Entry | None:
    """The entry that the line holds; None for anything that is no line of ours, whatever it is."""
    try:
        found, end = JSON.raw_decode(text := line.decode(errors="replace").strip(_BLANK))
        kind = _KINDS[found["type"] if end == len(text) else ""]
        named: dict[str, Any] = {
            name: own if type(own) is value.plain else value.read(own)
            for name, key, value, needed in _SHAPES[kind]
            if (own := found.get(key)) is not None or (needed and key in found)
        }
        return kind(**named)
    except (ValueError, TypeError, KeyError, RecursionError):  # no text, no JSON, no object, not all of a line
        return None


def plain(entry: Entry) -> dict[str, Any]:
    """The object of the entry's line, as JSON writes it; what may be left out and says nothing is left out."""
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
_KEYS = {"number": "n", "before": "from"}  # the others are called as the fields are
_SHAPES: Mapping[type[Entry], list[tuple[str, str, Value, bool]]] = {
    kind: [
        (own.name, _KEYS.get(own.name, own.name), values[own.name], own.default is own.default_factory is MISSING)
        for own in sorted(fields(kind), key=lambda own: list(values).index(own.name))
    ]
    for kind, values in _VALUES.items()
}
"""For each field of an entry, in the order of the line: its name, its key, its value, whether it must be there."""
