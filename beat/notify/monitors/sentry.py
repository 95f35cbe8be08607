"""Build check-ins for Sentry Crons: an envelope with one item, which also configures the monitor.

Sentry creates or updates the monitor from that configuration, so no schedule has to be entered there. The configuration
is omitted if Sentry's format cannot express the schedule exactly.
"""

from __future__ import annotations

import json
import math
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from beat._version import __version__
from beat.notify.monitors.pings import Request
from beat.schedule import monitor
from beat.timing.cron import Cron
from beat.timing.interval import Every

if TYPE_CHECKING:
    from beat.config import sentry_dsn
    from beat.notify.monitors.pings import Ping
    from beat.schedule.schedule import Schedule

_STATUS = {"start": "in_progress", "ok": "ok", "fail": "error"}
_UNITS = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
}
_WHOLE_MINUTES = (0,)
_MOST_MINUTES = 40_320
"""Four weeks: Sentry rejects a check-in with a larger value."""
_ENVIRONMENT = re.compile(r"[^\n\r\f/]{1,64}")


def request(ping: Ping, dsn: sentry_dsn.Dsn, environment: str | None = None) -> Request:
    """Return the check-in of a ping; the end of a run has the same check-in id as its start and replaces it.

    Without an environment, or with one that Sentry rejects, Sentry uses its default, `production`.
    """
    item: dict[str, Any] = {
        "check_in_id": ping.run_id.hex,
        "monitor_slug": monitor.slug_of(ping.schedule),
        "status": _STATUS[ping.kind],
    }
    if ping.seconds is not None:
        item["duration"] = ping.seconds
    if environment and _ENVIRONMENT.fullmatch(environment):
        item["environment"] = environment
    if found := config(ping.schedule):
        item["monitor_config"] = found
    lines = [{"event_id": ping.run_id.hex}, {"type": "check_in", "content_type": "application/json"}, item]
    auth = f"Sentry sentry_version=7, sentry_client=beat/{__version__}, sentry_key={dsn.key}"
    headers = {"Content-Type": "application/x-sentry-envelope", "X-Sentry-Auth": auth}
    return Request(dsn.host, dsn.envelopes, headers, "\n".join(map(json.dumps, lines)).encode())


def config(schedule: Schedule) -> dict[str, Any]:
    """Return the configuration of the monitor, or an empty dict if Sentry could not predict every tick.

    Sentry cannot predict the ticks of a schedule that has exclusions, an end, `max_runs`, or a rule unknown to Sentry.
    """
    when = None if schedule.exclude or schedule.end or schedule.max_runs else _when(schedule)
    if when is None or schedule.monitor is None:
        return {}
    late = (schedule.monitor.grace or timedelta(0)) + (schedule.jitter or timedelta(0))
    limit = schedule.monitor.max_runtime or timedelta(seconds=max(schedule.job_timeout or 0, 0))
    return {
        "schedule": when,
        **({"timezone": str(schedule.tz)} if when["type"] == "crontab" else {}),
        **({"checkin_margin": _minutes(late)} if late else {}),
        **({"max_runtime": _minutes(limit)} if limit else {}),
    }


def _when(schedule: Schedule) -> dict[str, Any] | None:
    timing = schedule.timing
    if isinstance(timing, Cron):
        if timing.chosen.seconds != _WHOLE_MINUTES:
            return None
        fields = timing.normalised.split()
        return {"type": "crontab", "value": " ".join(fields[1:] if timing.seconds else fields)}
    if isinstance(timing, Every):
        for unit, length in _UNITS.items():
            if timing.period % length == timedelta(0):
                return {"type": "interval", "value": timing.period // length, "unit": unit}
    return None


def _minutes(length: timedelta) -> int:
    return min(max(1, math.ceil(length / _UNITS["minute"])), _MOST_MINUTES)
