"""The options of a schedule: their names, and what each value must be.

RQ's options keep RQ's names and meanings. Every checker takes a value and the option's name, and returns the value in
the one form that a schedule keeps.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, cast, get_args

from beat import checks
from beat.errors import BadOption, BeatError, did_you_mean
from beat.sources import LONGEST_QUEUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from beat.rq_options import Serializer

Priority = Literal["high", "normal", "low"]
Misfire = Literal["once", "skip", "all"]
Overlap = Literal["allow", "skip", "wait", "replace"]
Route = Literal[
    "first", "last", "round_robin", "random", "least_used", "least_recent", "hash", "shortest", "first_idle",
    "failover", "broadcast",
]  # fmt: skip
Duration = timedelta | float | str

LONGEST_DESCRIPTION = 500


class Options(TypedDict, total=False):
    """What `@periodic(…)` takes beside the expression."""

    id: str
    every: Duration
    follows: str
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
    queues: Sequence[str]
    route: Route
    group: str
    slow_queue: str
    slow_after: Duration
    slow_times: int
    slow_window: Duration
    requires: Any
    monitor: Any
    renamed_from: str


_NAMES = frozenset(Options.__annotations__)
_PRIORITIES = get_args(Priority)


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
    return checks.identifier(value, name)


def queue(value: object, name: str = "queue") -> str:
    """The name of an RQ queue."""
    if isinstance(value, str) and value.strip() == value != "" and value.isprintable() and len(value) <= LONGEST_QUEUE:
        return checks.text(value)
    raise BadOption(
        f"{name} {value!r:.60} must be a queue's name, at most {LONGEST_QUEUE} printable characters, as in 'reports'"
    )


def description(value: object) -> str:
    """One line of text."""
    if isinstance(value, str) and (value.isprintable() or not value) and len(value) <= LONGEST_DESCRIPTION:
        return checks.text(value)
    raise BadOption(f"description {value!r:.60} must be one line of at most {LONGEST_DESCRIPTION} characters")


def priority(value: object) -> Priority:
    """Which beat takes first, and the queue when none is named."""
    return cast("Priority", checks.one_of(value, "priority", _PRIORITIES))
