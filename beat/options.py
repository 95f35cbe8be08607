"""The options of a schedule: their names, and what each value must be.

RQ's options keep RQ's names and meanings. Every checker takes a value and the option's name, and returns the value in
the one form that a schedule keeps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Self, TypedDict, cast, get_args

from beat import durations, functions
from beat.errors import BadOption, BeatError, DeclarationError, did_you_mean
from beat.sources import LONGEST_QUEUE

Priority = Literal["high", "normal", "low"]
Serializer = Literal["pickle", "json"]
Misfire = Literal["once", "skip", "all"]
Overlap = Literal["allow", "skip", "wait", "replace"]
Duration = timedelta | float | str

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
LONGEST_DESCRIPTION = 500
_SECONDS = re.compile(r"-?\d{1,10}", re.ASCII)
_MOST_SECONDS = 10**9  # RQ and Redis count in seconds and milliseconds; this is 31 years
_SERIALIZERS = {  # by their paths, because rq is not imported here, and others have classes of these names too
    "rq.serializers.DefaultSerializer": "pickle",
    "rq.serializers.PickleSerializer": "pickle",
    "rq.serializers.JSONSerializer": "json",
}


class Options(TypedDict, total=False):
    """What `@periodic(…)` takes beside the expression."""

    id: str
    every: Duration
    phase: Duration
    tz: str
    seconds: bool
    start: datetime
    end: datetime
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    enabled: bool
    description: str
    priority: Priority
    queue: str
    job_timeout: Duration
    result_ttl: Duration
    failure_ttl: Duration
    ttl: Duration
    retry: Any
    at_front: bool
    meta: Mapping[str, Any]
    on_success: Any
    on_failure: Any
    on_stopped: Any
    serializer: Serializer
    misfire: Misfire
    misfire_after: Duration
    catchup_window: Duration
    catchup_limit: int
    overlap: Overlap
    max_running: int
    max_waiting: int
    max_runs: int
    exclude: Any
    jitter: Duration
    renamed_from: str


@dataclass(frozen=True, kw_only=True)
class Retry:
    """RQ's `Retry`, as plain data."""

    max: int
    intervals: tuple[int, ...] = (0,)
    enqueue_at_front: bool = False


@dataclass(frozen=True, kw_only=True)
class Callback:
    """RQ's `Callback`, as plain data; without a time-out RQ's own applies."""

    func: str
    timeout: int | None = None


_NAMES = frozenset(Options.__annotations__)
_PRIORITIES = get_args(Priority)
_WRITERS = get_args(Serializer)


class Reading:
    """Within it a value that raises when it is looked at is refused, as a proxy out of its context is."""

    __slots__ = ("name",)

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, BeatError):
            shown = f"{type(error).__name__}: {error!s:.200}"
            raise BadOption(f"{self.name} cannot be read: {shown}; pass plain values") from error


def refuse_unknown(options: Iterable[str]) -> None:
    """Refuses a name that is no option, with the nearest that is."""
    for name in options:
        if name not in _NAMES:
            raise BadOption(f"there is no option {name!r:.60}.{did_you_mean(name, Options.__annotations__)}")


def schedule_id(value: object, name: str = "id") -> str:
    """An id that RQ can carry in a job id and a shell needs not quote."""
    if isinstance(value, str) and _ID.fullmatch(value):
        return _text(value)
    raise BadOption(f"{name} {value!r:.120} must be 1 to 100 of the characters A-Z a-z 0-9 _ -, as in 'daily-report'")


def queue(value: object, name: str = "queue") -> str:
    """The name of an RQ queue."""
    if isinstance(value, str) and value.strip() == value != "" and value.isprintable() and len(value) <= LONGEST_QUEUE:
        return _text(value)
    raise BadOption(
        f"{name} {value!r:.60} must be a queue's name, at most {LONGEST_QUEUE} printable characters, as in 'reports'"
    )


def description(value: object) -> str:
    """One line of text."""
    if isinstance(value, str) and (value.isprintable() or not value) and len(value) <= LONGEST_DESCRIPTION:
        return _text(value)
    raise BadOption(f"description {value!r:.60} must be one line of at most {LONGEST_DESCRIPTION} characters")


