"""A schedule from the options that people write: those of `@periodic`, of `Client.add` and of `beat add`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from beat import checks, options
from beat.errors import BadOption
from beat.schedule import Schedule
from beat.timing import timing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.options import Options

_TIMING = ("every", "follows", "seconds", "phase")


class Defaults(Protocol):
    """What is taken where an option is not given: that of the settings."""

    @property
    def tz(self) -> str:
        """The zone."""

    @property
    def queues(self) -> Mapping[str, str]:
        """The queue of each priority."""

    @property
    def presets(self) -> Mapping[str, str]:
        """Names for expressions."""


def declare(path: str, expression: str | None, given: Options, defaults: Defaults, **more: Any) -> Schedule:
    """The schedule of the function with that path; refuses what cannot be."""
    options.refuse_unknown(given)
    rest: dict[str, Any] = {**more, **{name: value for name, value in given.items() if name not in _TIMING}}
    rest.setdefault("tz", defaults.tz)
    queues: object = given.get("queues")
    named = queues[0] if isinstance(queues, list | tuple) and queues else None  # a document has it beside the others
    if named is not None and given.get("queue") not in (None, named):
        raise BadOption(f"queue={given['queue']!r:.60} and queues= are two places: leave one of them out")
    if not queues and "queue" not in rest:
        rest["queue"] = defaults.queues[options.priority(given.get("priority", "normal"))]
    when = timing(
        expression,
        every=given.get("every"),
        follows=given.get("follows"),
        tz=rest["tz"],
        seconds=checks.flag(given.get("seconds", False), "seconds"),
        phase=given.get("phase", 0),
        start=given.get("start"),
        presets=defaults.presets,
    )
    return Schedule(func=path, timing=when, **rest)
