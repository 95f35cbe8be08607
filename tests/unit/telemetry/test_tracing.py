"""Fires as spans: what becomes of each, what its job is told, and that no tracer can harm a tick."""

from __future__ import annotations

import json
import logging
import pickle
import subprocess
import sys
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider, sampling
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from rq.serializers import DefaultSerializer, JSONSerializer

from beat import Registry
from beat.jobs import job_template, metadata
from beat.jobs.report import safe_pickle
from beat.jobs.run import Run
from beat.storage.messages import Item, Reply
from beat.telemetry import tracing
from beat.telemetry.tracing import Tracing
from beat.testing import ManualBeat
from beat.timing import clock
from tests.support import job_functions
from tests.support.facts import wait_until
from tests.support.process_pool import ROOT
from tests.support.spans import CURRENT, Spans, attributes, parent, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan

__all__ = ["spans"]
SERIALIZERS: dict[str, Any] = {"pickle": DefaultSerializer, "json": JSONSerializer}
TICK = datetime(2026, 11, 16, 9, tzinfo=UTC)
RUN = Run("report", TICK, "scheduler")
CONTEXT = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": 'a=1,b="\\'}


def fire(number: int = 0, **changes: Any) -> Item:
    tick, queue = clock.text(TICK), job_template.queue_key("default")
    made = Item(
        "fire", "report", "rev", tick, job=f"job-{number}", queue=queue, run=job_template.run_block(RUN, "json")
    )
    return made._replace(by="scheduler", **changes)


# --- what becomes of it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "words", "verdict"),
    [
        ("OK", "", "fired"),
        ("WAITS", "job-7", "waits"),
        ("SKIPPED", "overlap", "skipped"),
        ("STALE", "job-0", "fired"),
        ("STALE", "job-7", "stale"),
        ("CHANGED", "", "changed"),
        ("INACTIVE", "paused", "inactive"),
        ("FENCED", "", "fenced"),
        ("GONE", "", "gone"),
    ],
)
def test_a_span_ends_with_the_verdict(code: str, words: str, verdict: str, spans: Spans) -> None:
    tracing = Tracing(at_once=True)
    tracing.sent([fire()])
    tracing.decided([fire()], [Reply(code, words)])
    assert spans.verdicts() == [verdict]
    assert spans.named()[0].status.is_unset


def test_a_skip_beside_it_is_not_the_job_of_a_fire_that_came_too_late(spans: Spans) -> None:
    tracing, page = Tracing(at_once=True), [fire(), fire()._replace(kind="skip", job="")]
    tracing.sent(page)
    tracing.decided(page, [Reply("STALE", ""), Reply("OK")])
    assert spans.verdicts() == ["stale"]


@pytest.mark.parametrize("code", ["BADTYPE", "BADSTATE", "BADARG"])
def test_what_cannot_be_fired_is_an_error(code: str, spans: Spans) -> None:
    tracing = Tracing(at_once=True)
    tracing.sent([fire()])
    tracing.decided([fire()], [Reply(code, "beat:schedule:report is a list")])
    [span] = spans.named()
    assert (span.status.is_ok, span.status.description) == (False, f"{code} beat:schedule:report is a list")


@pytest.mark.parametrize("code", ["EARLY", "ENDED"])
def test_what_is_sent_again_is_the_same_fire(code: str, spans: Spans) -> None:
    tracing = Tracing(at_once=True)
    first = tracing.sent([fire()])
    tracing.decided([fire()], [Reply(code, "3")])
    assert spans.named() == []
    assert tracing.sent([fire()]) == first
    tracing.decided([fire()], [Reply("OK")])
    assert spans.verdicts() == ["fired"]


def test_ticks_of_one_schedule_are_fires_of_their_own_even_if_their_replies_were_lost(spans: Spans) -> None:
    tracing, items = Tracing(at_once=True), [fire(0), fire(1)]
    sent = tracing.sent(items)
    assert sent[0].run != sent[1].run
    tracing.decided(items, [Reply("STALE", "job-1")] * 2)  # the last job of the schedule is ours
    assert spans.verdicts() == ["fired", "fired"]


@pytest.mark.parametrize("kind", ["skip", "pass", "resume", "release", "quarantine"])
def test_what_is_no_fire_is_no_span(kind: str, spans: Spans) -> None:
    tracing, items = Tracing(at_once=True), [fire(kind=kind)]
    assert tracing.sent(items) == items
    tracing.decided(items, [Reply("OK")])
    assert spans.named() == []


def test_fires_that_never_get_a_verdict_do_not_pile_up(spans: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_MOST", 2)
    Tracing(at_once=True).sent([fire(number) for number in range(3)])
    assert spans.verdicts() == ["unknown"]


def test_what_is_not_sampled_says_so_to_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CURRENT, TracerProvider(sampling.ALWAYS_OFF, shutdown_on_exit=False))
    [item] = Tracing(at_once=True).sent([fire()])
    assert int(json.loads(b'{"beat": ' + item.run)["traceparent"][-2:], 16) & 1 == 0


# --- whoever has set up nothing --------------------------------------------------------------------------------------


def test_without_a_provider_nothing_happens() -> None:
    items = [fire()]
    assert Tracing().sent(items) is items


