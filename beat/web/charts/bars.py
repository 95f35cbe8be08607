"""Draw the newest runs of a schedule as bars that show their durations and outcomes.

The height of a bar compares its run with the other drawn runs. The full height is their 95th percentile, or twice their
median if that is more, so a typical run is half as high at most. A longer run rises above the full height. A run that
did not succeed is never too low to be noticed.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup, escape

from beat.client.describe import instants

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOM = 30
SKIPPED = "skipped"
_ENDED = ("succeeded", "failed", "stopped", "lost")
_STEP, _WIDTH = 7, 5
_TOP, _FULL = 36.0, 31.0
"""The height of the drawing, and that of a bar which has the full height."""
_LOW, _SEEN, _SKIP, _GOING = 2.5, 12.0, 5.0, 16.0
_PERCENT = 0.95
_LONG = _STEP * ROOM

_BEGIN = (
    f'<svg class="bars" viewBox="0 0 {_LONG} {_TOP + 1:g}" width="{_LONG}" height="{_TOP + 1:g}" aria-hidden="true" '
    f'focusable="false"><path class="floor" d="M0 {_TOP + 0.5:g}h{_LONG}"/>'
)
_FILLS = {
    "succeeded": 'class="f-succeeded"',
    **{name: f'fill="url(#p-{name})"' for name in ("failed", "stopped", "lost", SKIPPED)},
}
_OPEN = 'fill="url(#p-open)"'


class Bar(NamedTuple):
    """One run, or one stretch of skipped ticks."""

    outcome: str
    """An outcome of a run, or `skipped`; any other word means that the run has not ended."""
    seconds: float | None
    """How long the run took; None if that is not known."""
    words: str
    """When it was and how it ended, for the tooltip."""
    href: str
    ticks: int = 1
    """How many ticks were skipped."""


def drawn(bars: Sequence[Bar]) -> Markup:
    """Return the bars, oldest first. The newest is at the right edge, even if there are few."""
    shown, full = bars[-ROOM:], longest(bars)
    begin = _LONG - len(shown) * _STEP
    inside = (_bar(each, begin + n * _STEP, full) for n, each in enumerate(shown))
    return Markup(f"{_BEGIN}{''.join(inside)}</svg>")  # noqa: S704 (all foreign text is escaped)


def summary(bars: Sequence[Bar]) -> str:
    """Return a summary, such as `30 runs: 28 succeeded, 2 failed; 3 ticks skipped`."""
    shown = bars[-ROOM:]
    counts = Counter(each.outcome if each.outcome in _ENDED else "not ended" for each in shown if not _skips(each))
    told = ", ".join(f"{counts[name]} {name}" for name in (*_ENDED, "not ended") if counts[name])
    runs = f"{_plural(counts.total(), 'run')}: {told}" if told else "no run yet"
    skipped = sum(each.ticks for each in shown if _skips(each))
    return f"{runs}; {_plural(skipped, 'tick')} skipped" if skipped else runs


def usual(bars: Sequence[Bar]) -> str:
    """Return the typical duration, such as `median 3.1 s`; empty if no duration is known."""
    taken = _taken(bars)
    return f"median {instants.span(statistics.median(taken))}" if taken else ""


def longest(bars: Sequence[Bar]) -> float:
    """Return how many seconds have the full height; 0 if no duration is known."""
    taken = sorted(_taken(bars))
    if not taken:
        return 0.0
    return max(taken[math.ceil(len(taken) * _PERCENT) - 1], 2 * statistics.median(taken))


def height(bar: Bar, full: float) -> float:
    """Return the height of one bar, where `full` seconds have the full height."""
    if _skips(bar):
        return _SKIP
    if bar.outcome not in _ENDED:
        return _GOING
    share = (bar.seconds or 0) / full if full else 0
    own = _TOP if share > 1 else max(_LOW, share * _FULL)
    return own if bar.outcome == "succeeded" else max(own, _SEEN)


def _bar(bar: Bar, x: int, full: float) -> str:
    """Return one bar. It is formatted by hand, because a page has 1,500 bars."""
    high, fill = f"{height(bar, full):.1f}", _FILLS.get(bar.outcome, _OPEN)
    return (
        f'<a href="{escape(bar.href)}" tabindex="-1"><title>{escape(bar.words)}</title>'
        f'<path class="hit" d="M{x} 0h{_STEP}v{_TOP:g}h-{_STEP}z"/>'
        f'<path {fill} d="M{x} {_TOP:g}v-{high}h{_WIDTH}v{high}z"/></a>'
    )


def _skips(bar: Bar) -> bool:
    return bar.outcome == SKIPPED


def _taken(bars: Sequence[Bar]) -> list[float]:
    """Return the durations of the runs that ended by themselves, in seconds."""
    named = (each.seconds for each in bars[-ROOM:] if each.outcome in {"succeeded", "failed"})
    return [each for each in named if each is not None and math.isfinite(each) and each >= 0]


def _plural(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
