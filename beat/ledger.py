"""The ledger's lines as values: what was decided about each tick, what became of its run, what changed the rule.

Anything may stand in the list, since anybody can write to Redis: what is no line of ours is passed over, never raised.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from beat import clock
from beat.errors import BadInstant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

OUTCOMES = ("succeeded", "failed", "stopped", "lost")
CHANGES = ("registered", "updated", "moved")
_MOST = 10**15  # more digits than Redis' scripts count with
_DEEPEST = 32


@dataclass(frozen=True)
class Enqueued:
    """A verdict: the tick became a job; without a tick, somebody asked for the run."""

    tick: datetime | None
    job: str
    by: str
    """Who wanted it: scheduler, catchup or manual."""
    late_ms: int
    number: int
    """The schedule's run_count from then on."""
    at: datetime
    beat: str


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


Entry = Enqueued | Skipped | Outcome | Reopened | Changed


def read(line: bytes) -> Entry | None:
    """The entry that the line holds; None for anything that is no line of ours, whatever it is."""
    try:
        found = _JSON.decode(line.decode(errors="replace"))
        kind = _KINDS[found["type"]]
        return kind(
            **{
                name: value.read(found[key])
                for name, key, value, needed in _SHAPES[kind]
                if needed or found.get(key) is not None
            }
        )
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


class _Value(NamedTuple):
    """How a value comes out of a line, or is refused with an error; and how it is written."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -_MOST < value < _MOST:
        raise TypeError
    return value


def _seconds(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not -_MOST < value < _MOST:
        raise TypeError
    return float(value)


def _mapping(value: Any) -> dict[str, Any]:
    """As it is, unless it is so deep that whoever prints it could not."""
    if not isinstance(value, dict):
        raise TypeError
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        inside = (part for each in level for part in (each.values() if isinstance(each, dict) else each))
        level = [part for part in inside if isinstance(part, dict | list)]
        if not level:
            return value
    raise ValueError


def _garbled(value: Any) -> datetime | None:
    """What next_run was is copied as it was, whatever somebody had written there."""
    try:
        return clock.read(value)
    except BadInstant:
        return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are no JSON


def _or(nothing: str | None, value: _Value) -> _Value:
    """The value, or None, which is written as `nothing`."""
    return _Value(
        lambda found: None if found is None or found == nothing else value.read(found),
        lambda own: nothing if own is None else value.write(own),
    )


_JSON = json.JSONDecoder(parse_constant=_refuse)
_WORD, _WHOLE, _INSTANT = _Value(_word), _Value(_whole), _Value(clock.read, clock.text)
_FLAG, _MAPPING = _Value(lambda value: value is True), _Value(_mapping, dict)
_ERROR = _Value(lambda found: Error(*(_word(found[name]) for name in ("type", "message", "traceback"))), asdict)
_MAYBE, _GARBLED = _or(None, _INSTANT), _Value(_garbled, clock.text)

_VALUES: Mapping[type[Entry], Mapping[str, _Value]] = {
    Enqueued: {
        "tick": _MAYBE, "job": _WORD, "by": _WORD, "late_ms": _WHOLE, "number": _WHOLE, "at": _INSTANT, "beat": _WORD,
    },
    Skipped: {
        "tick": _INSTANT, "last": _INSTANT, "count": _WHOLE, "reason": _WORD, "number": _WHOLE, "at": _INSTANT,
        "beat": _WORD,
    },
    Outcome: {
        "type": _WORD, "tick": _MAYBE, "job": _WORD, "started": _MAYBE, "ended": _MAYBE,
        "duration": _or(None, _Value(_seconds)), "worker": _or(None, _WORD), "attempts": _WHOLE, "error": _ERROR,
        "reason": _WORD, "reported": _FLAG, "message": _WORD, "details": _MAPPING, "at": _INSTANT, "beat": _WORD,
    },
    Reopened: {"tick": _MAYBE, "job": _WORD, "was": _WORD, "attempts": _WHOLE, "at": _INSTANT, "beat": _WORD},
    Changed: {
        "type": _WORD, "rev": _WORD, "rule": _MAPPING, "was": _or(None, _MAPPING), "before": _or("", _GARBLED),
        "next": _or("", _INSTANT), "at": _INSTANT, "beat": _WORD,
    },
}  # fmt: skip
_NAMES: Mapping[type[Entry], str] = {Enqueued: "enqueued", Skipped: "skipped", Reopened: "reopened"}
_KINDS: Mapping[str, type[Entry]] = {
    **{name: kind for kind, name in _NAMES.items()},
    **dict.fromkeys(OUTCOMES, Outcome),
    **dict.fromkeys(CHANGES, Changed),
}
_KEYS = {"number": "n", "before": "from"}  # the others are called as the fields are
_SHAPES: Mapping[type[Entry], list[tuple[str, str, _Value, bool]]] = {
    kind: [
        (own.name, _KEYS.get(own.name, own.name), values[own.name], own.default is own.default_factory is MISSING)
        for own in sorted(fields(kind), key=lambda own: list(values).index(own.name))
    ]
    for kind, values in _VALUES.items()
}
"""For each field of an entry, in the order of the line: its name, its key, its value, whether it must be there."""
