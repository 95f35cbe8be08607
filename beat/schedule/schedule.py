"""Define a schedule: when to run what, and its policies. It is checked when created, and immutable."""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from beat.config import validators
from beat.errors import BadInstant
from beat.schedule import arguments, digests, monitor, options, policy_options, routing_options, rq_options, rule
from beat.schedule.follows import Follows
from beat.schedule.functions import path_of
from beat.schedule.mistakes import Mistakes
from beat.timing import clock
from beat.timing.interval import Every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from beat.schedule.monitor import Monitor
    from beat.schedule.options import Misfire, Overlap, Priority, Route
    from beat.schedule.requires import Requires
    from beat.schedule.rq_options import Callback, Retry, Serializer
    from beat.schedule.rule import Timing
    from beat.schedule.source_location import Place

_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Schedule:
    """When to run what, and the policies. RQ's defaults apply to RQ options that are None.

    Schedules are equal if their definitions are, even if they were declared in different places.
    """

    id: str
    func: str
    """The dotted path of the function."""
    timing: Timing
    tz: str | None = None
    """The time zone of the expression, of excluded days, and of times shown to people."""
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
    misfire: Misfire = "once"
    misfire_after: timedelta | None = None
    catchup_window: timedelta | None = None
    catchup_limit: int | None = None
    overlap: Overlap = "allow"
    max_running: int | None = None
    max_waiting: int | None = None
    max_runs: int | None = None
    exclude: Sequence[str] = ()
    jitter: timedelta | None = None
    queues: Sequence[str] = ()
    """The queues among which `route` chooses; `queue` is then the first of them."""
    route: Route | None = None
    group: str | None = None
    slow_queue: str | None = None
    slow_after: timedelta | None = None
    slow_times: int | None = None
    slow_window: timedelta | None = None
    requires: Sequence[Requires] = ()
    monitor: Monitor | None = None
    """The service that beat informs of runs, and that alerts if they stop."""
    declared: Place | None = None

    def __post_init__(self) -> None:
        _check(self, _CHECKED)
        if self.queues:
            object.__setattr__(self, "queue", self.queues[0])

    @property
    def follows(self) -> str | None:
        """Return the id of the schedule that this one follows, or None."""
        return self.timing.id if isinstance(self.timing, Follows) else None

    def after(self, instant: datetime) -> datetime | None:
        """Return the first tick strictly later than `instant`, or None if that is after `end`."""
        first = instant if self.start is None else max(_utc(instant), _shift(self.start, -_INSTANT))
        tick = self.timing.after(first)
        return tick if tick and (self.end is None or tick <= self.end) else None

    def before(self, instant: datetime) -> datetime | None:
        """Return the last tick strictly earlier than `instant`, or None if that is before `start`."""
        last = instant if self.end is None else min(_utc(instant), _shift(self.end, _INSTANT))
        tick = self.timing.before(last)
        return tick if tick and (self.start is None or tick >= self.start) else None

    def count(self, a: datetime, b: datetime) -> int:
        """Return the number of ticks in `[a, b)`."""
        low = a if self.start is None else max(_utc(a), self.start)
        high = b if self.end is None else min(_utc(b), _shift(self.end, _INSTANT))
        return self.timing.count(low, high)

    def ticks(self, start: datetime, end: datetime | None = None) -> Iterator[datetime]:
        """Iterate over the ticks in `[start, end)`; without `end`, stop only at the schedule's own end."""
        low = start if self.start is None else max(_utc(start), self.start)
        ends = [bound for bound in (end and _utc(end), self.end and _shift(self.end, _INSTANT)) if bound]
        return self.timing.ticks(low, min(ends, default=None))

    def describe(self) -> str:
        """Return in words when the schedule ticks."""
        words = self.timing.describe()
        told = isinstance(self.timing, Every) and self.timing.start == self.start
        if self.start is not None and not told:
            words += f", from {clock.text(self.start)} on"
        return words if self.end is None else f"{words}, until {clock.text(self.end)}"

    def definition(self) -> dict[str, Any]:
        """Return the full definition as plain values, the same in every process."""
        plain = {name: digests.plain(getattr(self, name)) for name in digests.COMMON}
        return {"id": self.id, **plain, **self._arguments(), "timing": str(self.timing), "meaning": plain["timing"]}

    @functools.cached_property
    def kind(self) -> str:
        """Return a digest of the definition without the id and the arguments."""
        return digests.kind(self)

    @functools.cached_property
    def rev(self) -> str:
        """Return a digest of the whole definition: the revision."""
        given = digests.written(self._arguments()) if self.args or self.kwargs or self.meta else ""
        return digests.digest(f"{self.kind} {self.id} {given}")

    @functools.cached_property
    def timing_rev(self) -> str:
        """Return a digest of the options that determine the ticks: the timing, `start` and `end`."""
        return _timing_rev(self)

    def _arguments(self) -> dict[str, arguments.Canonical]:
        return {name: arguments.canonical(_unwrapped(getattr(self, name)), name) for name in ("args", "kwargs", "meta")}

    def __eq__(self, other: object) -> bool:
        return self.rev == other.rev if isinstance(other, Schedule) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.rev)

    def __reduce__(self) -> tuple[Callable[[], Schedule], tuple[()]]:
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        values |= {"kwargs": dict(self.kwargs), "meta": dict(self.meta)}  # their read-only views cannot be pickled
        return functools.partial(type(self), **values), ()


