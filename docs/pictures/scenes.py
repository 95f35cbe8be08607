"""Define the scene of each picture."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from docs.pictures.stage import Scene

_S, _M, _H, _D = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
_BACK = _NINE + 6 * _M + 10 * _S
_DAYS = datetime(2026, 12, 21, 9, tzinfo=UTC)


def _misfire(name: str, **options: Any) -> Scene:
    """Return a scene in which no scheduler runs for almost five minutes."""
    return Scene(
        name,
        {"job": {"every": "1m", "misfire_after": "90s", **options}},
        lasts=9 * _M + 40 * _S,
        workers=1,
        takes=20 * _S,
        away=(_NINE + _M + 30 * _S, _BACK),
        spans={"misfire_after": (_BACK - 90 * _S, _BACK)},
    )


def _overlap(name: str, **options: Any) -> Scene:
    """Return a scene with runs that take longer than a minute."""
    return Scene(name, {"job": {"every": "1m", **options}}, lasts=9 * _M + 40 * _S, takes=130 * _S)


def _days(name: str, **options: Any) -> Scene:
    return Scene(
        name,
        {"job": {"cron": "0 9 * * *", **options}},
        start=_DAYS,
        lasts=9 * _D + 6 * _H,
        workers=0,
        every=_D,
        says="%d %b",
        step=_H,
    )


def _place(name: str, schedules: dict[str, dict[str, Any]], **told: Any) -> Scene:
    """Return a scene of schedules, or of the queues of one schedule, over six minutes."""
    return Scene(name, schedules, **{"lasts": 5 * _M + 45 * _S, "page": "places", **told})


def _route(name: str, route: str, *queues: str, **told: Any) -> Scene:
    return _place(name, {"job": {"every": "1m", "queues": [*queues], "route": route}}, queues=queues, **told)


SCENES = [
    _misfire("misfire-once"),
    _misfire("misfire-skip", misfire="skip"),
    _misfire("misfire-all", misfire="all"),
    replace(
        _misfire("catchup-window", misfire="all", catchup_window="3m"),
        spans={"misfire_after": (_BACK - 90 * _S, _BACK), "catchup_window": (_BACK - 3 * _M, _BACK)},
    ),
    _overlap("overlap-allow"),
    _overlap("overlap-skip", overlap="skip"),
    _overlap("overlap-wait", overlap="wait"),
    _overlap("max-waiting", overlap="wait", max_waiting=2),
    _overlap("overlap-replace", overlap="replace"),
    _overlap("max-running", overlap="skip", max_running=2),
    replace(
        _days("start-end", start=_DAYS + 2 * _D, end=_DAYS + 6 * _D),
        spans={"start to end": (_DAYS + 2 * _D, _DAYS + 6 * _D)},
    ),
    replace(_overlap("max-runs", max_runs=4), takes=25 * _S),
    _days("exclude", exclude=["2026-12-24..2026-12-26"]),
    Scene(
        "jitter",
        {name: {"every": "1m", "jitter": "40s"} for name in ("north", "east", "south", "west")},
        lasts=5 * _M + 45 * _S,
    ),
    Scene(
        "hash",
        {"midnight": {"cron": "0 0 * * *"}}
        | {name: {"cron": "H H * * *"} for name in ("backup", "invoices", "mails", "report", "search")},
        start=datetime(2026, 11, 16, tzinfo=UTC),
        lasts=_D - _M,
        every=3 * _H,
        step=_H,
    ),
    _place(
        "group-wait",
        {name: {"every": "3m", "group": "reports"} for name in ("north", "east", "south")},
        groups={"reports": {"max_running": 2}},
        takes=70 * _S,
    ),
    _place(
        "group-skip",
        {
            "disk": {"every": "1m", "group": "alerts"},
            "load": {"every": "1m", "phase": "30s", "group": "alerts"},
        },
        groups={"alerts": {"max_running": 1, "when_full": "skip"}},
        takes=70 * _S,
    ),
    _route("round-robin", "round_robin", "left", "right"),
    _route(
        "failover",
        "failover",
        "near",
        "far",
        off={"near": (_NINE + 90 * _S, _NINE + 210 * _S)},
        spans={"nobody at near": (_NINE + 90 * _S, _NINE + 210 * _S)},
    ),
    _route("broadcast", "broadcast", "host-a", "host-b", "host-c"),
    _place(
        "slow-lane",
        {
            "job": {
                "every": "30s",
                "queue": "quick",
                "slow_queue": "slow",
                "slow_after": "20s",
                "slow_times": 2,
                "slow_window": "2m",
            }
        },
        queues=("quick", "slow"),
        takes=15 * _S,
        longer=(_NINE + 60 * _S, _NINE + 135 * _S, 25 * _S),
        spans={"runs are slow": (_NINE + 60 * _S, _NINE + 135 * _S)},
    ),
    _place(
        "requires",
        {"extract": {"every": "1m"}, "load": {"every": "1m", "phase": "40s", "requires": "extract"}},
        fails=(_NINE + 2 * _M, _NINE + 3 * _M),
    ),
    _place(
        "follows",
        {"extract": {"every": "1m"}, "load": {"follows": "extract"}},
        fails=(_NINE + 2 * _M, _NINE + 3 * _M),
    ),
]
"""All scenes, in the order of the page."""
