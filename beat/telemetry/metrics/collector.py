"""Read all metrics from Redis, and show them in a program's own registry of prometheus_client (extra `metrics`)."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from beat.config import settings
from beat.errors import BeatError, ConfigError
from beat.storage import announcements, connection
from beat.storage.backoff import cause
from beat.storage.keys import Keys
from beat.storage.store import Store
from beat.telemetry.metrics import folding, schedules
from beat.telemetry.metrics.families import HISTOGRAM, Family, families
from beat.telemetry.metrics.tally import LOCK_FAILURES, PASS, REDIS_ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prometheus_client.metrics_core import Metric

    from beat.storage.connection import Redis
    from beat.telemetry.metrics.schedules import Row


HISTOGRAMS = {
    "beat_enqueue_lateness_seconds": "lateness",
    "beat_queue_wait_seconds": "wait",
    "beat_run_duration_seconds": "duration",
    "beat_pass_duration_seconds": PASS,
}
TOTALS = {
    "beat_lock_failures_total": LOCK_FAILURES,
    "beat_redis_errors_total": REDIS_ERRORS,
    "beat_events_missed_total": "missed",
}
_STATES = ("paused", "disabled", "finished", "retired", "broken")


def read(store: Store, globs: Iterable[str]) -> list[Family]:
    """Read every metric; schedules that match one of the globs have metrics of their own."""
    found = families()
    _overview(store, found)
    _beats(store, found)
    for row in schedules.read(store, globs):
        _schedule(found, row)
    kept = folding.kept(store)
    for name, field in HISTOGRAMS.items():
        rows, total = folding.histogram(kept, field)
        found[name].rows.extend(rows)
        found[name].sums.append(total)
    for name, field in TOTALS.items():
        found[name].rows.append((int(kept.get(field, 0)),))
    return list(found.values())


def _overview(store: Store, found: Mapping[str, Family]) -> None:
    with store.client.pipeline(transaction=False) as pipe:
        pipe.scard(store.keys.schedules)
        pipe.zcard(store.keys.open)
        pipe.hlen(store.keys.unread)
        for state in _STATES:
            pipe.scard(store.keys.index(state))
        total, running, unread, *numbers = (_whole(each) for each in pipe.execute(raise_on_error=False))
    states = {"active": max(total - sum(numbers), 0), **dict(zip(_STATES, numbers, strict=True))}
    found["beat_schedules"].rows.extend(states.items())
    found["beat_open_runs"].rows.append((running,))
    found["beat_unread_queues"].rows.append((unread,))


def _beats(store: Store, found: Mapping[str, Family]) -> None:
    alive = announcements.alive(store, store.time())
    found["beat_instances"].rows.append((len(alive),))
    for each in alive:
        if each.last_pass:
            found["beat_last_pass_timestamp_seconds"].rows.append((each.name, each.last_pass.timestamp()))
        if each.clock_offset_ms is not None:
            found["beat_clock_offset_seconds"].rows.append((each.name, each.clock_offset_ms / 1000))


def _schedule(found: Mapping[str, Family], row: Row) -> None:
    found["beat_enqueued_total"].rows.append((row.id, row.enqueued))
    ends = zip(schedules.STATUSES, row.ends, strict=True)
    found["beat_runs_total"].rows.extend([(row.id, status, number) for status, number in ends])
    found["beat_skips_total"].rows.extend([(row.id, reason, number) for reason, number in row.skips.items()])
    for name, value in (
        ("beat_consecutive_failures", row.failures),
        ("beat_last_run_timestamp_seconds", row.last_run),
        ("beat_last_success_timestamp_seconds", row.last_success),
        ("beat_next_run_timestamp_seconds", row.next_run),
        ("beat_period_seconds", row.period),
    ):
        if value is not None:
            found[name].rows.append((row.id, value))


def _whole(reply: Any) -> int:
    return reply if isinstance(reply, int) else 0  # a key of a wrong type, which the housekeeper reports


_log = logging.getLogger("beat.telemetry.metrics")
MISSING = "a collector needs prometheus_client: pip install 'rq-beat[metrics]'"


class Collector:
    """A collector that reads Redis at each scrape. Register it with `REGISTRY.register(Collector())`.

    `redis` is a URL or a client, and defaults to the URL of the settings. Options are settings by name, as in
    `metrics_schedules="a*"`.
    """

    def __init__(self, redis: Redis | str | None = None, **options: Any) -> None:
        mine = settings.load(options).settings
        self._store = Store(connection.connect(redis or mine.redis_url), Keys(mine.prefix))
        self._globs, self._metric = mine.metrics_schedules, _metric()
        self._complained = False

    def describe(self) -> Iterator[Metric]:
        """Yield nothing, so that registering does not read Redis."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield every metric; none while Redis is unavailable, so that the registry can still show other metrics."""
        for family in self._read():
            made: Metric = self._metric(family.name.removesuffix("_total"), family.meaning, family.kind)
            name = f"{family.name}_bucket" if family.kind == HISTOGRAM else family.name
            for *labels, value in family.rows:
                made.add_sample(name, dict(zip(family.labels, labels, strict=True)), value)
            for total in family.sums:
                made.add_sample(f"{family.name}_count", {}, family.rows[-1][-1])
                made.add_sample(f"{family.name}_sum", {}, total)
            yield made

    def _read(self) -> list[Family]:
        try:
            folding.fold_if_possible(self._store)
            found = read(self._store, self._globs)
        except (*connection.Errors, BeatError) as e:
            if not self._complained:
                self._complained = True
                _log.warning("Redis cannot be asked for metrics, and there are none until it can: %s", cause(e))
            return []
        self._complained = False
        return found


def _metric() -> Any:
    try:
        return importlib.import_module("prometheus_client").Metric
    except ImportError:
        raise ConfigError(MISSING) from None
