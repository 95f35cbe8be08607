"""How the parts of a beat are put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.attendant import Attendant
from beat.inquiry import Inquiry
from beat.retirement import Retirement
from beat.ticker import Ticker
from beat.watcher import Watcher

if TYPE_CHECKING:
    from beat.book import Book
    from beat.dialogue import Dialogue
    from beat.event import Emit
    from beat.guard import Guard
    from beat.metrics.tally import Tally
    from beat.obstacles import Obstacles
    from beat.pace import Pace
    from beat.settings import Settings
    from beat.store import Store


def retirement(store: Store, mine: Settings, name: str, emit: Emit) -> Retirement:
    """Of what the code no longer declares."""
    return Retirement(store, beat=name, app=mine.app, after=mine.retire_after, emit=emit)


def ticker(desk: Dialogue, book: Book, pace: Pace, told: dict[str, Any], *, guard: Guard, tally: Tally) -> Ticker:
    """With all that it works with."""
    made = Ticker(desk, book, pace, **told)
    tally.passes, tally.health = made.passes, told["health"]
    made.timekeeper.guard, made.holding.inquiry = guard, Inquiry(desk)
    made.attendant = attendant(desk, book, told["token"], told["emit"], told["obstacles"])
    return made


def attendant(store: Store, book: Book, name: str, emit: Emit, obstacles: Obstacles) -> Attendant:
    """Build an attendant: each thread has its own, as it has its own connection."""
    return Attendant(store, book, Watcher(store, name=name, emit=emit), token=name, emit=emit, obstacles=obstacles)
