"""Send the next request to Redis before the previous reply has come, so the ticker need not wait for each reply."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from beat.storage import connection, scripts
from beat.storage.batches import counted
from beat.storage.messages import Claimed, Decided, Looked, replies
from beat.storage.store import Store, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from beat.storage.connection import Redis
    from beat.storage.keys import Keys
    from beat.storage.messages import Item, Registration, Reply, Sight
    from beat.storage.scripts import Value


class Dialogue(Store):
    """A store for one thread, over one pipelined connection; an exception drops all outstanding requests."""

    def __init__(self, client: Redis, keys: Keys, **limits: int) -> None:
        super().__init__(client, keys, **limits)
        self._line = connection.Line(client)
        self._asked: deque[tuple[Sequence[Item], bool]] = deque()
        for name in ("claim", "fire"):
            scripts.script(name)  # to read one takes some milliseconds, for which no tick should wait

    @property
    def answered_at(self) -> float:
        """Return when the last reply came, by the monotonic clock."""
        return self._line.answered_at

    def ask(self, items: Sequence[Item], unread: Iterable[str], /, **asked: Any) -> None:
        """Send `fire` if there are items, then `claim` if `limit` is not 0, in one message."""
        calls = [self.call("fire", counted(self.tracer.sent(items)), token=asked["token"])] if items else []
        if asked["limit"]:
            calls.append(self.call("claim", ([each] for each in unread), **asked))
        self._line.ask(calls)
        self._asked.append((items, bool(asked["limit"])))

    def answer(self) -> tuple[Decided | Exception, Claimed | Exception]:
        """Return the reply to the oldest request, with an exception in the place of each script that Redis rejected."""
        replies = self._line.answer()
        items, claims = self._asked.popleft()
        fired = replies[0] if items else [0, b"OK"]
        decided = fired if isinstance(fired, Exception) else Decided.read(fired, len(items))
        if isinstance(decided, Decided):
            self.tracer.decided(items, decided.replies)
        if not claims:
            return decided, decided if isinstance(decided, Exception) else Claimed("OK", decided.now)
        return decided, replies[-1] if isinstance(replies[-1], Exception) else Claimed.read(replies[-1])

    def looking(self, items: Sequence[Sight], *, app: str = "") -> Callable[[], Looked]:
        """Request the schedules that differ from the expected state; the returned function waits for the reply.

        Call these functions in the order of the requests.
        """
        self._line.ask([self.call("look", items, app=app)])
        return lambda: Looked.read(self._reply())

    def registering(self, items: Iterable[Registration], *, beat: str) -> Callable[[], list[Reply]]:
        """Send definitions to Redis; the returned function waits for the replies, as with `looking`."""
        self._line.ask([self.call("register", words_of(items), beat=beat)])
        return lambda: replies(self._reply()[1:])

    def in_turn(self, name: str, pages: Iterable[Iterable[Sequence[Value]]], /, **named: Any) -> Iterator[Any]:
        """Run a script for each of these pages of items; send each before the reply to the previous one has come."""
        waits = False
        try:
            for page in pages:
                self._line.ask([self.call(name, page, **named)])
                if waits:
                    yield self._reply()
                waits = True
            if waits:
                yield self._reply()
        finally:
            self.hang_up()  # so that no later request can get a reply meant for this one

    def _reply(self) -> Any:
        [reply] = self._line.answer()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def hang_up(self) -> None:
        """Close the connection, and drop all outstanding requests."""
        self._line.hang_up()
        self._asked.clear()
