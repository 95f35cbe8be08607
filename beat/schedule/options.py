"""The options of a schedule: their names, and what each value must be.

RQ's options keep RQ's names and meanings. Every checker takes a value and the option's name, and returns the value in
the one form that a schedule keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypedDict, cast, get_args

from beat.config import validators
from beat.config.sources import LONGEST_QUEUE
from beat.errors import BadOption, BeatError, DeclarationError, nearest
from beat.schedule.mistakes import Mistakes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beat.schedule.monitor import Monitor
    from beat.schedule.requires import Requires
    from beat.schedule.rq_options import Serializer
    from beat.timing.durations import Duration

Priority = Literal["high", "normal", "low"]
Misfire = Literal["once", "skip", "all"]
Overlap = Literal["allow", "skip", "wait", "replace"]
Route = Literal[
    "first", "last", "round_robin", "random", "least_used", "least_recent", "hash", "shortest", "first_idle",
    "failover", "broadcast",
]  # fmt: skip

LONGEST_DESCRIPTION = 500


class RetryLike(Protocol):
    """What `rq.Retry` has."""

    @property
    def max(self) -> int:
        """The number of tries."""

    @property
    def intervals(self) -> Sequence[int]:
        """The seconds before each."""


class CallbackLike(Protocol):
    """What `rq.Callback` has."""

    @property
    def func(self) -> str | Callable[..., object]:
        """The function, or its dotted path."""

    @property
    def timeout(self) -> int | None:
        """The seconds that it may take."""


Callback = str | Callable[..., object] | CallbackLike
Retry = int | Mapping[str, object] | RetryLike
Day = str | date | Callable[[date], bool]
"""A date, a stretch of dates as text, or a function of a date (or its dotted path)."""
DayOff = Day | tuple[str | date, str | date]


class Shared(TypedDict, total=False):
    """The options that go with every rule."""

    id: str
    tz: str
    start: datetime
    end: datetime
    args: Sequence[object]
    kwargs: Mapping[str, object]
    enabled: bool
    description: str
    priority: Priority
    queue: str
    job_timeout: Duration
    result_ttl: Duration
    failure_ttl: Duration
    ttl: Duration
    retry: Retry
    at_front: bool
    meta: Mapping[str, object]
    on_success: Callback
    on_failure: Callback
    on_stopped: Callback
    serializer: Serializer | type
    misfire: Misfire
    misfire_after: Duration
    catchup_window: Duration
    catchup_limit: int
    overlap: Overlap
    max_running: int
    max_waiting: int
    max_runs: int
    exclude: DayOff | Collection[DayOff]
    jitter: Duration
    queues: Sequence[str]
    route: Route
    group: str
    slow_queue: str
    slow_after: Duration
    slow_times: int
    slow_window: Duration
    requires: str | Requires | Sequence[str | Requires]
    monitor: str | Monitor


class WithExpression(Shared, total=False):
    """The options that go with a cron expression."""

    seconds: bool


class WithInterval(Shared, total=False):
    """The options that go with `every`."""

    phase: Duration


class Options(Shared, total=False):
    """What `@periodic(…)` takes beside the expression."""

    every: Duration
    follows: str
    phase: Duration
    seconds: bool


_EXPRESSION = {"cron", "crontab", "cron_string", "cronstring", "expression", "rule"}
_OTHERS = {  # what other programs call an option
    "timezone": "tz",
    "time_zone": "tz",
    "tzinfo": "tz",
    "zone": "tz",
    "interval": "every",
    "run_every": "every",
    "timeout": "job_timeout",
    "queue_name": "queue",
    "name": "id",
    "start_time": "start",
    "start_date": "start",
    "end_time": "end",
    "end_date": "end",
    "max_instances": "max_running",
    "misfire_grace_time": "misfire_after",
}
_RULES = {"every", "follows"}
_NAMES = frozenset(Options.__annotations__)
_PRIORITIES = get_args(Priority)


class Reading:
    """Refuse a value that raises when beat looks at it, as a proxy out of its context does."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, BeatError):
            raise refusal(error, self.name) from error


def refusal(error: Exception, name: str) -> DeclarationError:
    """Return the error with which a value is refused that raises `error` when it is looked at."""
    if isinstance(error, DeclarationError):
        return error
    if isinstance(error, BeatError):
        raise error
    refused = BadOption(f"{name} cannot be read: {type(error).__name__}: {error!s:.200}; pass plain values")
    refused.__cause__ = error
    return refused


def refuse_unknown(
    options: Iterable[str], expression: str = "The expression is the first argument, as in @periodic('0 9 * * *')."
) -> None:
    """Refuse every name that is no option, and name the option that may be meant; `expression` says where that goes."""
    mistakes = Mistakes()
    for name in options:
        if name not in _NAMES:
            with mistakes:
                raise BadOption(f"there is no option {name!r:.60}.{_meant(name, expression)}")
    mistakes.refuse()


def _meant(name: str, expression: str) -> str:
    if name in _EXPRESSION:
        return f" {expression}"
    option = _right_name(name)
    return f" Did you mean {option!r}?" if option else ""


def _right_name(name: str) -> str:
    return _OTHERS.get(name) or nearest(name, Options.__annotations__)


def corrected(expression: str | None, given: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Return the expression and the options under the names that were meant, so that beat can check their values.

    A rule under a wrong name counts only where there is no other rule.
    """
    unknown = [name for name in given if name not in _NAMES]
    meant = {_right_name(name): given[name] for name in unknown if name not in _EXPRESSION}
    if expression is None:
        expression = next((given[name] for name in unknown if name in _EXPRESSION), None)
    if expression is not None or given.keys() & _RULES:
        meant = {name: value for name, value in meant.items() if name not in _RULES}
    return expression, {name: value for name, value in {**meant, **given}.items() if name in _NAMES}


def schedule_id(value: object, name: str = "id") -> str:
    """An id that RQ can carry in a job id and a shell needs not quote."""
    return validators.identifier(value, name)


def queue(value: object, name: str = "queue") -> str:
    """The name of an RQ queue."""
    if isinstance(value, str) and value.strip() == value != "" and value.isprintable() and len(value) <= LONGEST_QUEUE:
        return validators.text(value)
    raise BadOption(
        f"{name} {value!r:.60} must be a queue's name, at most {LONGEST_QUEUE} printable characters, as in 'reports'"
    )


def description(value: object) -> str:
    """One line of text."""
    if isinstance(value, str) and (value.isprintable() or not value) and len(value) <= LONGEST_DESCRIPTION:
        return validators.text(value)
    raise BadOption(f"description {value!r:.60} must be one line of at most {LONGEST_DESCRIPTION} characters")


def priority(value: object) -> Priority:
    """Which beat takes first, and the queue when none is named."""
    return cast("Priority", validators.one_of(value, "priority", _PRIORITIES))
