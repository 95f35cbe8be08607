"""Build a schedule from the options of `@periodic`, `Client.add` or `beat add`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from beat.config import validators
from beat.errors import BadOption
from beat.schedule import options
from beat.schedule.mistakes import Mistakes
from beat.schedule.rule import timing
from beat.schedule.schedule import Schedule, check_values
from beat.timing.interval import Every
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.schedule.rule import Timing

_SCHEDULE_OPTIONS = tuple(
    name for name in options.Options.__annotations__ if name not in {"every", "follows", "seconds", "phase"}
)
_ANY_TIMING = Every("1d")
"""Replaces a rejected rule, so that the other options can still be checked."""


class Defaults(Protocol):
    """The settings that apply to options that are not given."""

    @property
    def tz(self) -> str:
        """Return the name of the default time zone."""

    @property
    def queues(self) -> Mapping[str, str]:
        """Return the queue of each priority."""

    @property
    def presets(self) -> Mapping[str, str]:
        """Return the preset expressions by name."""


def declare(path: str, expression: str | None, given: Mapping[str, Any], defaults: Defaults, **more: Any) -> Schedule:
    """Return a schedule for the function at `path`; raise one error that lists every mistake in the options."""
    mistakes = Mistakes()
    with mistakes:
        options.refuse_unknown(given)
    if mistakes.found:
        expression, given = options.corrected(expression, given)
    rest: dict[str, Any] = {**more, **{name: given[name] for name in _SCHEDULE_OPTIONS if name in given}}
    rest.setdefault("tz", defaults.tz)
    tz = "UTC"
    with mistakes, options.Reading("tz"):
        tz = zone(rest["tz"]).name
    with mistakes, options.Reading("queue"):
        rest |= _queue(given, defaults)
    when: Timing = _ANY_TIMING
    with mistakes:
        when = timing(
            expression,
            every=given.get("every"),
            follows=given.get("follows"),
            tz=tz,
            seconds=validators.flag(given.get("seconds", False), "seconds"),
            phase=given.get("phase", 0),
            start=given.get("start"),
            presets=defaults.presets,
        )
    if mistakes.found:
        with mistakes:
            check_values({"func": path, "timing": when, **rest})
        mistakes.refuse()
    return Schedule(func=path, timing=when, **rest)


def _queue(given: Mapping[str, Any], defaults: Defaults) -> dict[str, str]:
    """Return the priority's queue as an option, unless the options name queues; reject conflicting queues."""
    queues: object = given.get("queues")
    named = queues[0] if isinstance(queues, list | tuple) and queues else None  # exports hold queue and queues
    if named is not None and given.get("queue") not in (None, named):
        raise BadOption(f"pass either queue={given['queue']!r:.60} or queues=, not both")
    if queues or "queue" in given:
        return {}
    return {"queue": defaults.queues[options.priority(given.get("priority", "normal"))]}
