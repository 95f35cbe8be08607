"""The jobs of the ledger's nemesis: of every kind of end that a job can have by itself, once in a few seconds."""

from __future__ import annotations

import os
import random
import time
from typing import Any

from beat import register
from tests.support.rq_worker import attempt, say

MIXED, JSON = "mixed", "json"


def quick() -> None:
    say("start")
    say("end")


def nap() -> None:
    say("start")
    time.sleep(random.uniform(0.05, 0.8))  # noqa: S311 (no secret)
    say("end")


def fail(attempts: int = 1_000) -> None:
    """Fails in so many attempts."""
    say("start")
    if attempt() <= attempts:
        say("raise")
        raise KeyError("on purpose")
    say("end")


def sleep() -> None:
    say("start")
    while True:
        time.sleep(0.02)


def leave(code: int) -> None:
    say("start")
    os._exit(code)


def tell() -> dict[str, Any]:
    say("start")
    say("told")
    return {"success": False, "message": "told"}


KINDS: dict[str, tuple[Any, int, dict[str, Any]]] = {
    "quick": (quick, 1, {}),
    "quick-in-json": (quick, 2, {"queue": JSON, "serializer": "json"}),
    "kept-for-no-time": (quick, 2, {"result_ttl": 0}),
    "naps": (nap, 1, {}),
    "naps-in-json": (nap, 2, {"queue": JSON, "serializer": "json"}),
    "naps-and-may-again": (nap, 1, {"retry": 1}),
    "fails": (fail, 2, {}),
    "fails-in-json": (fail, 3, {"queue": JSON, "serializer": "json"}),
    "fails-and-is-forgotten": (fail, 3, {"failure_ttl": 0}),
    "fails-at-first": (fail, 1, {"args": [1], "retry": 2}),
    "fails-at-first-and-waits": (fail, 3, {"args": [1], "retry": {"max": 2, "interval": 1}}),
    "fails-for-ever": (fail, 3, {"retry": 1}),
    "too-slow": (sleep, 6, {"job_timeout": 1}),
    "leaves": (leave, 4, {"args": [1], "queue": JSON, "serializer": "json"}),  # a SimpleWorker would leave with it
    "slips-away": (leave, 8, {"args": [0], "queue": JSON, "serializer": "json"}),
    "tells": (tell, 2, {}),
}
"""Id → function, period in seconds, options."""

for name, (func, seconds, options) in KINDS.items():
    register(func, every=seconds, id=name, **{"queue": MIXED, **options})
