"""The ticker's desk: what it needs of Redis. `Dialogue` is one; tests have others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beat.storage.clock_setback import Setback
    from beat.storage.keys import Keys
    from beat.storage.messages import Claimed, Decided, Item

Answer = tuple["Decided | Exception", "Claimed | Exception"]
"""To a question: what became of the items, and what was handed out."""


class Desk(Protocol):
    """What the ticker needs of Redis."""

    keys: Keys

    def fire(self, items: Sequence[Item], *, token: str) -> Decided:
        """Verdicts, carried out."""

    def ask(self, items: Sequence[Item], unread: Iterable[str], /, **asked: Any) -> None:
        """Has Redis `fire`, then `claim`; the answer may be waited for later."""

    def answer(self) -> Answer:
        """The answer to the oldest question; in the place of what Redis refused, the error."""

    def hang_up(self) -> None:
        """No answer is waited for any more."""

    def due(self, limit: int) -> list[str]:
        """The ids of what is due, without taking it."""

    def high_water(self) -> tuple[str, str]:
        """The highest time that a beat has found sound, and the mark that went with it."""

    def hold(self, since: int, until: int) -> None:
        """Nothing is handed out meanwhile."""

    def setback(self) -> Setback | None:
        """Return what it means that Redis' clock went back; None if it did not."""
