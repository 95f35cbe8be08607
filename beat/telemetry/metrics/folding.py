"""Keep the histograms and totals of all schedulers in one Redis hash.

Durations are folded into it from the event stream, and each scheduler adds what it has counted.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any, cast

from beat.errors import NoRedis
from beat.storage import connection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from beat.storage.store import Store

BOUNDS = (
    "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "30", "60", "120",
    "300", "600", "1800", "3600",
)  # fmt: skip
"""The upper bounds of the buckets, in seconds, as they are written in Redis."""
INF, SUM = "inf", "sum"
UNKEPT = (connection.Refused, NoRedis)
"""The errors of a Redis where metrics can be read but not written."""
_EVENTS = 100  # so that no script blocks Redis for 25 ms, even with the longest events
_PAGES = 100  # covers the whole event stream at its default length
_DAY_MS = 86_400_000
_BEYOND = 1e24  # larger values are invalid, and their sums would overflow


def fold(store: Store, *, count: int = _EVENTS, bounds: str = " ".join(BOUNDS)) -> int:
    """Fold the durations of the next events into the histograms; return how many events were read."""
    return int(_done(store.run("fold", count=count, bounds=bounds)))


def fold_all(store: Store) -> None:
    """Fold all events that are left, up to a limit that keeps the wait short."""
    for _ in range(_PAGES):
        if fold(store) < _EVENTS:
            break


def fold_if_possible(store: Store) -> None:
    """Fold all events, or do nothing if Redis is full or read-only, or if this user may not write."""
    with contextlib.suppress(*UNKEPT):
        fold_all(store)


def tell(store: Store, name: str, items: Sequence[tuple[str, str, str]], *, ttl: int = _DAY_MS) -> None:
    """Add the totals of the scheduler `name` since it last did so; safe to send again."""
    _done(store.run("tally", items, told=store.keys.tally(name), ttl=ttl))


def _done(reply: Any) -> str:
    code, words = (each.decode(errors="replace") for each in reply)
    if code != "OK":
        raise NoRedis(f"metrics cannot be kept: {words}: rename it, or delete it")
    return str(words)


def bucket(seconds: float) -> str:
    """Return the upper bound of the bucket for a duration."""
    return next((bound for bound in BOUNDS if seconds <= float(bound)), INF)


def kept(store: Store) -> dict[str, float]:
    """Return the metrics in Redis, by field."""
    try:
        return amounts(cast("dict[bytes, bytes]", store.client.hgetall(store.keys.metrics)))
    except connection.Refused as e:
        if str(e).startswith("WRONGTYPE"):
            raise NoRedis(f"{store.keys.metrics} is not a hash: rename it, or delete it") from None
        raise


def amounts(found: Mapping[bytes, bytes]) -> dict[str, float]:
    """Return the numbers in the hash, without invalid, negative and huge values."""
    read = ((field.decode(errors="replace"), _number(value)) for field, value in found.items())
    return {field: value for field, value in read if value is not None}


def histogram(kept: Mapping[str, float], name: str) -> tuple[list[tuple[str, int]], float]:
    """Return the cumulative count for each bound, and the sum; other versions' bounds go into the next larger one."""
    counts = dict.fromkeys((*BOUNDS, INF), 0.0)
    for word, number in _buckets(kept, name):
        counts[bucket(word)] += number
    rows = zip((*BOUNDS, "+Inf"), map(int, itertools.accumulate(counts.values())), strict=True)
    return list(rows), kept.get(f"{name}:{SUM}", 0.0)


def _buckets(kept: Mapping[str, float], name: str) -> Iterator[tuple[float, float]]:
    for field, number in kept.items():
        owner, _, word = field.partition(":")
        if owner == name and (word == INF or word in BOUNDS or _number(word.encode()) is not None):
            yield float(word), number


def _number(value: bytes) -> float | None:
    try:
        read = float(value)
    except ValueError:
        return None
    return read if 0 <= read < _BEYOND else None
