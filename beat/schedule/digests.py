"""Compute digests of definitions.

A *kind* is the digest of a definition without its id and its arguments, so that many schedules share one.
"""

from __future__ import annotations

import functools
import hashlib
import json
import operator
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from beat.schedule import rq_options
from beat.schedule.follows import Follows
from beat.schedule.monitor import Monitor
from beat.schedule.requires import Requires
from beat.timing import clock, durations
from beat.timing.cron import Cron
from beat.timing.interval import Every

COMMON = (
    "func", "timing", "tz", "start", "end", "serializer", "enabled", "description", "priority", "queue", "job_timeout",
    "result_ttl", "failure_ttl", "ttl", "retry", "at_front", "on_success", "on_failure", "on_stopped",
    "misfire", "misfire_after", "catchup_window", "catchup_limit", "overlap", "max_running", "max_waiting", "max_runs",
    "exclude", "jitter", "queues", "route", "group", "slow_queue", "slow_after", "slow_times", "slow_window",
    "requires", "monitor",
)  # fmt: skip
_MOST = 1024
_PLAIN = {type(None), str, int, bool}
_values = operator.attrgetter(*COMMON)
written = json.JSONEncoder(sort_keys=True).encode
"""Encode plain values as JSON that is the same in every process."""


def kind(schedule: Any) -> str:
    """Return the kind of a schedule whose values were checked."""
    return _kind(str(schedule.timing), _values(schedule))  # equal timings can be spelled differently


@functools.lru_cache(maxsize=_MOST)
def _kind(timing: str, values: tuple[Any, ...]) -> str:
    return digest(written([timing, *map(plain, values)]))


def plain(value: Any) -> Any:
    """Convert a value of a schedule to plain JSON types, the same in every process."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, datetime):
        return clock.text(value)
    if isinstance(value, timedelta):
        return durations.short(value)
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, rq_options.Retry | rq_options.Callback):
        return asdict(value)
    if isinstance(value, Monitor):
        return value.written()
    if isinstance(value, Requires):
        return str(value)
    return value.meaning if isinstance(value, Cron | Every | Follows) else value


def digest(text: str) -> str:
    """Return the first 16 hex digits of the text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