def check_values(values: Mapping[str, Any]) -> None:
    """Raise one error for all invalid values; combinations of values are not checked."""
    schedule = object.__new__(Schedule)
    vars(schedule).update({name: default() for name, default in _DEFAULTS.items()} | dict(values))
    _checked_values(schedule, _CHECKED).refuse()


def _check(schedule: Schedule, checked: Iterable[tuple[str, Callable[[Schedule], Any], object]]) -> None:
    mistakes = _checked_values(schedule, checked)
    if not mistakes.found:
        for refuse_contradictions in _CONTRADICTIONS:
            with mistakes:
                refuse_contradictions(schedule)
    mistakes.refuse()


def _checked_values(schedule: Schedule, checked: Iterable[tuple[str, Callable[[Schedule], Any], object]]) -> Mistakes:
    """Convert each value to the form that a schedule keeps; replace bad values by defaults and return the mistakes."""
    values, mistakes = vars(schedule), Mistakes()
    for name, check, sound in checked:
        if values[name] is not sound:
            try:
                values[name] = check(schedule)
            except Exception as e:  # noqa: BLE001 (a value that raises when it is read is a mistake, too)
                mistakes.found.append(options.refusal(e, name))
                values[name] = _DEFAULTS[name]()
    return mistakes


def _refuse_wrong_order(schedule: Schedule) -> None:
    if schedule.start and schedule.end and schedule.start >= schedule.end:
        raise BadInstant(f"start {clock.text(schedule.start)} must lie before end {clock.text(schedule.end)}")


_CONTRADICTIONS = (
    _refuse_wrong_order,
    policy_options.refuse_contradictions,
    routing_options.refuse_contradictions,
    monitor.refuse_contradictions,
)


def _utc(instant: datetime) -> datetime:
    clock.floor(instant)  # raises unless the instant can be compared with the bounds
    return instant


def _shift(bound: datetime, by: timedelta) -> datetime:
    try:
        return bound + by
    except OverflowError:  # no tick lies outside the calendar
        return bound


def _timing_rev(schedule: Schedule) -> str:
    return digests.digest(
        digests.written([digests.plain(each) for each in (schedule.timing, schedule.start, schedule.end)])
    )


def _unwrapped(value: Any) -> Any:
    return dict(value) if type(value) is MappingProxyType else value


_CHECKS: Mapping[str, Callable[[Schedule], Any]] = {  # the order matters: later checks read values of earlier ones
    "id": lambda s: options.schedule_id(s.id),
    "func": lambda s: path_of(s.func, "func"),
    "timing": lambda s: rule.checked(s.timing, s.id),
    "tz": lambda s: rule.tz_of(s.tz, s.timing),
    "start": lambda s: None if s.start is None else clock.utc(s.start, "start"),
    "end": lambda s: None if s.end is None else clock.utc(s.end, "end"),
    "serializer": lambda s: rq_options.serializer(s.serializer),
    "args": lambda s: arguments.positional(s.args, s.serializer),
    "kwargs": lambda s: arguments.named(s.kwargs, "kwargs", s.serializer),
    "meta": lambda s: arguments.meta(s.meta, s.serializer),
    "enabled": lambda s: validators.flag(s.enabled, "enabled"),
    "description": lambda s: options.description(s.description),
    "priority": lambda s: options.priority(s.priority),
    "queue": lambda s: options.queue(s.queue),
    "job_timeout": lambda s: rq_options.timeout(s.job_timeout, "job_timeout"),
    "result_ttl": lambda s: rq_options.lifetime(s.result_ttl, "result_ttl"),
    "failure_ttl": lambda s: rq_options.lifetime(s.failure_ttl, "failure_ttl"),
    "ttl": lambda s: rq_options.ttl(s.ttl),
    "retry": lambda s: rq_options.retry(s.retry),
    "at_front": lambda s: validators.flag(s.at_front, "at_front"),
    "on_success": lambda s: rq_options.callback(s.on_success, "on_success"),
    "on_failure": lambda s: rq_options.callback(s.on_failure, "on_failure"),
    "on_stopped": lambda s: rq_options.callback(s.on_stopped, "on_stopped"),
    **policy_options.CHECKS,
    **routing_options.CHECKS,
    "monitor": lambda s: monitor.read(s.monitor),
}
_DEFAULTS: Mapping[str, Callable[[], Any]] = {
    **{each.name: functools.partial(copy.copy, each.default) for each in fields(Schedule)},
    "id": lambda: "refused",
    "func": lambda: "beat.refused",
    "timing": lambda: Every("1d"),
    "kwargs": dict,
    "meta": dict,
}
"""Replacements for invalid values, so that the other values can still be checked."""
_SOUND = {each.name: each.default for each in fields(Schedule) if each.name != "tz"}
_CHECKED = [(name, check, _SOUND.get(name, _CHECKS)) for name, check in _CHECKS.items()]
"""The checks, each with the default that needs no check, because most values of most schedules are defaults.

Where a default needs a check, too, `_CHECKS` stands in as a value that no option ever has.
"""
