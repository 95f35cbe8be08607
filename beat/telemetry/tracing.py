"""Record each fire as an OpenTelemetry span, and pass the context to its job.

This is the only module that imports OpenTelemetry, and it uses only the API. It does nothing until the application has
imported OpenTelemetry and set a tracer provider. A tracer can never stop the ticker: its first error is logged, and
spans end in a thread of their own, because an exporter may block then.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from beat._version import __version__
from beat.jobs import job_template, metadata
from beat.jobs.run import CONTEXT_KEYS
from beat.storage.store import Untraced
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.config.settings import Settings
    from beat.storage.messages import Item, Reply
    from beat.storage.store import Tracer

SPAN = "beat.fire"
_API = "opentelemetry.trace"
_MOST = 10_000
"""The most fires without a decision; beyond it, the oldest ends as unknown. Also the most spans that wait to end."""
_FIRES = {"fire", "admit", "manual"}
_UNDECIDED = {"EARLY", "ENDED"}
_WORDS = {"OK": "fired", "WAITS": "waits", "SKIPPED": "skipped"}
_log = logging.getLogger("beat.telemetry.tracing")


class _Fire(NamedTuple):
    """A fire that is not decided yet."""

    span: Any
    context: dict[str, str]
    """The trace context of its job, the same each time the fire is sent."""


class _End(NamedTuple):
    """A span that waits to be ended."""

    span: Any
    at_ns: int
    verdict: str
    error: str = ""


def wanted(settings: Settings) -> Tracer:
    """Return a new tracer as the settings ask for; each thread needs its own."""
    return Tracing() if settings.traces == "on" else Untraced()


class Tracing:
    """The spans of the fires of one thread."""

    def __init__(self, *, at_once: bool = False) -> None:
        self._open: dict[str, _Fire] = {}
        self._ended: queue.SimpleQueue[_End] = queue.SimpleQueue()
        self._thread = None if at_once else threading.Thread(target=self._run, name="beat-tracing", daemon=True)
        self._complained = False

    def sent(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items with the trace context in each traced job; an item sent again has the same context."""
        if _API not in sys.modules:  # the application does not use it
            return items
        try:
            return self._traced(items)
        except Exception:  # noqa: BLE001 (the application's sampler may raise anything)
            self._complain()
            return items

    def decided(self, items: Sequence[Item], replies: Sequence[Reply]) -> None:
        """End the spans of decided items; those of items that will be sent again stay open."""
        if self._open:
            try:
                self._settle(items, replies)
            except Exception:  # noqa: BLE001 (for example, no thread can be started)
                self._complain()

    def _settle(self, items: Sequence[Item], replies: Sequence[Reply]) -> None:
        ours = {item.job for item in items} - {""}
        for item, reply in zip(items, replies, strict=True):
            fire = None if reply.code in _UNDECIDED else self._open.pop(item.job, None)
            if fire:
                happened = reply.code == "STALE" and reply.words in ours  # fired before, and its reply was lost
                verdict = "fired" if happened else _WORDS.get(reply.code, reply.code.lower())
                error = f"{reply.code} {reply.words}" if reply.code.startswith("BAD") else ""
                self._end(fire, verdict, error)

    def _traced(self, items: Sequence[Item]) -> Sequence[Item]:
        from opentelemetry import trace  # noqa: PLC0415 (it is there already)

        provider = trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
            return items
        tracer = provider.get_tracer("beat", __version__)
        return [self._with_context(item, tracer) if item.kind in _FIRES else item for item in items]

    def _with_context(self, item: Item, tracer: Any) -> Item:
        if item.job not in self._open:
            fire = _begun(item, tracer)
            if not fire.context:
                return item
            self._open[item.job] = fire
            if len(self._open) > _MOST:
                self._end(self._open.pop(next(iter(self._open))), "unknown")
        return item._replace(run=metadata.in_context(item.run, self._open[item.job].context))

    def _end(self, fire: _Fire, verdict: str, error: str = "") -> None:
        end = _End(fire.span, int(clock.now().timestamp() * 1e9), verdict, error)
        if self._thread is None:
            self._finish(end)
        elif self._ended.qsize() < _MOST:  # otherwise the exporter hangs, and the span is lost
            self._ended.put(end)
            if not self._thread.is_alive():
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._finish(self._ended.get())

    def _finish(self, end: _End) -> None:
        from opentelemetry import trace  # noqa: PLC0415 (it is there already)

        try:
            end.span.set_attribute("beat.verdict", end.verdict)
            if end.error:
                end.span.set_status(trace.Status(trace.StatusCode.ERROR, end.error))
            end.span.end(end.at_ns)
        except BaseException:  # noqa: BLE001 (not even an exporter's sys.exit() may end the thread)
            self._complain()

    def _complain(self) -> None:
        if not self._complained:
            self._complained = True
            _log.warning("OpenTelemetry failed, and ticks go on", exc_info=True)


def _begun(item: Item, tracer: Any) -> _Fire:
    """Start the span of a fire; its context is empty if the propagator has none, and then the fire is not traced."""
    from opentelemetry import trace  # noqa: PLC0415 (it is there already)
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415 (as above)

    told = {
        "beat.schedule_id": item.id,
        "beat.tick": item.tick,
        "beat.triggered_by": item.by,
        "rq.job.id": item.job,
        "messaging.system": "rq",
        "messaging.operation.type": "send",
        "messaging.destination.name": ", ".join(job_template.queue_names(item.queue)),
    }
    span = tracer.start_span(SPAN, kind=trace.SpanKind.PRODUCER, attributes=told)
    context: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(context, trace.set_span_in_context(span))
    return _Fire(span, {name: context[name] for name in CONTEXT_KEYS if name in context})
