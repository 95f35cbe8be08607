"""The same metrics for a program that has a registry of prometheus_client's of its own: the extra `metrics`."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from beat import connection, settings
from beat.errors import BeatError, ConfigError
from beat.health import cause
from beat.keys import Keys
from beat.metrics import folding, reading
from beat.metrics.families import HISTOGRAM
from beat.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

    from beat.connection import Redis
    from beat.metrics.families import Family

_log = logging.getLogger("beat.metrics")
MISSING = "a collector needs prometheus_client: pip install 'rq-beat[metrics]'"


class Collector:
    """Reads Redis whenever it is asked; `REGISTRY.register(Collector())` is all there is to do.

    `redis` is a URL, a client, or what the settings say; options are settings by name, as in `metrics_schedules="a*"`.
    """

    def __init__(self, redis: Redis | str | None = None, **options: Any) -> None:
        mine = settings.load(options).settings
        self._store = Store(connection.connect(redis or mine.redis_url), Keys(mine.prefix))
        self._globs, self._metric = mine.metrics_schedules, _metric()
        self._complained = False

    def describe(self) -> Iterator[Metric]:
        """Nothing, so that a registry does not ask Redis just to know the names."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Every metric; none while Redis is away, for the page has others on it, too."""
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
            found = reading.read(self._store, self._globs)
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
