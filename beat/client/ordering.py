"""Sort schedules for lists, in orders that can continue from any position.

Equal values are sorted by id. A schedule that keeps its position is listed exactly once, whatever moves meanwhile. No
more of an index is read than is needed.
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
    """The position of a schedule in an order."""

    value: float
    """The sort value; 0 if only the id decides."""
    id: str

    def __str__(self) -> str:
        return self.id if not self.value else f"{self.value:.0f}:{self.id}"


class ById:
    """Order by id; all wanted ids begin with `prefix`."""

    def __init__(self, store: Store, prefix: str = "") -> None:
        self._store, self._keys, self._prefix = store, store.keys, prefix
        self._client: Any = store.client

    def places(self, ids: Sequence[str]) -> list[Place]:
        """Return the positions of these schedules."""
        return [Place(0, each) for each in ids]

    def walk(self, after: Place | None = None, size: int = _LARGEST) -> Iterator[list[Place]]:
        """Yield all schedules after the position, in pages; the first page has `size` of them."""
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
        """Iterate over all ids in no order; some may come twice."""
        return map(_text, self._client.sscan_iter(self._keys.schedules, count=_LARGEST))

    def _is_whole(self) -> bool:
        """Return whether the index has all ids; a scheduler rebuilds an index that was deleted."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.scard(self._keys.schedules)
            pipe.zcard(self._keys.index("all"))
            known, indexed = pipe.execute(raise_on_error=False)
        if isinstance(known, Exception):
            raise known
        return bool(known == indexed)


class ByNext(ById):
    """Order by due time, or by the end of the pause; schedules that are never due come last."""

    def places(self, ids: Sequence[str]) -> list[Place]:
        """Return the positions of these schedules."""
        scores = self._client.zmscore(self._keys.due, ids) if ids else []
        return [Place(_LAST if score is None else score, each) for each, score in zip(ids, scores, strict=True)]

    def walk(self, after: Place | None = None, size: int = _LARGEST) -> Iterator[list[Place]]:
        """Yield all schedules after the position, in pages."""
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
        """Return the next entries of the index, even if the schedule at the position has moved."""
        rank = self._client.zrank(self._keys.due, place.id) if place.id else None
        if rank is not None:
            found = _scored(self._client.zrange(self._keys.due, rank, rank + number, withscores=True))
            if found and found[0] == place:
                return found[1:]
        while True:  # many schedules may share the instant, and all of these may be listed already
            found = _scored(self._client.zrangebyscore(self._keys.due, place.value, "+inf", 0, number, withscores=True))
            beyond = [each for each in found if each > place]
            if beyond or len(found) < number:
                return beyond
            number *= 4


class ByFailures(ById):
    """Order by the number of consecutive failures, most first."""

    def places(self, ids: Sequence[str]) -> list[Place]:
        """Return the positions of these schedules."""
        return _by_field(self._store, ids, "consecutive_failures", _number)

    def walk(self, after: Place | None = None, size: int = _LARGEST) -> Iterator[list[Place]]:
        """Yield all schedules after the position, in pages."""
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
    """Order by the last enqueued job, latest first. It has no index, so a field of each schedule is read."""

    def places(self, ids: Sequence[str]) -> list[Place]:
        """Return the positions of these schedules."""
        return _by_field(self._store, ids, "last_enqueued", _milliseconds)

    def walk(self, after: Place | None = None, size: int = _LARGEST) -> Iterator[list[Place]]:
        """Yield all schedules after the position, in pages."""
        yield from pages(_behind(self.places([*self.everybody()]), after), size)


ORDERS: dict[str, type[ById]] = {"id": ById, "next": ByNext, "last": ByLast, "failures": ByFailures}


def order(name: str, store: Store, prefix: str = "") -> ById:
    """Return the order with this name; raise BadOption if there is none."""
    if name not in ORDERS:
        raise BadOption(f"sort {name!r:.60} must be one of {', '.join(ORDERS)}")
    return ORDERS[name](store, prefix)


def place(written: str, found: ById) -> Place:
    """Parse a position; for an id alone, return where that schedule is now."""
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
    """Return the positions after the given one, sorted and without duplicates."""
    return sorted({each for each in found if after is None or each > after})


def _by_field(store: Store, ids: Sequence[str], field: str, value: Callable[[str], float]) -> list[Place]:
    """Return positions by the value of a field, largest first; schedules without the field come last."""
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
