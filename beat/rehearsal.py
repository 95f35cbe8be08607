"""A rehearsal: the ticker's desk without the consequences. Everything is decided as it would be, nothing is written."""

from __future__ import annotations

import contextlib
import heapq
from typing import TYPE_CHECKING

from beat import clock, definitions, overrides
from beat.desk import InTurn
from beat.errors import DeclarationError
from beat.placement import KEEP, place
from beat.protocol import Claim, Claimed, Decided, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from beat.keys import Keys
    from beat.protocol import Item
    from beat.schedule import Schedule
    from beat.state import State
    from beat.store import Store


Part = tuple["Schedule", str, "datetime | None"]
"""A schedule, its rev and its next tick."""


class Rehearsal(InTurn):
    """Keeps each schedule's next tick in memory, by the clock that it is given."""

    def __init__(self, parts: Iterable[Part], time: Callable[[], datetime], keys: Keys) -> None:
        self.keys = keys
        self._time = time
        self._schedules: dict[str, tuple[Schedule, str]] = {}
        self._due: list[tuple[int, str]] = []
        self._claimed: dict[str, tuple[int, str]] = {}
        for schedule, rev, tick in parts:
            self._schedules[schedule.id] = schedule, rev
            if tick is not None:
                heapq.heappush(self._due, (clock.to_ms(tick), schedule.id))

    def claim(self, _unread: Iterable[str] = (), *, lookahead: int, limit: int, **_others: object) -> Claimed:
        """What is due, or will be within the lookahead."""
        now = clock.to_ms(self._time())
        claims: list[Claim] = []
        while self._due and self._due[0][0] <= now + lookahead and len(claims) < limit:
            due, each = claimed = heapq.heappop(self._due)
            self._claimed[each] = claimed
            schedule, rev = self._schedules[each]
            claims.append(Claim(each, rev, clock.text(clock.from_ms(due)), due, schedule.priority))
        return Claimed("OK", now, tuple(claims))

    def fire(self, items: Sequence[Item], *, token: str) -> Decided:  # noqa: ARG002 (a desk's)
        """Moves on to the next ticks."""
        now = clock.to_ms(self._time())
        replies = [self._decide(item, now) for item in items]
        last = {item.id: (item, reply.code) for item, reply in zip(items, replies, strict=True)}
        for item, code in last.values():  # whoever is told to wait keeps what it has claimed
            if item.kind == "release":
                heapq.heappush(self._due, self._claimed[item.id])
            elif code == "OK" and item.next:
                heapq.heappush(self._due, (item.next_due, item.id))
        return Decided(now, tuple(replies))

    def due(self, limit: int) -> list[str]:
        """What is due by now."""
        now = clock.to_ms(self._time())
        return [each for due, each in sorted(self._due) if due <= now][:limit]

    def high_water(self) -> tuple[str, str]:
        """None is kept."""
        return "", ""

    def hold(self, since: int, until: int) -> None:
        """Nothing to hold: nothing is enqueued."""

    def setback(self) -> None:
        """Return None: no time is kept."""

    def definitions(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """None but those that it was given."""
        return [("", "") for _ in ids]

    @staticmethod
    def _decide(item: Item, now: int) -> Reply:
        return Reply("EARLY", str(item.due - now)) if item.due > now else Reply("OK")


def cast(store: Store, schedules: Iterable[Schedule]) -> list[Part]:
    """Who plays: the schedules of the code, and those that only Redis knows; each with its rev and its next tick."""
    now = store.time()
    known = {schedule.id: (schedule, schedule.rev) for schedule in schedules}
    strangers = [each for page in store.ids() for each in page if each not in known]
    for each, (rev, text) in zip(strangers, store.definitions(strangers), strict=True):
        with contextlib.suppress(DeclarationError):
            schedule = definitions.read(text)
            if schedule.id == each:
                known[each] = schedule, rev
    seen = dict(zip(known, store.look(list(known)), strict=True))
    return [_part(schedule, rev, seen[schedule.id], now) for schedule, rev in known.values()]


def _part(schedule: Schedule, rev: str, seen: State | None, now: datetime) -> Part:
    """As it is in force: an operator may have overridden the code's rule."""
    if seen and seen.override and rev == schedule.rev:
        schedule, rev = overrides.in_force(schedule, seen.override)
    return schedule, rev, _next(schedule, seen, now, rev)


def _next(schedule: Schedule, seen: State | None, now: datetime, rev: str) -> datetime | None:
    placed = place(schedule, seen, now, rev)
    if placed is None or placed.next == KEEP:
        state = placed.state if placed else seen.state if seen else ""
        return seen.next if seen and state == "active" else None
    return clock.read(placed.next) if placed.state == "active" and placed.next else None
