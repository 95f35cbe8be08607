"""Define every metric with its name, kind, meaning and labels, in the order of the output."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"


@dataclass(frozen=True)
class Family:
    """A metric and its current values."""

    name: str
    kind: str
    meaning: str
    labels: tuple[str, ...] = ()
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    """The values of the labels and the number; for a histogram, each bound and the cumulative count."""
    sums: list[float] = field(default_factory=list)
    """The sum of all observations of a histogram; empty for other kinds."""


def families() -> dict[str, Family]:
    """Return all metrics by name, without values."""
    made = (
        Family("beat_schedules", GAUGE, "Schedules, by state.", ("state",)),
        Family("beat_instances", GAUGE, "Beats that are alive."),
        Family("beat_open_runs", GAUGE, "Jobs whose outcome is not known yet."),
        Family("beat_unread_queues", GAUGE, "Queues to which ticks go, and that no live worker reads."),
        Family("beat_last_pass_timestamp_seconds", GAUGE, "When a beat last looked for due ticks.", ("beat",)),
        Family("beat_clock_offset_seconds", GAUGE, "How far a machine's clock is ahead of Redis'.", ("beat",)),
        Family("beat_enqueued_total", COUNTER, "Ticks that became jobs, and runs that were asked for.", ("schedule",)),
        Family("beat_runs_total", COUNTER, "Runs that ended, by how.", ("schedule", "status")),
        Family("beat_skips_total", COUNTER, "Ticks that passed without a job, by why.", ("schedule", "reason")),
        Family("beat_consecutive_failures", GAUGE, "Runs that failed since one succeeded.", ("schedule",)),
        Family("beat_last_run_timestamp_seconds", GAUGE, "The newest tick that became a job.", ("schedule",)),
        Family("beat_last_success_timestamp_seconds", GAUGE, "When a run last succeeded.", ("schedule",)),
        Family("beat_next_run_timestamp_seconds", GAUGE, "When the next tick is due.", ("schedule",)),
        Family("beat_period_seconds", GAUGE, "From the newest tick, fired or skipped, to the next.", ("schedule",)),
        Family("beat_enqueue_lateness_seconds", HISTOGRAM, "How long after it was due a tick became a job.", ("le",)),
        Family("beat_queue_wait_seconds", HISTOGRAM, "How long a job was in its queue.", ("le",)),
        Family("beat_run_duration_seconds", HISTOGRAM, "How long a run took.", ("le",)),
        Family("beat_pass_duration_seconds", HISTOGRAM, "How long it took to fire what was due.", ("le",)),
        Family("beat_lock_failures_total", COUNTER, "Schedules that another beat had, or took over."),
        Family("beat_redis_errors_total", COUNTER, "Commands that Redis did not carry out, or did not answer."),
        Family("beat_events_missed_total", COUNTER, "Events that were trimmed before they were in the histograms."),
    )
    return {each.name: each for each in made}
