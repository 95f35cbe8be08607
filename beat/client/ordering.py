"""The orders in which schedules are listed, each from any place on; of an index no more is read than is asked for.

Where two are equal, the id decides. Nothing that stays where it is comes twice, or not at all, whatever else moves
meanwhile.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.errors import BadOption
from beat.storage.store import glance, pages
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from beat.storage.store import Store

_LARGEST = 1000
_LAST = math.inf


class Place(NamedTuple):
    """Where a schedule stands in an order."""

    value: float
    """By which it is sorted; 0 where that is the id alone."""
    id: str

    def __str__(self) -> str:
        return self.id if not self.value else f"{self.value:.0f}:{self.id}"


class ById:
    """By the alphabet; `prefix` is how all of them begin."""

    def __init__(self, store: Store, prefix: str = "") -> None:
        self._store, self._keys, self._prefix = store, store.keys, prefix
        self._client: Any = store.client

    def places(self, ids: Sequence[str]) -> list[Place]:
        """Of these."""
        return [Place(0, each) for each in ids]

    def walk(self, after: Place | None = None, size: int = _LARGEST) -> Iterator[list[Place]]:
        """All that stand behind that place, in pages; the first of them is of that size."""
        if not self._is_whole():
            yield from pages(_behind(self.places([*self.everybody()]), after), size)
            return
        low = f"({after.id}" if after and after.id >= self._prefix else f"[{self._prefix}" if self._prefix else "-"
        high = f"({self._prefix}\x7f" if self._prefix else "+"
        for number in _growing(size):
            found = [_text(each) for each in self._client.zrangebylex(self._keys.index("all"), low, high, 0, number)]
            if not found:
                return
            yield self.places(found)
            low = f"({found[-1]}"

    def everybody(self) -> Iterator[str]:
        """In no order; some may come twice."""
        return map(_text, self._client.sscan_iter(self._keys.schedules, count=_LARGEST))

    def _is_whole(self) -> bool:
        """Whether the index has them all: one that somebody deleted is made anew when a beat repairs."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.scard(self._keys.schedules)
            pipe.zcard(self._keys.index("all"))
            known, indexed = pipe.execute(raise_on_error=False)
        if isinstance(known, Exception):
            raise known
        return bool(known == indexed)


class ByNext(ById):
    """By when they are due, or when their pause ends; those that are never due come last."""

    def places(self, ids: Sequence[str]) -> list[Place]:
        """Of these."""
        scores = self._client.zmscore(self._keys.due, ids) if ids else []
        return [Place(_LAST if score is None else score, each) for each, score in zip(ids, scores, strict=True)]

    def walk(self, after: Place | None = None, size: int = _LARGEST) -> Iterator[list[Place]]:
        """All that stand behind that place, in pages."""
        place = after or Place(-math.inf, "")
        for number in _growing(size):
            found = self._beyond(place, number) if place.value < _LAST else []
            if not found:
                break
            yield found
            place = found[-1]
        never = place if place.value == _LAST else None
        for page in super().walk(never and Place(0, never.id), size):
            yield [each for each in self.places([each.id for each in page]) if each.value == _LAST]

    def _beyond(self, place: Place, number: int) -> list[Place]:
        """The next ones of the index. A schedule that has left the place is not asked where it is now."""
        rank = self._client.zrank(self._keys.due, place.id) if place.id else None
        if rank is not None:
            found = _scored(self._client.zrange(self._keys.due, rank, rank + number, withscores=True))
            if found and found[0] == place:
                return found[1:]
        while True:  # many may be due at that instant, and all of those be behind us
            found = _scored(self._client.zrangebyscore(self._keys.due, place.value, "+inf", 0, number, withscores=True))
            beyond = [each for each in found if each > place]
            if beyond or len(found) < number:
                return beyond
            number *= 4


class ByFailures(ById):
    """By how many runs have failed in a row, the most first."""

    def places(self, ids: Sequence[str]) -> list[Place]:
        """Of these."""
        return _by_field(self._store, ids, "consecutive_failures", _number)

    def walk(self, after: Place | None = None, size: int = _LARGEST) -> Iterator[list[Place]]:
        """All that stand behind that place, in pages."""
        failing = self._keys.index("failing")
        if after is None or after.value < 0:
            ids = [_text(each) for each in self._client.sscan_iter(failing, count=_LARGEST)]
            yield from pages(_behind((each for each in self.places(ids) if each.value < 0), after), size)
        rest = after if after and not after.value else None
        for page in super().walk(rest, size):
            fails = self._client.smismember(failing, [each.id for each in page])
            sound = [Place(0, each.id) for each, is_in in zip(page, fails, strict=True) if not is_in]
            if sound:
                yield sound


class ByLast(ById):
    """By when a job was last enqueued, the latest first. There is no index: one field of each schedule is read."""

    def places(self, ids: Sequence[str]) -> list[Place]:
        """Of these."""
        return _by_field(self._store, ids, "last_enqueued", _milliseconds)

    def walk(self, after: Place | None = None, size: int = _LARGEST) -> Iterator[list[Place]]:
        """All that stand behind that place, in pages."""
        yield from pages(_behind(self.places([*self.everybody()]), after), size)


ORDERS: dict[str, type[ById]] = {"id": ById, "next": ByNext, "last": ByLast, "failures": ByFailures}


def order(name: str, store: Store, prefix: str = "") -> ById:
    """The order of that name; refuses what is none."""
    if name not in ORDERS:
        raise BadOption(f"sort {name!r:.60} must be one of {', '.join(ORDERS)}")
    return ORDERS[name](store, prefix)


def place(written: str, found: ById) -> Place:
    """The place that was written so; of an id alone, where it stands now."""
    value, _, schedule_id = written.rpartition(":")
    if not value or type(found) is ById:
        return found.places([schedule_id])[0]
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise BadOption(f"after {written!r:.120} must be an id, or what a list said after which it ended")
    return Place(number, schedule_id)


def _growing(size: int) -> Iterator[int]:
    while True:
        yield size
        size = min(max(2 * size, 1), max(size, _LARGEST))


def _behind(found: Iterable[Place], after: Place | None) -> list[Place]:
    """In order, each once, and only those behind that place."""
    return sorted({each for each in found if after is None or each > after})


def _by_field(store: Store, ids: Sequence[str], field: str, value: Callable[[str], float]) -> list[Place]:
    """The largest first: what has none comes last."""
    found = glance(store, ids, fields=field)
    return [Place(-value(told), each) for each, [told] in zip(ids, found, strict=True)]


def _number(written: str) -> float:
    return float(written) if written.isascii() and written.isdigit() else 0.0


def _milliseconds(written: str) -> float:
    found = clock.found(written)
    return float(clock.to_ms(found)) if found else 0.0


def _scored(found: Iterable[tuple[bytes, float]]) -> list[Place]:
    return [Place(score, _text(member)) for member, score in found]


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
