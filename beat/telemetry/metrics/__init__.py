"""Metrics for Prometheus: read from Redis when somebody asks, so that every beat answers the same.

What each schedule did stands in its own hash. How long things took is folded from the events into histograms, and what
only processes know, such as locks that were not got, each beat adds to the counts of all: both off the path of a fire.

The page of metrics for whoever asks, beside the beats that serve it themselves.
"""

from __future__ import annotations

from beat.client.connected import Connected
from beat.telemetry.metrics import collector, folding, page
from beat.telemetry.metrics.collector import Collector
from beat.telemetry.metrics.server import Metrics
from beat.telemetry.metrics.tally import Tally

__all__ = ["Collector", "Metrics", "Tally"]


class Asking(Connected):
    """Reads the metrics of one installation."""

    def page(self, *, fold: bool = True) -> str:
        """What Prometheus reads. What has happened since is folded first, if this user may and nobody minds."""
        with self._asking():
            if fold:
                folding.fold_if_possible(self._store)
            return page.text(collector.read(self._store, self.settings.metrics_schedules))
