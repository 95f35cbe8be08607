"""When a schedule ticks: makes a Cron or an Every from what was written."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from beat import clock
from beat.cron import Cron
from beat.errors import BadCron, BadDuration, BadOption, did_you_mean
from beat.every import Every
from beat.sources import PRESET

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from beat.options import Duration

Timing = Cron | Every


def timing(
    expression: str | None = None,
    *,
    every: Duration | None = None,
    tz: str = "UTC",
    seconds: bool = False,
    phase: Duration = 0,
    start: datetime | None = None,
    presets: Mapping[str, str] | None = None,
) -> Timing:
    """A Cron for an expression or the name of a preset, an Every for an interval; refuses both and neither."""
    if (expression is None) == (every is None):
        given = "neither an expression nor every=" if every is None else "both an expression and every="
        raise BadOption(
            f"a schedule needs one rule, this has {given}: write @periodic('0 9 * * *') or @periodic(every='15m')"
        )
    if every is not None:
        if seconds:
            raise BadOption("seconds=True is for expressions of six fields; every='10s' needs no such word")
        return _every(every, phase, None if start is None else clock.utc(start, "start"))
    if phase != 0:
        raise BadDuration("phase shifts an interval; an expression says its own minutes, as in '5-59/15 * * * *'")
    return _cron(expression, tz, seconds=seconds, presets=presets or {})


def _every(every: Duration, phase: Duration, start: datetime | None) -> Every:
    try:
        return _shared(every, phase, start)
    except TypeError:  # what cannot be remembered is no duration, and is refused
        return Every(every, phase=phase, start=start)


_shared = functools.lru_cache(maxsize=1024, typed=True)(Every)  # True is no second
"""A timing never changes: many schedules may have one and the same."""


def _cron(expression: str | None, tz: str, *, seconds: bool, presets: Mapping[str, str]) -> Cron:
    if not isinstance(expression, str) or not PRESET.fullmatch(expression):
        return Cron(expression, tz, seconds)  # type: ignore[arg-type]  # Cron refuses what is not text
    if expression not in presets:
        known = f"known presets: {', '.join(sorted(presets))}" if presets else "no presets are set"
        hint = (
            did_you_mean(expression, presets).strip()
            or "Example: '0 9 * * mon-fri', or a preset under [tool.beat.presets]."
        )
        raise BadCron(
            expression, f"is neither five fields nor the name of a preset ({known})", (0, len(expression)), hint
        )
    try:
        return Cron(presets[expression], tz, seconds)
    except BadCron as e:
        e.message = f"preset {expression!r}: {e.message}"
        raise
