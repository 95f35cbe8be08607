"""What beat writes for RQ is what RQ writes for itself, and RQ's own workers run it."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import rq
from rq.command import send_stop_job_command
from rq.job import Job, JobStatus
from rq.serializers import DefaultSerializer, JSONSerializer

from beat.jobs import job_template
from beat.jobs.run import Run
from beat.schedule.schedule import Schedule
from beat.storage.keys import Keys
from beat.storage.messages import Reply
from beat.storage.store import Store
from beat.timing import clock
from beat.timing.interval import Every
from tests.support.builders import FIELDS, LONG, REV, TOKEN, registration, verdict
from tests.support.facts import wait_until
from tests.support.job_functions import Owner

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis

ROOT = Path(__file__).parent.parent.parent
FUNCTIONS = "tests.support.job_functions"
TICK = datetime(2025, 11, 16, 9, tzinfo=UTC)
RUN = Run("report", TICK, "schedule")
PLAIN = "report 2025-11-16T09:00:00Z schedule"
JOB = "beat_report_1794819600"
SERIALIZERS: dict[str, Any] = {"pickle": DefaultSerializer, "json": JSONSerializer}


@pytest.fixture
def connection(store: Store) -> redis.Redis:
    return store.client


# --- what is written -------------------------------------------------------------------------------------------------


def schedule(func: str = "anything", **options: Any) -> Schedule:
    return Schedule(id="report", func=f"{FUNCTIONS}.{func}", timing=Every("1h"), **options)


def fire(connection: redis.Redis, fired: Schedule, job_id: str = JOB, run: Run = RUN) -> None:
    """The schedule is registered, claimed and fired as a beat does it; beat's own keys are gone afterwards."""
    store = Store(connection, Keys())
    template = job_template.template(fired)
    fields = {**FIELDS, **job_template.plain_meta(fired, template, REV)}
    made = registration(fired.id, clock.floor(TICK), template=template, fields=fields)
    assert store.register([made], beat="tests") == [Reply("NEW")]
    store.client.set(store.keys.lock(fired.id), TOKEN, px=LONG)
    item = verdict(
        clock.floor(TICK),
        fired.id,
        job=job_id,
        queue=job_template.queue_key(fired.queue),
        at="front" if fired.at_front else "back",
        run=job_template.run_block(run, fired.serializer),
    )
    assert store.fire([item], token=TOKEN).replies == (Reply("OK"),)
    connection.delete(*connection.scan_iter("beat:*"))


@pytest.mark.parametrize("serializer", SERIALIZERS)
@pytest.mark.parametrize("options", [{}, {"queue": "reports", "result_ttl": 300, "job_timeout": 5, "args": [1]}])
def test_of_jobs_that_are_alike_the_schedule_keeps_the_open_meta(options: dict[str, Any], serializer: str) -> None:
    plain = schedule(serializer=serializer, **options)
    rev, _, written = job_template.plain_meta(plain, job_template.template(plain), "r1")["job_meta"].partition(" ")
    assert (rev, bytes.fromhex(written)) == ("r1", job_template.template(plain)["meta"])


@pytest.mark.parametrize(
    "options",
    [
        {"ttl": 500},
        {"retry": rq.Retry(max=3)},
        {"result_ttl": 5},
        {"failure_ttl": 0},
        {"meta": {"owner": "Zoë"}},
        {"queues": ["a", "b"], "route": "first"},
    ],
)
def test_of_jobs_that_are_special_it_keeps_none(options: dict[str, Any]) -> None:
    special = schedule(**options)
    assert job_template.plain_meta(special, job_template.template(special), "r1") == {}


def enqueue(connection: redis.Redis, func: str, **options: Any) -> None:
    """The same call, by RQ alone."""
    name, serializer = options.pop("queue", "default"), options.pop("serializer", "pickle")
    options["meta"] = {**options.pop("meta", {}), "beat": PLAIN}
    options["args"] = tuple(options.get("args", ()))
    options.setdefault("kwargs", {})
    queue = rq.Queue(name, connection=connection, serializer=SERIALIZERS[serializer])
    queue.enqueue(f"{FUNCTIONS}.{func}", job_id=JOB, **options)


def everything(connection: Any) -> dict[bytes, Any]:
    """All that is in Redis but the job itself."""
    read: dict[bytes, Callable[[bytes], Any]] = {
        b"list": lambda key: connection.lrange(key, 0, -1),
        b"set": connection.smembers,
    }
    keys = set(connection.scan_iter()) - {job_template.job_key(JOB).encode()}
    return {key: read[connection.type(key)](key) for key in keys}


