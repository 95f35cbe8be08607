"""Check RQ's own options, with RQ's names and meanings, and keep them as plain data without importing rq."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, cast, get_args

from beat.config import validators
from beat.errors import BadOption, DeclarationError
from beat.schedule import functions
from beat.timing import durations

Serializer = Literal["pickle", "json"]

_SECONDS = re.compile(r"-?\d{1,10}", re.ASCII)
_SERIALIZERS = {  # by path, because rq is not imported here and other packages use these names
    "rq.serializers.DefaultSerializer": "pickle",
    "rq.serializers.PickleSerializer": "pickle",
    "rq.serializers.JSONSerializer": "json",
}


@dataclass(frozen=True, kw_only=True)
class Retry:
    """RQ's `Retry` as plain data."""

    max: int
    intervals: tuple[int, ...] = (0,)
    enqueue_at_front: bool = False


@dataclass(frozen=True, kw_only=True)
class Callback:
    """RQ's `Callback` as plain data; without a timeout, RQ's default applies."""

    func: str
    timeout: int | None = None


_WRITERS = get_args(Serializer)


def serializer(value: object) -> Serializer:
    """Return the serializer of the arguments, given by name or as one of RQ's classes."""
    path = value if isinstance(value, str) else f"{getattr(value, '__module__', '')}.{getattr(value, '__name__', '')}"
    return cast("Serializer", validators.one_of(_SERIALIZERS.get(path, value), "serializer", _WRITERS))


def timeout(value: object, name: str) -> int | None:
    """Return the seconds that a job may run; -1 means no limit."""
    return _seconds(value, name, least=1, endless=True)


def lifetime(value: object, name: str) -> int | None:
    """Return the seconds that RQ keeps a result; -1 means no limit."""
    return _seconds(value, name, least=0, endless=True)


def ttl(value: object, name: str = "ttl") -> int | None:
    """Return the seconds that a job may wait in the queue."""
    return _seconds(value, name, least=1, endless=False)


def retry(value: object) -> Retry | None:
    """Return the retries, given as a number, `{"max": 3, "interval": [10, 60]}` or RQ's `Retry`."""
    if value is None:
        return None
    found = _retry_parts(value)
    most: Any = found.get("max")
    intervals, at_front = found.get("interval", 0), found.get("enqueue_at_front", False)
    each = list(intervals) if isinstance(intervals, list | tuple) else [intervals]
    if (
        not validators.is_number(most, 1)
        or not each
        or not all(validators.is_number(i, 0) for i in each)
        or set(found) - _RETRY_NAMES
    ):
        raise BadOption(
            f"retry {value!r:.100} must be a number of tries, {{'max': 3, 'interval': [10, 60]}} or rq.Retry(…)"
        )
    at_front = validators.flag(at_front, "retry's enqueue_at_front")
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
    """Return the callback, given as a function, its dotted path or RQ's `Callback`."""
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
    allowed = f"{least} to {validators.MOST_SECONDS:,} seconds, or text such as '30s', '15m', '1h'"
    allowed += ", or -1 for ever" if endless else ""
    try:
        duration = durations.parse(number, name)
    except DeclarationError:
        raise BadOption(f"{name} {value!r:.60} must be {allowed}") from None
    seconds, rest = divmod(duration, timedelta(seconds=1))
    if rest or not least <= seconds <= validators.MOST_SECONDS:
        raise BadOption(f"{name} {value!r:.60} must be {allowed}, in whole seconds")
    return seconds
