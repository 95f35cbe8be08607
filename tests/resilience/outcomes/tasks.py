"""The jobs of these tests, each of which says what it does; and their schedules, which never fire by themselves.

Each schedule has a queue of its own name, so that a test chooses who works for it.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import rq

from beat import register
from beat.jobs import outcomes
from tests.support.rq_worker import attempt, say

if TYPE_CHECKING:
    from redis import Redis
    from rq.job import Job

SELDOM = "0 0 29 2 *"
outcomes.LISTEN_MS = 2_000  # the schedulers of these tests begin to listen with each test


# --- jobs ------------------------------------------------------------------------------------------------------------


def good(result: Any = None) -> Any:
    say("start")
    say("end")
    return result


async def coroutine() -> int:
    say("start")
    say("end")
    return 1


def bad(failures: int = 1_000_000) -> str:
    """Fails so many times."""
    say("start")
    if attempt() <= failures:
        say("raise")
        raise KeyError("on purpose")
    say("end")
    return "in the end"


def slow(seconds: float = 600) -> None:
    """Wakes up now and then, as a signal can only be heard between two instructions."""
    say("start")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.02)
    say("end")


def until_told() -> None:
    """Goes on until the file with its log's name and `.go` is there."""
    say("start")
    while not os.path.exists(os.environ["STEPS_LOG"] + ".go"):  # noqa: PTH110 (as little as can be between two looks)
        time.sleep(0.02)
    say("end")


def leaves(code: int) -> None:
    say("start")
    os._exit(code)


def exits() -> None:
    say("start")
    sys.exit(3)


def asks_again(times: int) -> rq.Retry | None:
    """Asks RQ for another attempt, so many times."""
    say("start")
    if attempt() <= times:
        say("again")
        return rq.Retry(max=2)
    say("end")
    return None


class Hostile:
    """What does harm when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {os.environ['STEPS_LOG']}.harm",)


def hostile() -> Hostile:
    say("start")
    say("end")
    return Hostile()


def hostile_report() -> dict[str, Any]:
    say("start")
    say("end")
    return {"success": False, "message": "all but this is hostile", "details": {"harm": Hostile()}}


def unpicklable() -> Any:
    say("start")
    say("end")
    return lambda: None


# --- callbacks -------------------------------------------------------------------------------------------------------


def succeeded_badly(job: Job, _connection: Redis, _result: Any) -> None:
    say("callback", str(job.id))
    raise RuntimeError("the callback itself")


def failed_badly(job: Job, _connection: Redis, *_exception: object) -> None:
    say("callback", str(job.id))
    raise RuntimeError("the callback itself")


def stopped_badly(job: Job, _connection: Redis) -> None:
    say("callback", str(job.id))
    raise RuntimeError("the callback itself")


def stopped_slowly(job: Job, _connection: Redis) -> None:
    say("callback", str(job.id))
    time.sleep(2.5)  # meanwhile a beat looks twice whether it has ended


# --- schedules -------------------------------------------------------------------------------------------------------

TOLD = {"success": True, "message": "42 rows", "details": {"rows": 42}}
TOLD_BAD = {"success": False, "message": "the disk is full", "details": {"free": 0}}

SCHEDULES: dict[str, tuple[Any, dict[str, Any]]] = {
    "good": (good, {}),
    "good-by-name": (good, {"kwargs": {"result": 1}}),
    "coroutine": (coroutine, {}),
    "in-json": (good, {"serializer": "json", "args": [{"a": 1}]}),
    "told": (good, {"args": [TOLD]}),
    "told-in-json": (good, {"args": [TOLD], "serializer": "json"}),
    "told-bad": (good, {"args": [TOLD_BAD]}),
    "told-bad-in-json": (good, {"args": [TOLD_BAD], "serializer": "json"}),
    "nearly-told": (good, {"args": [{"success": "no", "message": "not a bool"}]}),
    "hostile": (hostile, {}),
    "hostile-report": (hostile_report, {}),
    "unpicklable": (unpicklable, {}),
    "result-for-0s": (good, {"result_ttl": 0}),
    "result-for-1s": (good, {"result_ttl": 1}),
    "result-for-ever": (good, {"result_ttl": -1}),
    "bad": (bad, {}),
    "bad-in-json": (bad, {"serializer": "json"}),
    "failure-for-0s": (bad, {"failure_ttl": 0}),
    "failure-for-1s": (bad, {"failure_ttl": 1}),
    "too-slow": (slow, {"job_timeout": 1}),
    "exits": (exits, {}),
    "leaves-0": (leaves, {"args": [0]}),
    "leaves-1": (leaves, {"args": [1]}),
    "good-called-back-badly": (good, {"on_success": succeeded_badly}),
    "bad-called-back-badly": (bad, {"on_failure": failed_badly}),
    "slow": (slow, {}),
    "slow-for-5s": (slow, {"job_timeout": 5}),
    "slow-called-back-badly": (slow, {"on_failure": failed_badly}),
    "stopped-badly": (slow, {"on_stopped": stopped_badly}),
    "replaced-slowly": (slow, {"on_stopped": stopped_slowly, "overlap": "replace"}),
    "until-told": (until_told, {}),
    "until-told-for-ever": (until_told, {"job_timeout": -1}),
    "until-told-or-retried": (until_told, {"retry": 1}),
    "slow-or-retried": (slow, {"retry": 2}),
    "lapses": (good, {"ttl": 1}),
    "bad-once": (bad, {"args": [1]}),
    "retried-at-once": (bad, {"args": [2], "retry": 2}),
    "given-up": (bad, {"retry": 2}),
    "retried-later": (bad, {"args": [1], "retry": {"max": 2, "interval": 1}}),
    "retried-much-later": (bad, {"args": [1], "retry": {"max": 2, "interval": 600}}),
    "asks-again": (asks_again, {"args": [2]}),
    "asks-too-often": (asks_again, {"args": [1_000]}),
}

for name, (func, options) in SCHEDULES.items():
    register(func, SELDOM, id=name, queue=name, **options)
