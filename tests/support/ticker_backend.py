"""A ticker's desk without Redis: what is handed out and what is answered is written down beforehand."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from beat.engine import pacing, ticker
from beat.engine.clock_guard import Mark
from beat.engine.definition_cache import Book
from beat.engine.health import Health
from beat.engine.pacing import Pace
from beat.engine.ticker import Ticker
from beat.schedule import serialize
from beat.schedule.schedule import Schedule
from beat.storage import connection
from beat.storage.keys import Keys
from beat.storage.messages import Claim, Claimed, Decided, Item, Reply
from beat.timing import clock
from beat.timing.interval import Every

if TYPE_CHECKING:
    import pytest

    from beat.engine.events import Event
    from beat.engine.ports import Answer as Told
    from beat.storage.clock_setback import Setback

NINE = 1_794_819_600_000
PACE = Pace(interval=1000, lookahead=1000, lock_ttl=10_000, misfire_limit=20_000, page_size=100)
Answer = Callable[[Sequence[Item]], Sequence[Reply]] | Exception


class World:
    """Two clocks that a test sets: Redis' and this machine's."""

    def __init__(self) -> None:
        self.redis_ms = NINE
        self.uptime_ms = 5_000_000

    def passes(self, ms: int) -> None:
        self.redis_ms += ms
        self.uptime_ms += ms

    @classmethod
    def of(cls, monkeypatch: pytest.MonkeyPatch) -> World:
        made = cls()
        monkeypatch.setattr(pacing, "time", SimpleNamespace(monotonic=lambda: made.uptime_ms / 1000))
        monkeypatch.setattr(ticker, "uptime_ms", lambda: made.uptime_ms)
        monkeypatch.setattr(ticker, "mark", lambda asked, redis: Mark("boot", asked, made.uptime_ms, redis))
        return made


class Desk:
    """Hands out one page of claims after the other, and answers as it was told; else OK."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.pages: deque[Sequence[Claim]] = deque()
        self.troubles: tuple[tuple[str, Reply], ...] = ()
        self.answers: deque[Answer] = deque()
        self.asked: list[dict[str, Any]] = []
        self.sent: list[list[Item]] = []
        self.holds: list[tuple[int, int]] = []
        self.unread: list[str] = []
        self.sound = ""
        self.went_back: Setback | None = None
        self._answers: deque[Told] = deque()
        self.keys = Keys()

    def claim(self, unread: Iterable[str] = (), **asked: Any) -> Claimed:
        self.asked.append(asked)
        self.unread = list(unread)
        troubles, self.troubles = self.troubles, ()
        return Claimed("OK", self.world.redis_ms, tuple(self.pages.popleft() if self.pages else ()), troubles)

    def fire(self, items: Sequence[Item], *, token: str) -> Decided:
        assert token == "beat-1"  # noqa: S105 (the name of a beat)
        self.sent.append(list(items))
        answer = self.answers.popleft() if self.answers else lambda items: [Reply("OK") for _ in items]
        if isinstance(answer, Exception):
            raise answer
        return Decided(self.world.redis_ms, tuple(answer(items)))

    def due(self, limit: int) -> list[str]:
        return [claim.id for page in self.pages for claim in page][:limit]

    def ask(self, items: Sequence[Item], unread: Iterable[str], /, **asked: Any) -> None:
        fired = _tried(self.fire, items, token=asked["token"]) if items else Decided(0, ())
        nothing = fired if isinstance(fired, Exception) else Claimed("OK", fired.now)
        self._answers.append((fired, _tried(self.claim, unread, **asked) if asked["limit"] else nothing))

    def answer(self) -> Told:
        return self._answers.popleft()

    def hang_up(self) -> None:
        self._answers.clear()

    def high_water(self) -> tuple[str, str]:
        return self.sound, ""

    def hold(self, since: int, until: int) -> None:
        self.holds.append((since, until))

    def setback(self) -> Setback | None:
        return self.went_back

    def all_sent(self, kind: str = "fire") -> list[Item]:
        return [item for items in self.sent for item in items if item.kind == kind]


def _tried(step: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
    try:
        return step(*given, **named)
    except connection.Refused as e:
        return e


class Shelf:
    """Definitions by id."""

    def __init__(self, kept: dict[str, tuple[str, str]] | None = None) -> None:
        self.kept = kept or {}

    def definitions(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        return [self.kept.get(each, ("", "")) for each in ids]


class Bench:
    """A ticker at a desk, and what it tells."""

    def __init__(self, world: World, schedules: Sequence[Schedule] = (), **settings: Any) -> None:
        self.world, self.desk, self.shelf = world, Desk(world), Shelf()
        self.events: list[Event] = []
        self.health = Health(self.events.append)
        book = Book(self.shelf, [(each, each.rev) for each in schedules])
        self.ticker = Ticker(
            self.desk,
            book,
            dataclasses.replace(PACE, **settings),
            token="beat-1",  # noqa: S106 (the name of a beat)
            emit=self.events.append,
            health=self.health,
        )

    def told(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == name]


def schedule(schedule_id: str = "report", every: str = "1h", **given: Any) -> Schedule:
    return Schedule(id=schedule_id, func="app.tasks.report", timing=Every(every), **given)


def claim(made: Schedule, due: int = NINE, **given: Any) -> Claim:
    rev = given.pop("rev", made.rev)
    return Claim(made.id, rev, clock.text(clock.from_ms(due)), due, made.priority)._replace(**given)


def written(made: Schedule) -> tuple[str, str]:
    """As a shelf keeps it."""
    return made.rev, serialize.write(made)


def codes(*replies: str | tuple[str, str]) -> Answer:
    """One reply for each item, whatever they are."""
    made = [Reply(each) if isinstance(each, str) else Reply(*each) for each in replies]
    return lambda _: made
