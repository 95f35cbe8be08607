"""All metrics, read from Redis at this moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client import beats
from beat.metrics import folding, schedules
from beat.metrics.families import Family, families
from beat.metrics.tally import LOCK_FAILURES, PASS, REDIS_ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from beat.metrics.schedules import Row
    from beat.store import Store

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
    """Every metric; the globs say which schedules have some of their own."""
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
    alive = beats.alive(store, store.time())
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
    return reply if isinstance(reply, int) else 0  # a key of another kind; the housekeeper says so
