"""Count lost and doubled ticks from the messages in the queue, in favour of the contender where in doubt.

If messages name their tick, the count is exact. Otherwise only their arrival times are known. They are compared with a
grid of one tick per period, by the pairing and the phase that look best for the contender.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PERIOD = 1.0
REACH = 0.75
"""How far, in seconds, a message may be from its tick. It allows any phase (a restart begins a new one) and jitter of a
quarter of a second. It is too short for a punctual message to hide the loss of the next tick."""
MARGIN = 3
"""How many ticks to add before and after those counted, so that a message near an edge finds its tick."""


class Count(NamedTuple):
    """The counts for the ticks that were due from `begin` until `end`."""

    due: int
    lost: int
    doubled: int
    silence: float
    """The longest time without a message, in seconds: it shows ticks that were late but not lost."""


def count_named(messages: Iterable[tuple[float, int]], begin: int, end: int) -> Count:
    """Count pairs of (arrived, tick): each whole second from `begin` until `end` must come once, however late."""
    messages = list(messages)
    seen = Counter(tick for _, tick in messages if begin <= tick < end)
    silence = longest_silence((arrived for arrived, _ in messages), begin, end)
    return Count(end - begin, end - begin - len(seen), seen.total() - len(seen), silence)


def count_by_grid(instants: Iterable[float], begin: int, end: int) -> Count:
    """Count by a grid of one message per second, at the phase of the message that gives the best result."""
    arrived = sorted(instants)
    phases = sorted({(instant - begin) % PERIOD for instant in arrived}) or [0.0]
    lost, doubled = min((_pair(arrived, begin, end, phase) for phase in phases), key=sum)
    return Count(end - begin, lost, doubled, longest_silence(arrived, begin, end))


def longest_silence(instants: Iterable[float], begin: float, end: float) -> float:
    inside = (instant for instant in instants if begin < instant < end)
    return max(later - earlier for earlier, later in pairwise([begin, *sorted(inside), end]))


def _pair(arrived: Sequence[float], begin: int, end: int, phase: float) -> tuple[int, int]:
    """Return (lost, doubled) for the most pairs. First come, first paired is optimal because all reaches are equal."""
    ticks = [begin + phase + n * PERIOD for n in range(-MARGIN, end - begin + MARGIN)]
    lost = doubled = n = 0
    for instant in arrived:
        while n < len(ticks) and ticks[n] < instant - REACH:
            lost += begin <= ticks[n] < end
            n += 1
        if n < len(ticks) and ticks[n] <= instant + REACH:
            n += 1
        else:
            doubled += begin <= instant < end
    return lost + sum(begin <= tick < end for tick in ticks[n:]), doubled
