"""Answer the ticker at once, because fakeredis has no server that could work while the ticker goes on."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from beat.storage import connection
from beat.storage.messages import Claimed, Decided
from beat.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from beat.engine.ports import Answer
    from beat.storage.connection import Redis
    from beat.storage.keys import Keys
    from beat.storage.messages import Item


class ImmediateStore(Store):
    """A store that fires and claims as soon as the ticker asks, and keeps the answer until the ticker wants it."""

    def __init__(self, client: Redis, keys: Keys, **limits: int) -> None:
        super().__init__(client, keys, **limits)
        self._answers: deque[Answer] = deque()

    def ask(self, items: Sequence[Item], unread: Iterable[str], /, **asked: Any) -> None:
        """Fire the items if there are any, then claim if `limit` is not 0, and keep the answer."""
        fired = _tried(self.fire, items, token=asked["token"]) if items else Decided(0, ())
        nothing = fired if isinstance(fired, Exception) else Claimed("OK", fired.now)
        self._answers.append((fired, _tried(self.claim, unread, **asked) if asked["limit"] else nothing))

    def answer(self) -> Answer:
        """Return the answer to the oldest question, with an error in place of whatever Redis rejected."""
        return self._answers.popleft()

    def hang_up(self) -> None:
        """Discard the answers that the ticker has not taken."""
        self._answers.clear()


def _tried(step: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
    try:
        return step(*given, **named)
    except connection.Refused as e:
        return e
