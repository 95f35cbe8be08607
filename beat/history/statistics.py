"""Summarize the history of a schedule: counts of runs and skipped ticks, and percentiles of their times.

Only measured values count: a run without a duration is left out, and a spread of no values is None.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from beat.history.history import Fired, Passed
from beat.history.ledger import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from beat.history.history import Line


@dataclass(frozen=True)
class Spread:
    """Percentiles of a measure: half of the values are at most p50, and 95 percent are at most p95."""

    count: int
    p50: float
    p95: float
    max: float


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The runs and skipped ticks of some history lines."""

    since: datetime | None = None
    """When the oldest of those lines was written."""
    runs: int = 0
    open: int = 0
    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    lost: int = 0
    duration: Spread | None = None
    """Seconds of work, for runs that ended."""
    late_ms: Spread | None = None
    """Milliseconds from the tick to its job, without requested runs and ticks that waited for a slot."""
    wait: Spread | None = None
    """Seconds in the queue."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Reason → how many ticks were skipped for it."""

    @property
    def success_rate(self) -> float | None:
        """Return the share of successes (0 to 1) among runs that succeeded, failed or were lost; None without any."""
        judged = self.succeeded + self.failed + self.lost
        return self.succeeded / judged if judged else None


def summarise(lines: Iterable[Line]) -> Statistics:
    """Return the statistics of these lines, in any order."""
    lines = list(lines)
    runs = [line for line in lines if isinstance(line, Fired)]
    states = Counter(run.state for run in runs)
    skipped: Counter[str] = Counter()
    for line in lines:
        if isinstance(line, Passed):
            skipped[line.reason] += line.count
    return Statistics(
        since=min((line.at for line in lines), default=None),
        runs=len(runs),
        open=sum(number for state, number in states.items() if state not in OUTCOMES),
        succeeded=states["succeeded"],
        failed=states["failed"],
        stopped=states["stopped"],
        lost=states["lost"],
        duration=spread(run.duration for run in runs),
        late_ms=spread(run.late_ms for run in runs if run.tick and not run.waited),
        wait=spread(run.wait for run in runs),
        skipped=dict(skipped),
    )


def spread(values: Iterable[float | None]) -> Spread | None:
    """Return the percentiles of the values that are not None, or None without values.

    Each percentile is a measured value, never an interpolated one.
    """
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    p50, p95 = (known[math.ceil(len(known) * share / 100) - 1] for share in (50, 95))
    return Spread(len(known), p50, p95, known[-1])
