"""The ticker's desk: what it needs of Redis. `Dialogue` is one; others stand in where nothing is to be written."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from beat import connection
from beat.protocol import Claimed, Decided

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from beat.keys import Keys
    from beat.protocol import Item
    from beat.setback import Setback

Answer = tuple[Decided | Exception, Claimed | Exception]
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


class InTurn:
    """A desk with no server behind it that could work on something meanwhile: it has the answer at once."""

    claim: Callable[..., Claimed]
    fire: Callable[..., Decided]

    def ask(self, items: Sequence[Item], unread: Iterable[str], /, **asked: Any) -> None:
        """`fire`, then `claim`."""
        fired = _tried(self.fire, items, token=asked["token"]) if items else Decided(0, ())
        nothing = fired if isinstance(fired, Exception) else Claimed("OK", fired.now)
        self._answers.append((fired, _tried(self.claim, unread, **asked) if asked["limit"] else nothing))

    def answer(self) -> Answer:
        """What came of the oldest question."""
        return self._answers.popleft()

    def hang_up(self) -> None:
        """Nobody wants to know any more."""
        self._answers.clear()

    @property
    def _answers(self) -> deque[Answer]:
        found: deque[Answer] = self.__dict__.setdefault("_answered", deque())
        return found


def _tried(step: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
    try:
        return step(*given, **named)
    except connection.Refused as e:
        return e
