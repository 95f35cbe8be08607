"""Build the rule of a schedule from its options: a Cron, an Every or a Follows."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from beat.config.sources import PRESET
from beat.errors import BadCron, BadDuration, BadOption, did_you_mean
from beat.schedule.follows import Follows
from beat.timing import clock
from beat.timing.cron import Cron
from beat.timing.interval import Every
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from beat.timing.durations import Duration

Clocked = Cron | Every
Timing = Clocked | Follows
_EXAMPLES = "write @periodic('0 9 * * *') or @periodic(every='15m')"


def timing(
    expression: str | None = None,
    *,
    every: Duration | None = None,
    follows: str | None = None,
    tz: str = "UTC",
    seconds: bool = False,
    phase: Duration = 0,
    start: datetime | None = None,
    presets: Mapping[str, str] | None = None,
) -> Timing:
    """Return a Follows for a schedule's id, or else the rule of `clocked`; raise unless exactly one is given."""
    if follows is None:
        return clocked(expression, every=every, tz=tz, seconds=seconds, phase=phase, start=start, presets=presets)
    if expression is not None or every is not None:
        raise _two_rules("an expression and follows=" if every is None else "every= and follows=")
    if seconds or phase != 0:
        named = "seconds=True" if seconds else f"phase={phase!r:.60}"
        raise BadOption(f"{named} says nothing here: follows={follows!r:.120} has no times of its own: leave it out")
    return Follows(follows)


def clocked(
    expression: str | None = None,
    *,
    every: Duration | None = None,
    tz: str = "UTC",
    seconds: bool = False,
    phase: Duration = 0,
    start: datetime | None = None,
    presets: Mapping[str, str] | None = None,
) -> Clocked:
    """Return a Cron for an expression or preset, or an Every for an interval; raise unless exactly one is given."""
    if expression is not None and every is not None:
        raise _two_rules("an expression and every=")
    if expression is None and every is None:
        raise BadOption(f"a schedule needs one rule, this has neither an expression nor every=: {_EXAMPLES}")
    if every is not None:
        if seconds:
            raise BadOption("seconds=True is for expressions of six fields; every='10s' needs no such word")
        return _every(every, phase, None if start is None else clock.utc(start, "start"))
    if phase != 0:
        raise BadDuration("phase shifts an interval; an expression says its own minutes, as in '5-59/15 * * * *'")
    return _cron(expression, tz, seconds=seconds, presets=presets or {})


def _two_rules(given: str) -> BadOption:
    return BadOption(f"a schedule needs one rule, this has both {given}: {_EXAMPLES}")


def _every(every: Duration, phase: Duration, start: datetime | None) -> Every:
    try:
        return _shared(every, phase, start)
    except TypeError:  # an unhashable value is not a duration, so Every raises
        return Every(every, phase=phase, start=start)


_shared = functools.lru_cache(maxsize=1024, typed=True)(Every)  # typed, so that True is not mistaken for 1
"""Every with a cache; intervals are immutable, so schedules can share them."""


def _cron(expression: str | None, tz: str, *, seconds: bool, presets: Mapping[str, str]) -> Cron:
    if not isinstance(expression, str) or not PRESET.fullmatch(expression):
        return Cron(expression, tz, seconds)  # type: ignore[arg-type]  # Cron raises for other types
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


def checked(value: object, seed: str) -> Timing:
    """Return an existing timing for the schedule whose id is `seed`; raise BadOption for other types."""
    if isinstance(value, Cron | Every | Follows):
        return value.seeded(seed) if isinstance(value, Cron) else value
    raise BadOption(
        f"timing must be a Cron, an Every or a Follows, not {type(value).__name__}: write timing=Cron('0 9 * * *')"
    )


def tz_of(value: str | None, timing: Timing) -> str:
    """Return the time zone of a schedule; raise BadOption if it differs from that of its expression."""
    own = timing.tz if isinstance(timing, Cron) else "UTC"
    name = own if value is None else zone(value).name
    if isinstance(timing, Cron) and name != own:
        raise BadOption(f"tz {name!r} is not the expression's own {own!r}: write timing=Cron('…', tz={name!r})")
    return name
