"""A fire as a span, on a real Redis: its job tells a worker to which trace it belongs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import propagate, trace
from redis import Redis
from rq import Queue, SimpleWorker
from rq.serializers import DefaultSerializer, JSONSerializer

from beat import Registry, Scheduler
from beat.jobs import job_template
from beat.jobs.run import Run
from beat.storage.messages import Reply
from beat.storage.pipelined import Dialogue
from beat.telemetry.tracing import Tracing
from beat.timing import clock
from tests.support import job_functions
from tests.support.builders import TOKEN, put_and_claim, verdict
from tests.support.facts import wait_until
from tests.support.schedulers_in_turn import Crew, hourly
from tests.support.spans import Spans, attributes, parent, spans

if TYPE_CHECKING:
    from rq.job import Job

    from beat.dev.embedded import PrivateRedis
    from beat.schedule.schedule import Schedule
    from beat.storage.store import Store

__all__ = ["spans"]
SERIALIZERS: dict[str, Any] = {"pickle": DefaultSerializer, "json": JSONSerializer}
FOLLOWS = "tests.support.job_functions.go_on_with_the_trace"


def crew_of(store: Store, server: PrivateRedis, *schedules: Schedule) -> Crew:
    crew = Crew(store, server, *schedules)
    crew._desk.tracer = Tracing(at_once=True)  # noqa: SLF001 (as a beat has one)
    return crew


def jobs_in(url: str, serializer: str = "pickle", queue: str = "default") -> list[Job]:
    with Redis.from_url(url) as client:
        found = Queue(queue, connection=client, serializer=SERIALIZERS[serializer]).jobs
        return [each for each in found if isinstance(each.meta, dict)]  # they are read now


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_a_worker_goes_on_with_the_trace_of_the_fire(
    serializer: str, store: Store, server: PrivateRedis, spans: Spans
) -> None:
    options: dict[str, Any] = {"func": FOLLOWS, "serializer": serializer, "meta": {"who": "ann", "traceparent": "old"}}
    crew_of(store, server, hourly("report", **options)).tick("report")
    with Redis.from_url(server.url) as client:
        chosen = SERIALIZERS[serializer]
        queue = Queue("default", connection=client, serializer=chosen)
        [job] = queue.jobs
        SimpleWorker([queue], connection=client, serializer=chosen).work(burst=True)
        told: Any = job.return_value(refresh=True)
    [fire], [work] = spans.named(), spans.named("perform")
    assert work.parent is not None
    assert fire.context is not None
    assert (work.parent.trace_id, work.parent.span_id) == (fire.context.trace_id, fire.context.span_id)
    found = trace.get_current_span(propagate.extract(told["meta"])).get_span_context()
    assert (found.trace_id, found.span_id) == (fire.context.trace_id, fire.context.span_id)
    assert told["meta"] == {"who": "ann", "traceparent": parent(fire), "beat": told["run"]}
    assert told["run"].startswith("report 2"), "of its tick, and by the scheduler"


def test_the_span_says_what_was_fired(store: Store, server: PrivateRedis, spans: Spans) -> None:
    crew = crew_of(store, server, hourly("report"))
    crew.tick("report")
    [fire], [fired] = spans.named(), crew.told("fired")
    assert attributes(fire) == {
        "beat.schedule_id": "report",
        "beat.tick": fired.fields["tick"],
        "beat.triggered_by": "scheduler",
        "beat.verdict": "fired",
        "rq.job.id": fired.fields["job_id"],
        "messaging.system": "rq",
        "messaging.operation.type": "send",
        "messaging.destination.name": "default",
    }
    assert (fire.kind.name, fire.parent, fire.status.status_code.name) == ("PRODUCER", None, "UNSET")
    assert 0 < (fire.end_time or 0) - (fire.start_time or 0) < 60e9


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_every_part_of_a_broadcast_belongs_to_the_same_fire(
    serializer: str, store: Store, server: PrivateRedis, spans: Spans
) -> None:
    places: dict[str, Any] = {"queues": ["a", "b"], "route": "broadcast", "serializer": serializer}
    crew_of(store, server, hourly("report", **places)).tick("report")
    [fire] = spans.named()
    found = [job for queue in ("a", "b") for job in jobs_in(server.url, serializer, queue)]
    assert [job.meta["traceparent"] for job in found] == [parent(fire)] * 2
    assert [job.meta["beat"]["shard"] for job in found] == [0, 1]
    assert attributes(fire)["messaging.destination.name"] == "a, b"


def test_a_tick_that_waits_and_is_let_in_is_two_fires(store: Store, server: PrivateRedis, spans: Spans) -> None:
    crew = crew_of(store, server, hourly("report", overlap="wait", func=FOLLOWS))
    crew.tick("report")
    crew.tick("report")
    assert spans.verdicts() == ["fired", "waits"]
    crew.work()
    crew.attend()
    assert spans.verdicts() == ["fired", "waits", "fired"]
    [job] = jobs_in(server.url)
    assert job.meta["traceparent"] == parent(spans.named()[-1])


def test_without_a_provider_the_meta_is_the_same_byte_for_byte(store: Store, server: PrivateRedis) -> None:
    schedule = hourly("report", meta={"who": "ann"})
    crew = crew_of(store, server, schedule)
    crew.tick("report")
    [fired] = crew.told("fired")
    run = Run("report", clock.read(fired.fields["tick"]), "scheduler")
    written: Any = store.client.hget(job_template.job_key(fired.fields["job_id"]), "meta")
    assert written == job_template.template(schedule)["meta"] + job_template.run_block(run, "pickle")


def test_what_is_sent_again_after_a_lost_reply_is_the_same(store: Store, spans: Spans) -> None:
    desk = Dialogue(store.client, store.keys)
    desk.tracer = Tracing(at_once=True)
    item = verdict(put_and_claim(desk))
    asked: dict[str, Any] = {"token": TOKEN, "limit": 0}
    desk.ask([item], [], **asked)
    wait_until(lambda: store.client.exists(job_template.job_key(item.job)))
    desk.hang_up()
    assert spans.named() == []
    [sent] = desk.tracer.sent([item])
    desk.ask([item], [], **asked)
    decided, _ = desk.answer()
    assert not isinstance(decided, Exception)
    assert decided.replies == (Reply("STALE", item.job),)
    assert spans.verdicts() == ["fired"]
    written: Any = store.client.hget(job_template.job_key(item.job), "meta")
    assert written.endswith(sent.run)
    assert parent(spans.named()[0]).encode() in written


def test_a_scheduler_traces_what_it_fires(server: PrivateRedis, redis: Any, spans: Spans) -> None:
    registry = Registry()
    registry.register(job_functions.anything, every="1s")
    scheduler = Scheduler(registry, redis, log_level="error")
    thread = threading.Thread(target=scheduler.run)
    thread.start()
    try:
        wait_until(spans.named, 10)
    finally:
        scheduler.stop()
        thread.join(5)
    assert {job.meta["traceparent"] for job in jobs_in(server.url)} >= {parent(spans.named()[0])}


def test_a_scheduler_that_is_told_not_to_does_not(server: PrivateRedis, redis: Any, spans: Spans) -> None:
    registry = Registry()
    registry.register(job_functions.anything, every="1s")
    scheduler = Scheduler(registry, redis, log_level="error", traces="off")
    thread = threading.Thread(target=scheduler.run)
    thread.start()
    try:
        [job] = wait_until(lambda: jobs_in(server.url)[:1], 10)
    finally:
        scheduler.stop()
        thread.join(5)
    assert (list(job.meta), spans.named()) == (["beat"], [])
