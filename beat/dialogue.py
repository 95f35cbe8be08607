"""The store as the ticker uses it: the next question may go out before the answer to the last has come."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from beat import connection
from beat.protocol import Claimed, Decided
from beat.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beat.connection import Redis
    from beat.keys import Keys
    from beat.protocol import Item


class Dialogue(Store):
    """One ticker's talk with Redis. When anything raises, nothing of what was asked is answered any more."""

    def __init__(self, client: Redis, keys: Keys, **limits: int) -> None:
        super().__init__(client, keys, **limits)
        self._line = connection.Line(client)
        self._asked: deque[int] = deque()

    def ask(self, items: Sequence[Item], unread: Iterable[str], /, **asked: Any) -> None:
        """Sends `fire`, if there is anything, then `claim`, in one message; the answer may be waited for later."""
        calls = [self.call("fire", items, token=asked["token"])] if items else []
        self._line.ask([*calls, self.call("claim", ([each] for each in unread), **asked)])
        self._asked.append(len(items))

    def answer(self) -> tuple[Decided | Exception, Claimed | Exception]:
        """The answer to the oldest question; in the place of what Redis refused, the error."""
        *fired, claimed = self._line.answer()
        number = self._asked.popleft()
        handed = claimed if isinstance(claimed, Exception) else Claimed.read(claimed)
        if fired and isinstance(fired[0], Exception):
            return fired[0], handed
        return Decided.read(fired[0], number) if fired else Decided(0, ()), handed

    def hang_up(self) -> None:
        """No answer is waited for any more."""
        self._line.hang_up()
        self._asked.clear()
