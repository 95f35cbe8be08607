"""Define the options of a schedule: their names, their types, and the checks of the simple ones.

RQ's options keep RQ's names and meanings. Every checker returns the value in the form that a schedule keeps, or raises
BadOption.
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
    """The attributes of `rq.Retry` that beat reads."""

    @property
    def max(self) -> int:
        """Return the number of retries."""

    @property
    def intervals(self) -> Sequence[int]:
        """Return the seconds to wait before each retry."""


class CallbackLike(Protocol):
    """The attributes of `rq.Callback` that beat reads."""

    @property
    def func(self) -> str | Callable[..., object]:
        """Return the function or its dotted path."""

    @property
    def timeout(self) -> int | None:
        """Return the time limit of the callback in seconds."""


Callback = str | Callable[..., object] | CallbackLike
Retry = int | Mapping[str, object] | RetryLike
Day = str | date | Callable[[date], bool]
"""A date, a date range as text, or a function of a date (or its dotted path)."""
DayOff = Day | tuple[str | date, str | date]


class Shared(TypedDict, total=False):
    """The options that every rule accepts."""

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
    """The options of a schedule with a cron expression."""

    seconds: bool


class WithInterval(Shared, total=False):
    """The options of a schedule with `every`."""

    phase: Duration


class Options(Shared, total=False):
    """The keyword arguments of `@periodic(…)`."""

    every: Duration
    follows: str
    phase: Duration
    seconds: bool


_EXPRESSION = {"cron", "crontab", "cron_string", "cronstring", "expression", "rule"}
_OTHERS = {  # names of options in other schedulers → names in beat
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
    """A context that turns exceptions of a user's value into BadOption, such as those of an unbound proxy."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, BeatError):
            raise refusal(error, self.name) from error


def refusal(error: Exception, name: str) -> DeclarationError:
    """Return the DeclarationError for a value that raised `error` when it was read; re-raise other BeatErrors."""
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
    """Raise one error for all names that are not options, with the options that may be meant.

    `expression` is the advice for names such as `cron`, which mean the expression itself.
    """
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
    """Return the expression and the options under the names that were probably meant, so that beat can check them.

    A rule under a wrong name is used only if there is no other rule.
    """
    unknown = [name for name in given if name not in _NAMES]
    meant = {_right_name(name): given[name] for name in unknown if name not in _EXPRESSION}
    if expression is None:
        expression = next((given[name] for name in unknown if name in _EXPRESSION), None)
    if expression is not None or given.keys() & _RULES:
        meant = {name: value for name, value in meant.items() if name not in _RULES}
    return expression, {name: value for name, value in {**meant, **given}.items() if name in _NAMES}


def schedule_id(value: object, name: str = "id") -> str:
    """Return `value` if it is an id that fits into an RQ job id and needs no quotes in a shell."""
    return validators.identifier(value, name)


def queue(value: object, name: str = "queue") -> str:
    """Return `value` if it is a valid name of an RQ queue."""
    if isinstance(value, str) and value.strip() == value != "" and value.isprintable() and len(value) <= LONGEST_QUEUE:
        return validators.text(value)
    raise BadOption(
        f"{name} {value!r:.60} must be a queue's name, at most {LONGEST_QUEUE} printable characters, as in 'reports'"
    )


def description(value: object) -> str:
    """Return `value` if it is one line of text, or empty."""
    if isinstance(value, str) and (value.isprintable() or not value) and len(value) <= LONGEST_DESCRIPTION:
        return validators.text(value)
    raise BadOption(f"description {value!r:.60} must be one line of at most {LONGEST_DESCRIPTION} characters")


def priority(value: object) -> Priority:
    """Return `value` if it is a priority."""
    return cast("Priority", validators.one_of(value, "priority", _PRIORITIES))
