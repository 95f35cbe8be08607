"""Write definitions to JSON for Redis, and read them back in processes that lack the application's code.

Arguments may be of classes that only the application can import, so they stay in the job template. A schedule that was
read back has no arguments, but everything that determines its ticks and the queues of its jobs.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from beat.errors import DeclarationError
from beat.schedule import digests, policy_options, routing_options
from beat.schedule.follows import Follows
from beat.schedule.schedule import Schedule
from beat.timing import clock, durations
from beat.timing.cron import Cron
from beat.timing.interval import Every

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from beat.schedule.rule import Timing

_POLICIES = (*policy_options.CHECKS, *routing_options.CHECKS)
_PLAIN = (
    "id", "func", "tz", "enabled", "description", "priority", "queue", "job_timeout", "result_ttl", "failure_ttl",
    "ttl", "at_front", "serializer", *_POLICIES, "monitor",
)  # fmt: skip
_DEFAULTS = {each.name: each.default for each in fields(Schedule)}
_written = json.JSONEncoder(ensure_ascii=False).encode
_short = json.JSONEncoder(separators=(",", ":")).encode


def write(schedule: Schedule) -> str:
    """Return the definition as JSON, without options that are empty or None."""
    own = {
        "id": schedule.id,
        "args": _shown(list(schedule.args)),
        "kwargs": _shown(dict(schedule.kwargs)),
        "meta": _shown(dict(schedule.meta)),
        "declared": schedule.declared and str(schedule.declared),
    }
    return f"{_json(own)[:-1]}, {_common(schedule)[1:]}"


def _common(schedule: Schedule) -> str:
    bounds = {"start": schedule.start and clock.text(schedule.start), "end": schedule.end and clock.text(schedule.end)}
    nested = ("retry", "on_success", "on_failure", "on_stopped")
    rest = {name: (value := getattr(schedule, name)) and asdict(value) for name in nested}
    plain = {name: digests.plain(getattr(schedule, name)) for name in _PLAIN[1:]}
    plain |= {name: None for name in _POLICIES if getattr(schedule, name) == _DEFAULTS[name]}
    return _json(plain | rule(schedule) | bounds | rest)


def _json(values: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in values.items() if value not in (None, [], {})}
    text = _written(kept)
    return text if _is_unicode(text) else json.dumps(kept)


def read(text: str) -> Schedule:
    """Return the schedule of a definition, without its arguments; raise DeclarationError if it is malformed."""
    try:
        found: Mapping[str, Any] = json.loads(text)
        plain = {name: found[name] for name in _PLAIN if name in found}
        return Schedule(**plain, timing=_timing(found), start=_instant(found, "start"), end=_instant(found, "end"))
    except DeclarationError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError) as e:
        raise DeclarationError(f"cannot be read: {type(e).__name__}: {e!s:.200}") from e


def rule(schedule: Schedule) -> dict[str, Any]:
    """Return the rule of a schedule under the names of its options, such as `{"every": "15m"}`."""
    timing = schedule.timing
    if isinstance(timing, Follows):
        return {"follows": timing.id}
    if isinstance(timing, Cron):
        return {"cron": timing.expression, **({"seconds": True} if timing.seconds else {})}
    named: dict[str, Any] = {"every": durations.short(timing.period)}
    if timing.phase:
        named["phase"] = durations.short(timing.phase)
    if timing.start:
        named["anchor"] = clock.text(timing.start)
    return named


def ticks(schedule: Schedule) -> str:
    """Return everything that determines the ticks as JSON, for the ledger.

    Each `H` is replaced by its value, because the JSON is read back without the schedule's id.
    """
    timing = schedule.timing
    picked = {"cron": timing.normalised} if isinstance(timing, Cron) and timing.hashed else {}
    bounds = {name: digests.plain(at) for name in ("start", "end", "max_runs") if (at := getattr(schedule, name))}
    return _short({**rule(schedule), **picked, "tz": str(schedule.tz), **bounds})


def ticking(found: Mapping[str, Any]) -> Schedule:
    """Return a schedule that only has the ticks that `ticks` wrote; raise DeclarationError for other values.

    `found` can also be a whole definition, whose id then decides each `H`.
    """
    nobody = "ticks" if found.get("follows") != "ticks" else "tick"  # a schedule must not follow itself
    return read(json.dumps({"id": nobody, **found, "func": "nobody.knows"}))


def _timing(found: Mapping[str, Any]) -> Timing:
    if "follows" in found:
        return Follows(found["follows"])
    if "every" in found:
        return Every(found["every"], found.get("phase", 0), _instant(found, "anchor"))
    return Cron(found["cron"], found["tz"], found.get("seconds", False))


def _instant(found: Mapping[str, Any], name: str) -> datetime | None:
    return clock.read(found[name]) if name in found else None


def _shown(value: Any) -> Any:
    """Return arguments for display: unchanged if JSON can write them, otherwise their repr."""
    if not value:
        return value
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return _repr(value)
    return value


def _repr(value: object) -> str:
    try:
        return f"{value!r:.2000}"
    except Exception:  # noqa: BLE001 (a user's __repr__ may raise anything)
        return f"<{type(value).__name__}>"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True
