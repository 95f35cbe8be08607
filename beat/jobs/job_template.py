"""Build a schedule's RQ job as the fields of its hash, as `Queue.enqueue` would write them, with RQ's own code.

The fields that are the same in every run are stored once, as the *template*. The script `fire` copies it and adds the
two times and the rest of the meta. The meta is written in two parts, because the scheduler may be unable to import the
classes in it::

    template(schedule)["meta"]   the user's meta, left open
    run_block(run, serializer)   the entry `beat`, and the end

RQ's serializer reads the two together as `{**schedule.meta, "beat": run.plain()}`.
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
from beat.jobs.run import META_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.jobs.run import Run
    from beat.schedule import rq_options
    from beat.schedule.schedule import Schedule

LEAST_TTL = 60
"""The shortest result TTL in seconds, so that a scheduler can record the outcome before the result expires."""
QUEUES_KEY: str = rq.Queue.redis_queues_keys
RESULTS_PREFIX: str = Result.get_key("")  # type: ignore[no-untyped-call]
"""Prefix of a job's stream of results; the job id follows."""
EXECUTIONS_PREFIX: str = ExecutionRegistry.key_template.format("")
"""Prefix of a job's set of executions; the job id follows."""
WORKER_PREFIX: str = rq.Worker.redis_worker_namespace_prefix
"""Prefix of a worker's hash; the name of the worker follows."""
SUSPENDED_KEY: str = WORKERS_SUSPENDED
"""The key that exists while `rq suspend` keeps all workers from taking jobs."""
CHANNEL_PREFIX: str = PUBSUB_CHANNEL_TEMPLATE % ""
"""Prefix of the channel on which a live worker takes commands; the name of the worker follows."""

_SERIALIZERS: Mapping[str, Any] = {"pickle": DefaultSerializer, "json": JSONSerializer}
_RETRY_HAS_A_FRONT = "enqueue_at_front" in inspect.signature(rq.Retry).parameters  # since RQ 2.8
_VARYING = ("created_at", "enqueued_at")
_ENTRY = b"(" + pickled(META_KEY)
"""A mark and the key of the entry."""

EXECUTION_PREFIX = Execution(id="", job_id="", connection=cast("Any", None)).key.rstrip(":") + ":"
"""Prefix of an execution's hash, which lives as long as its worker; a job id, a colon and an execution id follow."""


class _NoRedis:
    """A stand-in for a Redis client: RQ needs a connection to create a job, but does not use it."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a template is made without Redis: nothing can be done with {name!r}")


def template(schedule: Schedule) -> dict[str, bytes]:
    """Return the fields of the schedule's jobs, as redis-py would send them, without the times and with an open meta.

    The job id and the position in the queue are not fields. Raises BadArguments if RQ cannot serialize the job, for
    example if the `repr` of an argument fails, and BadOption if this version of RQ lacks an option.
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
    """Return the function and these arguments as a job's hash holds them; raise BadArguments if RQ cannot."""
    return template(replace(schedule, args=args, kwargs=kwargs))["data"]


def arguments(written: bytes, serializer: str) -> tuple[Sequence[Any], Mapping[str, Any]] | None:
    """Return the arguments that the hash of a job holds; None if they are not plain data or too large."""
    try:
        unpacked = zlib.decompressobj().decompress(written, safe_pickle.LARGEST + 1)
        _, _, args, kwargs = safe_pickle.plain(unpacked, serializer)
    except (zlib.error, ValueError, TypeError):
        return None
    return args, kwargs


def run_block(run: Run, serializer: str) -> bytes:
    """Return the bytes that complete an open meta: the entry that tells the job which run it is, and the end."""
    told = run.plain()
    if serializer == "json":
        return json.dumps(told).encode() + b"}"
    # These opcodes use no memo, so they may follow any pickle. The first is the mark, a single byte. It takes the place
    # of the stop that was cut off, which the length of the pickle's last frame includes.
    if isinstance(told, str):
        return _ENTRY + metadata.text(told) + b"u."  # setitems, stop
    return b"".join((_ENTRY, b"(", *map(pickled, chain.from_iterable(told.items())), b"du."))  # mark … dict, and these


def run_blocks(run: Run, serializer: str, shards: int) -> bytes:
    """Return a block for each part of a broadcast: first the lengths of all blocks, then the blocks."""
    return metadata.together(
        [run_block(replace(run, shard=shard, shards=shards), serializer) for shard in range(shards)]
    )


@functools.lru_cache(maxsize=1024)
def queue_key(name: str) -> str:
    """Return the key of the list that holds the job ids of a queue."""
    return cast("str", _queue(name, "pickle").key)


def job_key(job_id: str) -> str:
    """Return the key of a job's hash."""
    key: bytes | str = Job.key_for(job_id)
    return key.decode() if isinstance(key, bytes) else key  # bytes before RQ 2.6


def queue_names(keys: str) -> list[str]:
    """Return the names of the queues with these keys, given one per line."""
    return [key.removeprefix(queue_key("")) for key in keys.split("\n")]


def workers_key(queue: str) -> str:
    """Return the key of the set of workers that listen to a queue; a dead worker stays in the set for a while."""
    return WORKERS_BY_QUEUE_KEY % queue


def registry_key(kind: str, queue: str) -> str:
    """Return the key of RQ's registry of a queue's `finished`, `failed` or `scheduled` jobs."""
    kinds = {
        "finished": registry.FinishedJobRegistry,
        "failed": registry.FailedJobRegistry,
        "scheduled": registry.ScheduledJobRegistry,
    }
    return kinds[kind].key_template.format(queue)


def stop(client: Any, job_id: str, worker: str) -> None:
    """Send a stop command to the worker that runs a job.

    There is no reply, and a SimpleWorker does not listen to commands.
    """
    send_command(client, worker, "stop-job", job_id=job_id)


def current_meta() -> Mapping[str, Any] | None:
    """Return the meta of the job that this thread runs; None outside a job."""
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
    """Return the field `job_meta` for the hash of a schedule whose jobs differ only in times and run.

    It holds the rev, and the open meta as hex. It is valid only for that rev, because a scheduler that does not know
    the field may change the template without updating it. For other schedules, the result is empty.
    """
    is_more = "ttl" in template or "retries_left" in template or own_ttls(schedule) or schedule.queues or schedule.meta
    return {} if is_more else {"job_meta": f"{rev} {template['meta'].hex()}"}


def own_ttls(schedule: Schedule) -> dict[str, int]:
    """Return the schedule's result_ttl and failure_ttl if its jobs get a longer one until their outcome is known."""
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
