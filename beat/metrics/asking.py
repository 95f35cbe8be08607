"""The page of metrics for whoever asks, beside the beats that serve it themselves."""

from __future__ import annotations

from beat.client.connected import Connected
from beat.metrics import folding, page, reading


class Asking(Connected):
    """Reads the metrics of one installation."""

    def page(self, *, fold: bool = True) -> str:
        """What Prometheus reads. What has happened since is folded first, if this user may and nobody minds."""
        with self._asking():
            if fold:
                folding.fold_if_possible(self._store)
            return page.text(reading.read(self._store, self.settings.metrics_schedules))
