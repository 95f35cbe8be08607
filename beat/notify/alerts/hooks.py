"""Provide `@on_event`, which calls functions of the application with alerts."""

from __future__ import annotations

import hashlib
import inspect
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from beat.config import validators
from beat.errors import BadOption
from beat.notify.alerts import rules
from beat.notify.channels import FUNCTION, TIMEOUT, Channel

if TYPE_CHECKING:
    from beat.notify.alerts.rules import Rule

F = TypeVar("F", bound=Callable[[dict[str, Any]], object])

_MOST_TIMEOUT = timedelta(minutes=10)


class Declared(NamedTuple):
    """A function as a channel, and the rule for its alerts."""

    rule: Rule
    channel: Channel


_declared: dict[str, Declared] = {}
_lock = threading.Lock()


def on_event(
    *on: str,
    schedules: str | list[str] | None = None,
    queues: str | list[str] | None = None,
    times: int | None = None,
    after: str | float | timedelta | None = None,
    timeout: str | float | timedelta | None = None,
) -> Callable[[F], F]:
    """Call the decorated function with each alert, as a dict, in one of the schedulers that have imported it.

    Args:
        on: The events, as in `@on_event("failed", "recovered")`.
        schedules: One glob or several that schedule ids must match.
        queues: One glob or several that queue names must match, for "no_worker".
        times: How many runs in a row must have failed.
        after: How long the trouble must have lasted.
        timeout: How long a call may take, 100 ms to 10 minutes.

    A function that raises or takes too long is called again for a day, with the same `incident` and `state`.
    """
    given = {"schedules": schedules, "queues": queues, "times": times, "after": after}
    wanted = {name: value for name, value in given.items() if value is not None}
    limit = validators.span(timeout, "timeout", timedelta(milliseconds=100), _MOST_TIMEOUT) or TIMEOUT
    rules.read({"on": list(on) or None, "channel": FUNCTION, **wanted}, "on_event")

    def declare(function: F) -> F:
        path = _path(function)
        name = f"{path[-60:]}-{hashlib.sha256(repr((path, on, sorted(wanted.items()))).encode()).hexdigest()[:6]}"
        safe = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)
        rule = rules.read({"on": list(on), "channel": safe, "name": safe, **wanted}, "on_event")
        with _lock:
            _declared[safe] = Declared(rule, Channel(safe, FUNCTION, function=function, timeout=limit))
        return function

    return declare


def declared() -> list[Declared]:
    """Return the functions that imported code has declared so far."""
    with _lock:
        return list(_declared.values())


def _path(function: Mapping[str, Any] | Callable[..., object]) -> str:
    path = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise BadOption("on_event takes a plain function: one that is called with an alert, and not awaited")
    try:
        inspect.signature(function).bind({})
    except TypeError:
        raise BadOption(
            f"on_event: {path} must take one argument, the alert: write def {path.rpartition('.')[2]}(alert)"
        ) from None
    except ValueError:
        pass  # a built-in without a signature
    return path
