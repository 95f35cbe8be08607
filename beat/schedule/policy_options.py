"""Check the options of the time policies (misfire, overlap, exclude, jitter), alone and in combination."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast, get_args

from beat.config import validators
from beat.errors import BadOption
from beat.schedule import exclusions, options
from beat.schedule.mistakes import Mistakes
from beat.timing import durations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DAY = timedelta(days=1)


def refuse_contradictions(schedule: Any) -> None:
    """Raise one error for all options that have no effect in this combination."""
    mistakes = Mistakes()
    for name, needed, fits in _TOGETHER:
        if (value := getattr(schedule, name)) is not None and not fits(schedule):
            shown = durations.short(value) if isinstance(value, timedelta) else value
            mistakes.found.append(BadOption(f"{name}={shown!r} says nothing here: {needed}"))
    mistakes.refuse()


_TOGETHER: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    (
        "max_running",
        "write overlap='skip' or overlap='wait' for what becomes of a tick when so many are running",
        lambda s: s.overlap in {"skip", "wait"},
    ),
    ("max_waiting", "ticks wait only with overlap='wait'", lambda s: s.overlap == "wait"),
    ("catchup_limit", "only misfire='all' has more than one tick to catch up with", lambda s: s.misfire == "all"),
    ("catchup_window", "with misfire='skip' no late tick fires, however old", lambda s: s.misfire != "skip"),
)


def _misfire(value: object) -> options.Misfire:
    return cast("options.Misfire", validators.one_of(value, "misfire", get_args(options.Misfire)))


def _overlap(value: object) -> options.Overlap:
    return cast("options.Overlap", validators.one_of(value, "overlap", get_args(options.Overlap)))


CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "misfire": lambda s: _misfire(s.misfire),
    "misfire_after": lambda s: validators.span(s.misfire_after, "misfire_after"),
    "catchup_window": lambda s: validators.span(s.catchup_window, "catchup_window"),
    "catchup_limit": lambda s: validators.number(s.catchup_limit, "catchup_limit", 100),
    "overlap": lambda s: _overlap(s.overlap),
    "max_running": lambda s: validators.number(s.max_running, "max_running", 100),
    "max_waiting": lambda s: validators.number(s.max_waiting, "max_waiting", 1000),
    "max_runs": lambda s: validators.number(s.max_runs, "max_runs"),
    "exclude": lambda s: exclusions.read(s.exclude),
    "jitter": lambda s: validators.span(s.jitter, "jitter", most=_DAY),
}
"""The check of each option."""