def flag(value: object, name: str) -> bool:
    """True or False, not something that looks like it."""
    if isinstance(value, bool):
        return value
    raise BadOption(f"{name} must be True or False, not {value!r:.60}")


def priority(value: object) -> Priority:
    """Which beat takes first, and the queue when none is named."""
    return cast("Priority", one_of(value, "priority", _PRIORITIES))


def serializer(value: object) -> Serializer:
    """How RQ writes the arguments; RQ's own classes are understood too."""
    path = value if isinstance(value, str) else f"{getattr(value, '__module__', '')}.{getattr(value, '__name__', '')}"
    return cast("Serializer", one_of(_SERIALIZERS.get(path, value), "serializer", _WRITERS))


def timeout(value: object, name: str) -> int | None:
    """Seconds a job may run; -1 is for ever."""
    return _seconds(value, name, least=1, endless=True)


def lifetime(value: object, name: str) -> int | None:
    """Seconds a result is kept; -1 is for ever."""
    return _seconds(value, name, least=0, endless=True)


def ttl(value: object, name: str = "ttl") -> int | None:
    """Seconds a job may wait in the queue."""
    return _seconds(value, name, least=1, endless=False)


def retry(value: object) -> Retry | None:
    """How often RQ tries again: a number, `{"max": 3, "interval": [10, 60]}` or RQ's `Retry`."""
    if value is None:
        return None
    found = _retry_parts(value)
    most: Any = found.get("max")
    intervals, at_front = found.get("interval", 0), found.get("enqueue_at_front", False)
    each = list(intervals) if isinstance(intervals, list | tuple) else [intervals]
    if not is_number(most, 1) or not each or not all(is_number(i, 0) for i in each) or set(found) - _RETRY_NAMES:
        raise BadOption(
            f"retry {value!r:.100} must be a number of tries, {{'max': 3, 'interval': [10, 60]}} or rq.Retry(…)"
        )
    at_front = flag(at_front, "retry's enqueue_at_front")
    return Retry(max=int(most), intervals=tuple(map(int, each)), enqueue_at_front=at_front)


_RETRY_NAMES = {"max", "interval", "enqueue_at_front"}


def _retry_parts(value: object) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "max") and hasattr(value, "intervals"):  # rq.Retry, without importing rq here
        return {
            "max": value.max,
            "interval": value.intervals,
            "enqueue_at_front": getattr(value, "enqueue_at_front", False),
        }
    return {"max": value}


def callback(value: object, name: str) -> Callback | None:
    """A function, its dotted path, or RQ's `Callback`."""
    if value is None:
        return None
    if hasattr(value, "func") and hasattr(value, "timeout"):  # rq.Callback, without importing rq here
        return Callback(func=functions.path_of(value.func, name), timeout=timeout(value.timeout, f"{name}'s timeout"))
    return Callback(func=functions.path_of(value, name))


def _seconds(value: object, name: str, *, least: int, endless: bool) -> int | None:
    if value is None:
        return None
    number = int(value) if isinstance(value, str) and _SECONDS.fullmatch(value) else value
    if endless and number == -1 and not isinstance(number, bool):
        return -1
    allowed = f"{least} to {_MOST_SECONDS:,} seconds, or text such as '30s', '15m', '1h'"
    allowed += ", or -1 for ever" if endless else ""
    try:
        duration = durations.parse(number, name)
    except DeclarationError:
        raise BadOption(f"{name} {value!r:.60} must be {allowed}") from None
    seconds, rest = divmod(duration, timedelta(seconds=1))
    if rest or not least <= seconds <= _MOST_SECONDS:
        raise BadOption(f"{name} {value!r:.60} must be {allowed}, in whole seconds")
    return seconds


def _text(value: str) -> str:
    return str.__str__(value)  # a member of an Enum is text, but prints as its name


def is_number(value: object, least: int) -> bool:
    """Whether it is a whole number, and no less."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST_SECONDS


def one_of(value: object, name: str, allowed: tuple[Any, ...]) -> Any:
    """One of these words."""
    if isinstance(value, str) and value in allowed:
        return _text(value)
    written = ", ".join(map(repr, allowed))
    raise BadOption(f"{name} {value!r:.60} must be one of {written}.{did_you_mean(str(value), allowed)}")