WITHOUT = """
import sys
sys.modules["opentelemetry"] = None
from datetime import UTC, datetime
from beat import Registry
from beat.testing import ManualBeat
from tests.support.schedulers import seconds_of
registry = Registry()
registry.register(seconds_of, every="1h", args=[1])
beat = ManualBeat(datetime(2026, 11, 16, 9, tzinfo=UTC), registry=registry)
assert len(beat.tick_until("1h")) == 1
"""


def test_whoever_has_not_installed_it_misses_nothing() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT], cwd=ROOT, check=True)


def test_a_process_that_has_not_imported_it_is_not_asked(spans: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    items = [fire()]
    assert Tracing().sent(items) is items
    assert spans.named() == []


# --- tracers that fail -----------------------------------------------------------------------------------------------


class Broken(sampling.Sampler):
    def should_sample(self, *_: Any, **__: Any) -> sampling.SamplingResult:
        raise RuntimeError("on purpose")

    def get_description(self) -> str:
        return "broken"


def test_a_tracer_that_fails_is_told_once_and_ticks_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(CURRENT, TracerProvider(Broken(), shutdown_on_exit=False))
    monkeypatch.setattr(logging.getLogger("beat"), "propagate", True)
    tracing, items = Tracing(), [fire()]
    assert [tracing.sent(items) is items for _ in range(3)] == [True] * 3
    assert [record.message for record in caplog.records] == ["OpenTelemetry failed, and ticks go on"]


class Hanging(SpanExporter):
    """Exports when it is let, as one whose collector does not answer."""

    def __init__(self) -> None:
        self.let, self.exported = threading.Event(), list[Any]()

    def export(self, found: Sequence[ReadableSpan]) -> SpanExportResult:
        self.let.wait(30)
        self.exported += found
        return SpanExportResult.SUCCESS


def test_an_exporter_that_hangs_keeps_no_tick_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = Hanging(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(CURRENT, provider)
    tracing, items = Tracing(), [fire(0), fire(1)]
    tracing.sent(items)
    tracing.decided(items, [Reply("OK")] * 2)
    decided = clock.to_ms(clock.now())
    assert exporter.exported == []
    exporter.let.set()
    found = wait_until(lambda: exporter.exported if len(exporter.exported) == 2 else [])
    assert all(each.end_time // 1_000_000 <= decided for each in found)


def test_what_a_hanging_exporter_leaves_does_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = Hanging(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(CURRENT, provider)
    monkeypatch.setattr(tracing, "_MOST", 3)
    mine = Tracing()
    for number in range(20):
        mine.sent([fire(number)])
        mine.decided([fire(number)], [Reply("OK")])
    exporter.let.set()
    wait_until(lambda: len(exporter.exported) >= 3)
    assert len(exporter.exported) <= 4  # and the one that hung


class Leaving(SpanExporter):
    def export(self, _: Sequence[ReadableSpan]) -> SpanExportResult:
        raise SystemExit


def test_an_exporter_that_leaves_takes_nobody_with_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(Leaving()))
    monkeypatch.setattr(CURRENT, provider)
    monkeypatch.setattr(logging.getLogger("beat"), "propagate", True)
    mine = Tracing()
    for number in range(2):
        mine.sent([fire(number)])
        mine.decided([fire(number)], [Reply("OK")])
    wait_until(lambda: [record.message for record in caplog.records] == ["OpenTelemetry failed, and ticks go on"])


# --- the meta of the job ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("meta", [{}, {"a": 1}, {"a": "x" * 70_000, "b": [1]}], ids=["empty", "small", "large"])
@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_the_context_stands_beside_the_run_whatever_else_is_in_the_meta(serializer: str, meta: dict[str, Any]) -> None:
    options: dict[str, Any] = {"meta": meta, "serializer": serializer}
    declared = Registry().register(job_functions.anything, every="1h", **options)
    ends = metadata.in_context(job_template.run_block(RUN, serializer), CONTEXT)
    written = job_template.template(declared)["meta"] + ends
    assert SERIALIZERS[serializer].loads(written) == {**meta, **CONTEXT, "beat": RUN.plain()}
    assert safe_pickle.beat_entry(written, serializer) == RUN.plain()


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_every_part_of_a_broadcast_has_the_context(serializer: str) -> None:
    ends = metadata.in_context(job_template.run_blocks(RUN, serializer, 3), CONTEXT)
    lengths, _, rest = ends.partition(b"\n")
    assert len(rest) == sum(map(int, lengths.split()))
    first = rest[: int(lengths.split()[0])]
    opened = b'{"beat": ' if serializer == "json" else pickle.dumps({})[:-1]
    read = SERIALIZERS[serializer].loads(opened + first)
    assert (read["traceparent"], read["beat"]["shards"]) == (CONTEXT["traceparent"], 3)


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_a_beat_that_is_driven_by_hand_traces_too(spans: Spans) -> None:
    registry = Registry()
    registry.register(job_functions.anything, every="1h")
    beat = ManualBeat(TICK, registry=registry)
    beat.tick_until("1h")
    assert beat.run_jobs() == [[[], {}]]
    [span] = spans.named()
    assert attributes(span)["rq.job.id"] == beat.fired[0].job_id
    assert parent(span)


def test_a_beat_that_is_driven_by_hand_can_be_told_not_to(spans: Spans) -> None:
    registry = Registry()
    registry.register(job_functions.anything, every="1h")
    ManualBeat(TICK, registry=registry, traces="off").tick_until("1h")
    assert spans.named() == []
