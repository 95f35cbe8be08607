"""Runs as beat and RQ leave them in Redis, made by hand: what becomes of them is seen without any worker."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import TYPE_CHECKING, Any

from beat.jobs.observation import Record
from beat.storage import lifetimes
from beat.storage.messages import Closing
from tests.support.builders import QUEUE, TOKEN, put, second, text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beat.storage.messages import Reply
    from beat.storage.runs import Runs
    from beat.storage.store import Store

JOB = "beat_report_1794819600"
TICK = "2026-11-16T09:00:00Z"
STARTED, ENDED = "2026-11-16T09:00:00.020000Z", "2026-11-16T09:00:03.120000Z"
FINISHED = {"started_at": STARTED, "ended_at": ENDED, "worker_name": "w1"}
SIGN = f"finished|{STARTED}|{ENDED}"
GONE = None
"""The status of a job of which RQ has no record."""


def record(schedule_id: str = "report", **known: Any) -> str:
    """What beat remembers of a run."""
    given = {"tick": TICK, "by": "scheduler", "queue": QUEUE, "enqueued": "2026-11-16T09:00:00.004Z", "n": 1, **known}
    return Record(schedule_id, **given).text()


def put_schedule(store: Store, schedule_id: str = "report", **fields: Any) -> None:
    """A schedule that is not due, with these fields of its hash."""
    put(store, schedule_id, second(store) + 3600, **fields)


def put_run(store: Store, job: str = JOB, status: str | None = "finished", /, **fields: Any) -> str:
    """An open run that is to be looked at, and what RQ's hash says about it; its record comes back."""
    seen = fields.pop("record", record())
    store.client.zadd(store.keys.open, {job: 0})
    store.client.hset(store.keys.records, job, seen)
    put_job(store, job, status, **fields)
    return str(seen)


def not_yet(store: Store, ids: Iterable[str]) -> None:
    """Open runs that are looked at as late as they may be."""
    latest = second(store) * 1000 + lifetimes.OPEN_MS
    store.client.zadd(store.keys.open, dict.fromkeys(ids, latest))


def put_closed(store: Store, job: str = JOB, status: str | None = "failed", /, *, since: int = 1, **fields: Any) -> str:
    """A run that was closed, so many ms after the epoch."""
    seen = fields.pop("record", record(outcome="failed", sign=f"failed|{STARTED}|{ENDED}", ended=ENDED, attempts=1))
    store.client.zadd(store.keys.closed, {job: since})
    store.client.hset(store.keys.records, job, seen)
    put_job(store, job, status, **fields)
    return str(seen)


def put_job(store: Store, job: str = JOB, status: str | None = "finished", /, **fields: Any) -> None:
    """RQ's hash."""
    store.client.delete(f"rq:job:{job}")
    if status is not GONE:
        given = FINISHED if status in {"finished", "failed", "stopped"} else {}
        whole: dict[Any, Any] = {"status": status, "origin": "default", **given, **fields}
        store.client.hset(f"rq:job:{job}", mapping=whole)


def put_result(store: Store, job: str = JOB, /, **fields: Any) -> str:
    """One more of RQ's results; its id comes back."""
    whole: dict[Any, Any] = {"type": "1", "worker_name": "w1", **fields}
    made: Any = store.client.xadd(f"rq:results:{job}", whole)
    return str(made.decode())


def returned(value: object) -> bytes:
    """As RQ keeps what a function returned."""
    return base64.b64encode(pickle.dumps(value))


def raised(words: str) -> bytes:
    """As RQ keeps a traceback."""
    return base64.b64encode(zlib.compress(words.encode()))


def closing(job: str = JOB, /, **changes: Any) -> Closing:
    """A run of `report` has succeeded, if it is as `put_run` makes it."""
    made = Closing(
        kind="close",
        job=job,
        seen=record(),
        sign=SIGN,
        id="report",
        tick=TICK,
        outcome="succeeded",
        entry=f'{{"type":"succeeded","job":"{job}"',
        ended="2026-11-16T09:00:03.120Z",
        duration="3.1",
    )
    return made._replace(**changes)


def close(runs: Runs, *items: Closing, token: str = TOKEN) -> list[Reply]:
    return runs.close(items, token=token)


# --- what Redis holds ------------------------------------------------------------------------------------------------


def ledger(store: Store, schedule_id: str = "report") -> list[dict[str, Any]]:
    """Every line, newest first; each is JSON."""
    found: Any = store.client.lrange(store.keys.runs(schedule_id), 0, -1)
    return [json.loads(line) for line in found]


def newest_line(store: Store, schedule_id: str = "report") -> str:
    """As it stands there."""
    found: Any = store.client.lindex(store.keys.runs(schedule_id), 0)
    return str(found.decode())


def told(store: Store) -> list[dict[str, str]]:
    """Every event of the outbox, oldest first."""
    found: Any = store.client.xrange(store.keys.events)
    return [{name.decode(): value.decode() for name, value in fields.items()} for _, fields in found]


def is_watched(store: Store) -> bool:
    """Whether beat remembers any run at all."""
    return bool(open_runs(store) or closed_runs(store) or records(store))


def open_runs(store: Store) -> dict[str, float]:
    return _scores(store, store.keys.open)


def closed_runs(store: Store) -> dict[str, float]:
    return _scores(store, store.keys.closed)


def records(store: Store) -> dict[str, dict[str, Any]]:
    found: Any = store.client.hgetall(store.keys.records)
    return {job.decode(): json.loads(kept) for job, kept in found.items()}


def _scores(store: Store, key: str) -> dict[str, float]:
    found: Any = store.client.zrange(key, 0, -1, withscores=True)
    return {job.decode(): score for job, score in found}


def minutes_ago(store: Store, minutes: int) -> str:
    return text(second(store) - 60 * minutes)
