"""Draw the durations of runs as bars, oldest first, each filled by its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from beat.client.describe import instants
from beat.history.history import Fired
from beat.web.charts import shapes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beat.history.history import Line
    from beat.timing.zones import Zone

MOST = 100
_ROOM = 40
"""Minimum number of bars that fit, so that a few bars stay narrow; they stand at the right."""
_STEP, _BAR, _HEIGHT, _LEAST = 5, 4, 64, 2


def ended(lines: Iterable[Line]) -> list[Fired]:
    """Return the newest runs whose duration is known, oldest first."""
    runs = [line for line in lines if isinstance(line, Fired) and line.duration is not None][:MOST]
    return runs[::-1]


def drawn(lines: Iterable[Line], where: Zone) -> Markup:
    """Return the bars, with heights relative to the longest run; empty if there are fewer than two."""
    runs = ended(lines)
    if len(runs) < 2:  # noqa: PLR2004 (one bar has no other to compare with)
        return Markup("")
    longest = max(run.duration or 0 for run in runs) or 1.0
    free = max(0, _ROOM - len(runs))
    bars = [_bar(free + n, run, longest, where) for n, run in enumerate(runs)]
    words = f"How long the last {len(runs)} runs took: at most {instants.span(longest)}"
    return Markup(
        '<svg class="durations" role="img" aria-label="{}" viewBox="0 0 {} {}" preserveAspectRatio="none">{}</svg>'
    ).format(words, (free + len(runs)) * _STEP, _HEIGHT, shapes.joined(bars))


def _bar(n: int, run: Fired, longest: float, where: Zone) -> Markup:
    took = run.duration or 0.0
    height = max(_LEAST, _HEIGHT * took / longest)
    at = instants.local((run.tick or run.at).replace(microsecond=0), where)
    words = f"{at}: {run.state} after {instants.span(took)}"
    return shapes.box((n * _STEP, _HEIGHT - height), (_BAR, height), shapes.fill(run.state), words)