ALL: dict[str, Any] = {
    "args": [1, "two", None, {"three": [3.5, True]}],
    "kwargs": {"kind": "daily"},
    "queue": "reports",
    "job_timeout": 30,
    "result_ttl": 300,
    "failure_ttl": 400,
    "ttl": 500,
    "retry": rq.Retry(max=3, interval=[10, 20]),
    "at_front": True,
    "meta": {"owner": "Zoë", "tags": ["a", "b"]},
    "description": "The report of the day: ½ € 🎉",
    "on_success": rq.Callback(f"{FUNCTIONS}.succeeded", timeout=5),
    "on_failure": rq.Callback(f"{FUNCTIONS}.failed"),
    "on_stopped": rq.Callback(f"{FUNCTIONS}.stopped", timeout=-1),
}
NAMED_LIKE_OPTIONS = {
    "meta": {"a": 1}, "job_id": "mine", "ttl": 5, "description": "d", "timeout": 6, "job_timeout": 7, "args": [8],
    "kwargs": {"b": 9}, "func": "f", "retry": 1, "at_front": True, "queue": "q", "self": None,
}  # fmt: skip

CASES: dict[str, dict[str, Any]] = {
    "nothing": {},
    **{name: {name: value} for name, value in ALL.items()},
    "all": ALL,
    "all in JSON": {**ALL, "serializer": "json"},
    "JSON": {"serializer": "json"},
    "JSON and meta": {"serializer": "json", "meta": {"a": [1, None, "é"]}},
    "a coroutine": {"func": "slowly", "args": [1]},
    "no time-out": {"job_timeout": -1},
    "results for ever": {"result_ttl": -1, "failure_ttl": -1},
    "results for a minute": {"result_ttl": 60},
    "failures for a minute": {"failure_ttl": 60},
    "a retry at once": {"retry": rq.Retry(max=1)},
    "a retry after a while": {"retry": rq.Retry(max=2, interval=60)},
    "kwargs named like options": {"kwargs": NAMED_LIKE_OPTIONS},
    "kwargs named like options in JSON": {"kwargs": NAMED_LIKE_OPTIONS, "serializer": "json"},
    "long arguments": {"args": ["x" * 10_000], "kwargs": {"y": list(range(1_000))}},
    "unicode": {"args": ["žluťoučký", "🎉"], "kwargs": {"größe": "\x00\n"}, "queue": "ünïcode 🎉"},
    "objects": {"args": [TICK, Owner("a"), {1, 2}, b"\xff"], "kwargs": {"o": Owner("b")}},
    "objects in meta": {"meta": {"owner": Owner("a"), "at": TICK, "pair": (1, 2)}},
    "a callback without time-out": {"on_success": rq.Callback(f"{FUNCTIONS}.succeeded")},
}
if tuple(map(int, version("rq").split(".")[:2])) >= (2, 8):
    CASES["a retry at the front"] = {"retry": rq.Retry(max=2, interval=[5], enqueue_at_front=True)}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_job_is_the_one_that_rq_would_enqueue(case: dict[str, Any], connection: Any) -> None:
    options = {"func": "anything", **case}
    queue = f"rq:queue:{options.get('queue', 'default')}"
    connection.rpush(queue, "another")
    enqueue(connection, **options)
    theirs, their_ttl, around_theirs = (
        connection.hgetall(job_template.job_key(JOB)),
        ttl(connection),
        everything(connection),
    )

    connection.flushall()
    connection.rpush(queue, "another")
    fire(connection, schedule(**options))
    ours, our_ttl, around_ours = connection.hgetall(job_template.job_key(JOB)), ttl(connection), everything(connection)

    load = SERIALIZERS[options.get("serializer", "pickle")].loads
    assert load(ours.pop(b"meta")) == load(theirs.pop(b"meta")) == {**options.get("meta", {}), "beat": PLAIN}
    for field in (b"created_at", b"enqueued_at"):
        assert shape(ours.pop(field)) == shape(theirs.pop(field)) == "dddd-dd-ddTdd:dd:dd.ddddddZ"
    assert ours == theirs
    assert our_ttl == their_ttl
    assert around_ours == around_theirs


def ttl(connection: Any) -> str:
    left = connection.ttl(job_template.job_key(JOB))
    return "about 500" if 400 < left <= 500 else str(left)


def shape(value: bytes) -> str:
    return "".join("d" if c.isdigit() else c for c in value.decode())


@pytest.mark.parametrize("option", ["result_ttl", "failure_ttl"])
@pytest.mark.parametrize(
    ("given", "written", "own"),
    [(0, b"60", 0), (1, b"60", 1), (59, b"60", 59), (60, b"60", None), (61, b"61", None), (-1, b"-1", None)],
)
def test_a_result_is_kept_for_a_minute_at_least(option: str, given: int, written: bytes, own: int | None) -> None:
    options: dict[str, Any] = {option: given}
    made = schedule(**options)
    assert job_template.template(made)[option] == written
    assert job_template.own_ttls(made) == ({} if own is None else {option: own}), "applied when the outcome is recorded"


def test_what_nobody_set_is_left_to_rq() -> None:
    assert not job_template.own_ttls(schedule())
    assert not {"result_ttl", "failure_ttl"} & job_template.template(schedule()).keys()


def test_the_keys_are_those_of_rq(connection: redis.Redis) -> None:
    queue = rq.Queue("reports", connection=connection)
    queue.enqueue(f"{FUNCTIONS}.anything", job_id=JOB)
    assert job_template.queue_key("reports") == queue.key
    assert connection.hget(job_template.job_key(JOB), "origin") == b"reports"
    keys = [job_template.QUEUES_KEY, job_template.queue_key("reports"), job_template.job_key(JOB)]
    assert set(connection.keys()) == {key.encode() for key in keys}


