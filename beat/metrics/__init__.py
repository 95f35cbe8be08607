"""Metrics for Prometheus: read from Redis when somebody asks, so that every beat answers the same.

What each schedule did stands in its own hash. How long things took is folded from the events into histograms, and what
only processes know, such as locks that were not got, each beat adds to the counts of all: both off the path of a fire.
"""

from __future__ import annotations

from beat.metrics.collector import Collector
from beat.metrics.serving import Metrics
from beat.metrics.tally import Tally

__all__ = ["Collector", "Metrics", "Tally"]
