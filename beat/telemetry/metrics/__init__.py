"""Serve metrics for Prometheus, read from Redis at each scrape, so that every scheduler gives the same answer.

The counts of each schedule are in its own hash. Durations are folded from the event stream into histograms in Redis.
Each scheduler adds what only processes know, such as failed locks, to shared totals. Neither delays a fire.
"""

from __future__ import annotations

from beat.client.connected import Connected
from beat.telemetry.metrics import collector, folding, page
from beat.telemetry.metrics.collector import Collector
from beat.telemetry.metrics.server import Metrics
from beat.telemetry.metrics.tally import Tally

__all__ = ["Collector", "Metrics", "Tally"]


class Asking(Connected):
    """The metrics of one installation, for processes other than a scheduler."""

    def page(self, *, fold: bool = True) -> str:
        """Return the metrics as Prometheus reads them; with `fold`, fold new events first if Redis allows it."""
        with self._asking():
            if fold:
                folding.fold_if_possible(self._store)
            return page.text(collector.read(self._store, self.settings.metrics_schedules))
