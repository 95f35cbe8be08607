"""A schedule: when, what, and how RQ is to treat it. Checked when it is made, and never changed afterwards."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from beat import arguments, clock, options
from beat.cron import Cron
from beat.errors import BadArguments, BadInstant, BadOption
from beat.every import Every
from beat.functions import path_of
from beat.zones import zone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.options import Callback, Priority, Retry, Serializer
    from beat.timing import Timing

_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Place:
    """Where a schedule was declared."""

    file: str
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The rule: when, what, and its policies. Options that are None are left to RQ."""

    id: str
    func: str
    """The dotted path of the function."""
    timing: Timing
    tz: str | None = None
    """The zone it is written and shown in; an expression brings its own."""
    start: datetime | None = None
    end: datetime | None = None
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    enabled: bool = True
    description: str = ""
    priority: Priority = "normal"
    queue: str = "default"
    job_timeout: int | None = None
    result_ttl: int | None = None
    failure_ttl: int | None = None
    ttl: int | None = None
    retry: Retry | None = None
    at_front: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)
    on_success: Callback | None = None
    on_failure: Callback | None = None
    on_stopped: Callback | None = None
    serializer: Serializer = "pickle"
    declared: Place | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name, checked in _checked(self).items():
            object.__setattr__(self, name, checked)

    def after(self, instant: datetime) -> datetime | None:
        """The first tick strictly later than `instant`, or None after `end`."""
        first = instant if self.start is None else max(instant, self.start - _INSTANT)
        tick = self.timing.after(first)
        return tick if self.end is None or tick <= self.end else None

    def before(self, instant: datetime) -> datetime | None:
        """The last tick strictly earlier than `instant`, or None before `start`."""
        last = instant if self.end is None else min(instant, self.end + _INSTANT)
        tick = self.timing.before(last)
        return tick if tick and (self.start is None or tick >= self.start) else None

    def count(self, a: datetime, b: datetime) -> int:
        """How many ticks there are from `a` on and before `b`."""
        low = a if self.start is None else max(a, self.start)
        high = b if self.end is None else min(b, self.end + _INSTANT)
        return self.timing.count(low, high) if low < high else 0

    def ticks(self, start: datetime, end: datetime | None = None) -> Iterator[datetime]:
        """The ticks from `start` on and before `end`; without `end` they stop where the schedule does."""
        for tick in self.timing.ticks(start if self.start is None else max(start, self.start), end):
            if self.end is not None and tick > self.end:
                return
            yield tick

    def describe(self) -> str:
        """When it ticks, in words."""
        words = self.timing.describe()
        if self.start is not None and isinstance(self.timing, Cron):
            words += f", from {clock.text(self.start)} on"
        return words if self.end is None else f"{words}, until {clock.text(self.end)}"

    def definition(self) -> dict[str, Any]:
        """All that makes the schedule what it is, as plain values, the same in every process."""
        named = {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name not in {"timing", "declared"}}
        for name in ("args", "kwargs", "meta"):
            named[name] = arguments.canonical(named[name], name)
        return {**named, "timing": str(self.timing), "meaning": self.timing.meaning}

    @functools.cached_property
    def rev(self) -> str:
        """A digest of the whole definition."""
        return _digest(self.definition())

    @functools.cached_property
    def timing_rev(self) -> str:
        """A digest of what decides its ticks, and of nothing else."""
        return _digest([self.timing.meaning, _plain(self.start), _plain(self.end)])

    def __hash__(self) -> int:
        return hash((self.id, self.rev))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return clock.text(value)
    if isinstance(value, options.Retry | options.Callback):
        return asdict(value)
    return dict(value) if isinstance(value, Mapping) else value


def _checked(s: Schedule) -> dict[str, Any]:
    """Every field of a schedule in its final form; refuses what cannot be."""
    serializer = options.serializer(s.serializer)
    start, end = _bounds(s.start, s.end)
    if not isinstance(s.timing, Cron | Every):
        raise BadOption(
            f"timing must be a Cron or an Every, not {type(s.timing).__name__}: write timing=Cron('0 9 * * *')"
        )
    return {
        "id": options.schedule_id(s.id),
        "func": path_of(s.func, "func"),
        "tz": s.timing.tz if isinstance(s.timing, Cron) else zone(s.tz or "UTC").name,
        "start": start,
        "end": end,
        "args": _args(s.args, serializer),
        "kwargs": _mapping(s.kwargs, "kwargs", serializer),
        "enabled": options.flag(s.enabled, "enabled"),
        "description": options.description(s.description),
        "priority": options.priority(s.priority),
        "queue": options.queue(s.queue),
        "job_timeout": options.timeout(s.job_timeout, "job_timeout"),
        "result_ttl": options.lifetime(s.result_ttl, "result_ttl"),
        "failure_ttl": options.lifetime(s.failure_ttl, "failure_ttl"),
        "ttl": options.ttl(s.ttl),
        "retry": options.retry(s.retry),
        "at_front": options.flag(s.at_front, "at_front"),
        "meta": _meta(s.meta, serializer),
        "on_success": options.callback(s.on_success, "on_success"),
        "on_failure": options.callback(s.on_failure, "on_failure"),
        "on_stopped": options.callback(s.on_stopped, "on_stopped"),
        "serializer": serializer,
    }


def _bounds(start: datetime | None, end: datetime | None) -> tuple[datetime | None, datetime | None]:
    start, end = start and clock.utc(start, "start"), end and clock.utc(end, "end")
    if start and end and start >= end:
        raise BadInstant(f"start {clock.text(start)} must lie before end {clock.text(end)}")
    return start, end


def _args(value: object, serializer: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise BadArguments(f"args must be a list, not {type(value).__name__}: write args=[{value!r:.40}]")
    frozen: list[Any] = arguments.freeze(list(value), "args", serializer)
    return tuple(frozen)


def _mapping(value: object, name: str, serializer: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise BadArguments(f"{name} must be a dict with text keys, not {value!r:.60}: write {name}={{'kind': 'daily'}}")
    return MappingProxyType(arguments.freeze(dict(value), name, serializer))


def _meta(value: object, serializer: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping) and "beat" in value:
        raise BadOption("meta['beat'] is where beat writes the schedule and the tick of the job: use another key")
    return _mapping(value, "meta", serializer)


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
