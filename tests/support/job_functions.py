"""What the tests of jobs schedule: functions at the top of a module, where a worker finds them.

What they have heard they write down in Redis, under `heard:<job id>`.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import rq
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from beat.jobs.current_run import get_current_run

if TYPE_CHECKING:
    from redis import Redis
    from rq.job import Job


@dataclass(frozen=True)
class Owner:
    """A class of the application, which beat cannot always import."""

    name: str


def anything(*args: Any, **kwargs: Any) -> list[Any]:
    return [list(args), kwargs]


async def slowly(*args: Any, **kwargs: Any) -> list[Any]:
    return [list(args), kwargs]


def tell_the_run() -> str | dict[str, str | int | None] | None:
    run = get_current_run()
    return None if run is None else run.plain()


async def tell_the_run_slowly() -> str | dict[str, str | int | None] | None:
    return tell_the_run()


def fail() -> None:
    raise LookupError("on purpose")


def succeed_in_the_end(failures: int) -> int:
    """Fails so many times, and says each time which run it is."""
    job = rq.get_current_job()
    assert job is not None
    tries: int = job.connection.rpush(f"heard:{job.id}", json.dumps(tell_the_run()))
    if tries <= failures:
        fail()
    return tries


def never_end() -> None:
    time.sleep(600)


def succeeded(job: Job, connection: Redis, result: Any) -> None:
    _hear(job, connection, "succeeded", result)


def failed(job: Job, connection: Redis, kind: type[BaseException], _error: object, _trace: object) -> None:
    _hear(job, connection, "failed", kind.__name__)


def stopped(job: Job, connection: Redis) -> None:
    _hear(job, connection, "stopped", None)


def _hear(job: Job, connection: Redis, what: str, about: Any) -> None:
    connection.rpush(f"heard:{job.id}", json.dumps([what, about, job.meta["beat"]]))


def go_on_with_the_trace() -> dict[str, Any]:
    """As opentelemetry-instrumentation-rq does around a job: its span is a child of what the meta names."""
    job = rq.get_current_job()
    assert job is not None
    parent = TraceContextTextMapPropagator().extract(carrier=job.meta)
    with trace.get_tracer("app").start_as_current_span("perform", context=parent):
        run = get_current_run()
        return {"meta": job.meta, "run": run and run.plain()}