# --- what workers make of it -----------------------------------------------------------------------------------------


def start_worker(connection: redis.Redis, *arguments: str, queue: str = "default") -> subprocess.Popen[bytes]:
    url = f"unix://{connection.connection_pool.connection_kwargs['path']}"
    command = [sys.executable, "-m", "rq.cli", "worker", "--burst", "--quiet", "--url", url, *arguments, queue]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def work(connection: redis.Redis, *arguments: str, queue: str = "default") -> None:
    with start_worker(connection, *arguments, queue=queue) as worker:
        assert worker.wait(60) == 0


def heard(connection: redis.Redis, job_id: str) -> list[Any]:
    return [json.loads(line) for line in connection.lrange(f"heard:{job_id}", 0, -1)]


def returned(connection: redis.Redis, job_id: str, serializer: str = "pickle") -> Any:
    job = Job.fetch(job_id, connection=connection, serializer=SERIALIZERS[serializer])
    assert job.get_status() == JobStatus.FINISHED
    return job.return_value()


WORKERS = ["rq.worker.Worker", "rq.worker.SimpleWorker"]


@pytest.mark.parametrize("serializer", SERIALIZERS)
@pytest.mark.parametrize("kind", WORKERS)
def test_a_stock_worker_runs_what_was_fired(kind: str, serializer: Any, connection: redis.Redis) -> None:
    by_hand = Run("other", None, "Zoë")
    fire(connection, schedule(args=[1], kwargs=NAMED_LIKE_OPTIONS, serializer=serializer), "call")
    fire(connection, schedule("slowly", args=["é"], serializer=serializer), "coroutine")
    fire(connection, schedule("tell_the_run", meta={"a": 1}, serializer=serializer), "run")
    fire(connection, schedule("tell_the_run", serializer=serializer), "by-hand", by_hand)
    fire(connection, schedule("tell_the_run_slowly", serializer=serializer), "run-of-coroutine")

    work(connection, "--worker-class", kind, "--serializer", f"rq.serializers.{SERIALIZERS[serializer].__name__}")

    assert returned(connection, "call", serializer) == [[1], NAMED_LIKE_OPTIONS]
    assert returned(connection, "coroutine", serializer) == [["é"], {}]
    assert returned(connection, "run", serializer) == PLAIN
    assert returned(connection, "by-hand", serializer) == by_hand.plain()
    assert returned(connection, "run-of-coroutine", serializer) == PLAIN


@pytest.mark.parametrize("kind", WORKERS)
def test_callbacks_and_retries_happen(kind: str, connection: redis.Redis) -> None:
    on_success, on_failure = f"{FUNCTIONS}.succeeded", rq.Callback(f"{FUNCTIONS}.failed", timeout=5)
    fire(connection, schedule(on_success=on_success, on_failure=on_failure, meta={"owner": Owner("a")}), "good")
    fire(connection, schedule("fail", on_success=on_success, on_failure=on_failure), "bad")
    fire(connection, schedule("succeed_in_the_end", args=[2], retry=2), "third-time")
    fire(connection, schedule("succeed_in_the_end", args=[2], retry=1), "given-up")

    work(connection, "--worker-class", kind)

    assert heard(connection, "good") == [["succeeded", [[], {}], PLAIN]]
    assert heard(connection, "bad") == [["failed", "LookupError", PLAIN]]
    assert returned(connection, "third-time") == 3
    assert heard(connection, "third-time") == [PLAIN] * 3
    assert heard(connection, "given-up") == [PLAIN] * 2
    assert Job.fetch("given-up", connection=connection).get_status() == JobStatus.FAILED


def test_a_stopped_job_calls_back(connection: redis.Redis) -> None:
    fire(connection, schedule("never_end", queue="endless", on_stopped=f"{FUNCTIONS}.stopped"))
    with start_worker(connection, queue="endless") as worker:
        try:
            job = Job.fetch(JOB, connection=connection)
            wait_until(lambda: job.get_status() == JobStatus.STARTED)
            send_stop_job_command(connection, JOB)
            assert worker.wait(60) == 0
        finally:
            worker.kill()
    assert heard(connection, JOB) == [["stopped", None, PLAIN]]
    assert job.get_status() == JobStatus.STOPPED


def test_a_job_that_waited_too_long_is_not_run(connection: redis.Redis) -> None:
    fire(connection, schedule("succeed_in_the_end", args=[0], ttl=1))
    wait_until(lambda: not connection.exists(job_template.job_key(JOB)))
    work(connection)
    assert heard(connection, JOB) == []


def test_a_short_result_ttl_leaves_the_result_for_a_minute(connection: redis.Redis) -> None:
    fire(connection, schedule(result_ttl=0))
    work(connection)
    assert returned(connection, JOB) == [[], {}]
    assert 0 < connection.ttl(job_template.job_key(JOB)) <= 60
