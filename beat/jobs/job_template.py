"""A schedule's RQ job, as the fields of its hash: what `Queue.enqueue` would write, made by RQ's own code.

All that is the same in every run is written once, as the *template*: `fire` copies it and adds the two times and the
rest of the meta. The meta is written in two parts, because whoever fires may be unable to import the classes in it::

    template(schedule)["meta"]   the user's meta, left open
    run_block(run, serializer)   the entry `beat`, and the end

Put together they are what RQ's serializer reads as `{**schedule.meta, "beat": run.plain()}`.
"""

from __future__ import annotations

import functools
import inspect
import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import rq
from rq import registry
from rq.command import PUBSUB_CHANNEL_TEMPLATE, send_command
from rq.executions import Execution, ExecutionRegistry
from rq.job import Job
from rq.results import Result
from rq.serializers import DefaultSerializer, JSONSerializer
from rq.suspension import WORKERS_SUSPENDED
from rq.worker_registration import WORKERS_BY_QUEUE_KEY

from beat.errors import BadArguments, BadOption
from beat.jobs import metadata
from beat.jobs.metadata import pickled
from beat.jobs.report import safe_pickle
from beat.schedule.run import META_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.schedule import rq_options
    from beat.schedule.run import Run
    from beat.schedule.schedule import Schedule

LEAST_TTL = 60
"""Seconds for which even a result that nobody wants is kept, so that its outcome can be recorded."""
QUEUES_KEY: str = rq.Queue.redis_queues_keys
RESULTS_PREFIX: str = Result.get_key("")  # type: ignore[no-untyped-call]
"""Followed by a job id: the stream of its results."""
EXECUTIONS_PREFIX: str = ExecutionRegistry.key_template.format("")
"""Followed by a job id: the set of its executions."""
WORKER_PREFIX: str = rq.Worker.redis_worker_namespace_prefix
"""Followed by the name of a worker: its hash."""
SUSPENDED_KEY: str = WORKERS_SUSPENDED
"""There while `rq suspend` keeps all workers from taking jobs."""
CHANNEL_PREFIX: str = PUBSUB_CHANNEL_TEMPLATE % ""
"""Followed by the name of a worker: the channel on which it takes commands, for as long as it lives."""

_SERIALIZERS: Mapping[str, Any] = {"pickle": DefaultSerializer, "json": JSONSerializer}
_RETRY_HAS_A_FRONT = "enqueue_at_front" in inspect.signature(rq.Retry).parameters  # from RQ 2.8 on
_VARYING = ("created_at", "enqueued_at")
_ENTRY = b"(" + pickled(META_KEY)
"""Mark, key."""

EXECUTION_PREFIX = Execution(id="", job_id="", connection=cast("Any", None)).key.rstrip(":") + ":"
"""Followed by a job id, a colon and an execution: a hash that lives as long as its worker shows life."""


class _NoRedis:
    """RQ makes no job without a connection, but uses none to make it."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a template is made without Redis: nothing can be done with {name!r}")


def template(schedule: Schedule) -> dict[str, bytes]:
    """The fields of the schedule's jobs, as redis-py would send them, without the times and with an open meta.

    The id and the place in the queue are no fields. Raises BadArguments for what RQ cannot write, as an argument whose
    `repr` fails, and BadOption for what this version of RQ does not know.
    """
    retry = _retry(schedule.retry)
    try:
        fields = _job(schedule, retry).to_dict(include_meta=False)
        sent = {name: _sent(value) for name, value in fields.items() if name not in _VARYING}
        return {**sent, "meta": _open_meta(schedule)}
    except Exception as e:
        raise BadArguments(
            f"RQ cannot write the job of schedule {schedule.id!r}: {type(e).__name__}: {e!s:.200}; pass plain data"
        ) from e


def data(schedule: Schedule, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
    """The function and these arguments, as the hash of a job holds them; refuses what RQ cannot write."""
    return template(replace(schedule, args=args, kwargs=kwargs))["data"]


def arguments(written: bytes, serializer: str) -> tuple[Sequence[Any], Mapping[str, Any]] | None:
    """The arguments that the hash of a job holds; None where they are not plain, or more than is read."""
    try:
        unpacked = zlib.decompressobj().decompress(written, safe_pickle.LARGEST + 1)
        _, _, args, kwargs = safe_pickle.plain(unpacked, serializer)
    except (zlib.error, ValueError, TypeError):
        return None
    return args, kwargs


def run_block(run: Run, serializer: str) -> bytes:
    """What completes an open meta: the entry that tells the job which run it is."""
    told = run.plain()
    if serializer == "json":
        return json.dumps(told).encode() + b"}"
    # Opcodes that remember nothing, so that they may follow any pickle. The first is the mark, a single byte: it takes
    # the place of the stop that was cut off, which the last frame of the pickle has counted.
    if isinstance(told, str):
        return _ENTRY + metadata.text(told) + b"u."  # setitems, stop
    return b"".join((_ENTRY, b"(", *map(pickled, chain.from_iterable(told.items())), b"du."))  # mark … dict, and these


def run_blocks(run: Run, serializer: str, shards: int) -> bytes:
    """One for each part of a run that goes to several queues: their lengths, and all of them."""
    return metadata.together(
        [run_block(replace(run, shard=shard, shards=shards), serializer) for shard in range(shards)]
    )


@functools.lru_cache(maxsize=1024)
def queue_key(name: str) -> str:
    """The list that holds the ids of a queue's jobs."""
    return cast("str", _queue(name, "pickle").key)


