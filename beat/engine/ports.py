"""Declare what the ticker needs of Redis; `Dialogue` provides it, and tests have substitutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beat.storage.clock_setback import Setback
    from beat.storage.keys import Keys
    from beat.storage.messages import Claimed, Decided, Item

Answer = tuple["Decided | Exception", "Claimed | Exception"]
"""The replies to the items and to the claim of one message; an error in place of what Redis rejected."""


class Desk(Protocol):
    """What the ticker needs of Redis."""

    keys: Keys

    def fire(self, items: Sequence[Item], *, token: str) -> Decided:
        """Carry out these decisions, and return a reply for each."""

    def ask(self, items: Sequence[Item], unread: Iterable[str], /, **asked: Any) -> None:
        """Send `fire` and `claim` in one message, without waiting for the answer."""

    def answer(self) -> Answer:
        """Wait for the answer to the oldest message, and return it."""

    def hang_up(self) -> None:
        """Give up every answer that has not come."""

    def due(self, limit: int) -> list[str]:
        """Return the ids of due schedules, without claiming them."""

    def high_water(self) -> tuple[str, str]:
        """Return the highest time that a scheduler has found sound, and the mark that belongs to it; empty if none."""

    def hold(self, since: int, until: int) -> None:
        """Let no scheduler claim from `since` until `until`, both in ms by Redis' clock."""

    def setback(self) -> Setback | None:
        """Return what follows if Redis' clock went back; None if it did not."""
