"""Provide the Redis of `beat dev`: the one that the user names, or a private one that runs until the command ends."""

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
    """The Redis of one `beat dev`; `say` receives messages about it."""

    def __init__(self, given: str | None, say: Callable[[str], None]) -> None:
        self._given, self._say = given, say
        self._private: embedded.PrivateRedis | None = None

    @property
    def url(self) -> str:
        """Return the URL of the Redis, or an empty text before a private one has started."""
        return self._given or (self._private.url if self._private else "")

    def start(self) -> None:
        """Start a private Redis unless a URL was given, and say which one is used. Raise NoRedis if none starts."""
        if self._given:
            self._say(redis_url.masked(self._given))
            return
        self._private = embedded.start(embedded.DIRECTORY)
        shared = "" if self._private.owned else ", shared with the process that started it"
        self._say(f"{_words(self._private.server)}, data in {embedded.DIRECTORY}{shared}")
        self._say(self._private.url)

    async def tend(self) -> None:
        """Restart the private Redis whenever it is gone, because it was killed or its owner has ended."""
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
        """Retire schedules that the code no longer declares, so that a renamed function is not called for ever.

        Do so only on a private Redis that this process started.
        """
        if not self._private or not self._private.owned:
            return
        with contextlib.suppress(*connection.Errors):  # Redis may have been killed just now
            store = Store(connection.connect(self.url), Keys(prefix))
            strangers = {each for page in store.ids() for each in page} - {*declared}
            retirement = Retirement(store, beat="beat dev", app="", after=timedelta(0), emit=lambda _event: None)
            if retired := retirement.retire(sorted(strangers)):
                self._say(f"declared no more, and retired: {', '.join(retired)}")
            store.client.close()

    def end(self) -> None:
        """Stop the private Redis after it has written everything to disk."""
        if self._private:
            self._private.stop()


def _words(server: embedded.Server) -> str:
    return f"{server.name} {server.version}"