def job_key(job_id: str) -> str:
    """The hash of a job."""
    key: bytes | str = Job.key_for(job_id)
    return key.decode() if isinstance(key, bytes) else key  # bytes before RQ 2.6


def queue_names(keys: str) -> list[str]:
    """The names of the queues that have these keys, a line each."""
    return [key.removeprefix(queue_key("")) for key in keys.split("\n")]


def workers_key(queue: str) -> str:
    """The set of the keys of the workers that listen to a queue; a worker that died stays in it for a while."""
    return WORKERS_BY_QUEUE_KEY % queue


def registry_key(kind: str, queue: str) -> str:
    """RQ's registry of the finished, failed or scheduled jobs of a queue."""
    kinds = {
        "finished": registry.FinishedJobRegistry,
        "failed": registry.FailedJobRegistry,
        "scheduled": registry.ScheduledJobRegistry,
    }
    return kinds[kind].key_template.format(queue)


def stop(client: Any, job_id: str, worker: str) -> None:
    """Tells the worker that runs a job to stop it; nobody answers, and a SimpleWorker does not listen."""
    send_command(client, worker, "stop-job", job_id=job_id)


def current_meta() -> Mapping[str, Any] | None:
    """The meta of the job that this thread runs; None outside a job."""
    job = rq.get_current_job()
    return job.meta if job is not None and isinstance(job.meta, Mapping) else None


def _job(schedule: Schedule, retry: rq.Retry | None) -> Job:
    return _queue(schedule.queue, schedule.serializer).create_job(
        schedule.func,
        args=tuple(schedule.args),
        kwargs=dict(schedule.kwargs),
        timeout=schedule.job_timeout,
        result_ttl=_ttl(schedule.result_ttl),
        failure_ttl=_ttl(schedule.failure_ttl),
        ttl=schedule.ttl,
        description=schedule.description or None,
        retry=retry,
        on_success=_callback(schedule.on_success),
        on_failure=_callback(schedule.on_failure),
        on_stopped=_callback(schedule.on_stopped),
    )


@functools.lru_cache(maxsize=1024)
def _queue(name: str, serializer: str) -> rq.Queue:
    nowhere: Any = _NoRedis()
    return rq.Queue(name, connection=nowhere, serializer=_SERIALIZERS[serializer])


def plain_meta(schedule: Schedule, template: Mapping[str, bytes], rev: str) -> dict[str, str]:
    """For the schedule's own hash, where its jobs differ in times and run alone: the rev, and the open meta as hex.

    It goes with that rev and no other: a beat that does not know of it may change the template and leave it behind.
    """
    is_more = "ttl" in template or "retries_left" in template or own_ttls(schedule) or schedule.queues or schedule.meta
    return {} if is_more else {"job_meta": f"{rev} {template['meta'].hex()}"}


def own_ttls(schedule: Schedule) -> dict[str, int]:
    """The schedule's own result_ttl and failure_ttl, where its jobs have a longer one until the outcome is known."""
    own = {"result_ttl": schedule.result_ttl, "failure_ttl": schedule.failure_ttl}
    return {name: seconds for name, seconds in own.items() if seconds is not None and _ttl(seconds) != seconds}


def _ttl(seconds: int | None) -> int | None:
    return seconds if seconds is None or seconds < 0 else max(seconds, LEAST_TTL)


def _retry(retry: rq_options.Retry | None) -> rq.Retry | None:
    if retry is None:
        return None
    if not retry.enqueue_at_front:
        return rq.Retry(max=retry.max, interval=list(retry.intervals))
    if not _RETRY_HAS_A_FRONT:
        raise BadOption(
            f"retry's enqueue_at_front needs RQ 2.8, and this is {rq.__version__}: upgrade, or leave it out"
        )
    return rq.Retry(max=retry.max, interval=list(retry.intervals), enqueue_at_front=True)


def _callback(callback: rq_options.Callback | None) -> rq.Callback | None:
    return None if callback is None else rq.Callback(callback.func, timeout=callback.timeout)


def _sent(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else repr(value).encode()


def _open_meta(schedule: Schedule) -> bytes:
    written: bytes = _SERIALIZERS[schedule.serializer].dumps(dict(schedule.meta))
    if schedule.serializer == "pickle":
        return written[:-1]  # without the stop
    separator = ", " if schedule.meta else ""
    return written[:-1] + f'{separator}"{META_KEY}": '.encode()  # without the closing brace
