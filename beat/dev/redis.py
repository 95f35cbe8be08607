"""The Redis of a `beat dev`: the one that was given, or a private one, kept running from the first round to the end."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING

from beat.config import redis_url
from beat.dev import embedded
from beat.engine.retirement import Retirement
from beat.errors import NoRedis
from beat.storage import connection
from beat.storage.keys import Keys
from beat.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_LOOK_EVERY_S = 1.0


class Server:
    """A Redis at `url`, once it is started; `say` is told which."""

    def __init__(self, given: str | None, say: Callable[[str], None]) -> None:
        self._given, self._say = given, say
        self._private: embedded.PrivateRedis | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return self._given or (self._private.url if self._private else "")

    def start(self) -> None:
        """Starts the private one, unless a Redis was given. Raises NoRedis."""
        if self._given:
            self._say(redis_url.masked(self._given))
            return
        self._private = embedded.start(embedded.DIRECTORY)
        shared = "" if self._private.owned else ", shared with the process that started it"
        self._say(f"{_words(self._private.server)}, data in {embedded.DIRECTORY}{shared}")
        self._say(self._private.url)

    async def tend(self) -> None:
        """Starts the private one again whenever it is gone: killed, or ended by the other who shared it."""
        told = ""
        while self._private:
            await asyncio.sleep(_LOOK_EVERY_S)
            if embedded.running(embedded.DIRECTORY):
                continue
            try:
                self._private.stop()
                self._private = embedded.start(embedded.DIRECTORY)
                self._say(f"was gone, and is started again: {_words(self._private.server)}")
            except NoRedis as e:
                if told != str(e):
                    self._say(told := str(e))

    def retire(self, declared: Collection[str], prefix: str) -> None:
        """On a Redis of our own, what is declared no more fires no more: a renamed function is not called for ever."""
        if not self._private or not self._private.owned:
            return
        with contextlib.suppress(*connection.Errors):  # it was killed this very moment
            store = Store(connection.connect(self.url), Keys(prefix))
            strangers = {each for page in store.ids() for each in page} - {*declared}
            retirement = Retirement(store, beat="beat dev", app="", after=timedelta(0), emit=lambda _event: None)
            if retired := retirement.retire(sorted(strangers)):
                self._say(f"declared no more, and retired: {', '.join(retired)}")
            store.client.close()

    def end(self) -> None:
        """Ends the private one, with everything written to disk."""
        if self._private:
            self._private.stop()


def _words(server: embedded.Server) -> str:
    return f"{server.name} {server.version}"
