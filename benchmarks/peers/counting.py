"""Lost and doubled, from what arrived in the queue: pure, and kinder to a contender than to a user.

Where a message names its tick the count is exact. Where it does not, there is only the instant at which it arrived: it
is held against a grid of one tick per period, and the pairing and the phase that look best for the contender are taken.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PERIOD = 1.0
REACH = 0.75
"""How far, in seconds, a message may be from a tick and still stand for it: enough for any phase (a restart begins a
new one) and a quarter of a second of jitter, too little for a message in time to hide the loss of the next tick."""
MARGIN = 3
"""Ticks before and after those counted, so that a message near an edge finds the tick it belongs to."""


class Count(NamedTuple):
    """What became of the ticks that were due from `begin` until `end`."""

    due: int
    lost: int
    doubled: int
    silence: float
    """The longest time in which nothing arrived, in seconds: late ticks are not lost, but they are late."""


def count_named(messages: Iterable[tuple[float, int]], begin: int, end: int) -> Count:
    """`messages` are (arrived, tick): every whole second from `begin` until `end` must come once, however late."""
    messages = list(messages)
    seen = Counter(tick for _, tick in messages if begin <= tick < end)
    silence = longest_silence((arrived for arrived, _ in messages), begin, end)
    return Count(end - begin, end - begin - len(seen), seen.total() - len(seen), silence)


def count_by_grid(instants: Iterable[float], begin: int, end: int) -> Count:
    """One message is expected each second, at any phase: the phase of that message is taken which looks best."""
    arrived = sorted(instants)
    phases = sorted({(instant - begin) % PERIOD for instant in arrived}) or [0.0]
    lost, doubled = min((_pair(arrived, begin, end, phase) for phase in phases), key=sum)
    return Count(end - begin, lost, doubled, longest_silence(arrived, begin, end))


def longest_silence(instants: Iterable[float], begin: float, end: float) -> float:
    inside = (instant for instant in instants if begin < instant < end)
    return max(later - earlier for earlier, later in pairwise([begin, *sorted(inside), end]))


def _pair(arrived: Sequence[float], begin: int, end: int, phase: float) -> tuple[int, int]:
    """(lost, doubled): as many pairs as can be, which is first come, first paired, since all reaches are equal."""
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
