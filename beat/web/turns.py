"""Threads that make answers: a few at a time, and none that the end of the process waits for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Turns:
    """Room for so many at once; who else comes waits. A thread may wait for Redis for seconds: it is a daemon."""

    def __init__(self, at_once: int) -> None:
        self._room = threading.BoundedSemaphore(at_once)

    async def take(self, work: Callable[..., T], *given: Any) -> T:
        """What `work` returns or raises, from a thread."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            with self._room:
                try:
                    made: Any = work(*given)
                except BaseException as e:  # noqa: BLE001 (whatever it is, who asked is told)
                    _tell(loop, told, told.set_exception, e)
                else:
                    _tell(loop, told, told.set_result, made)

        threading.Thread(target=run, name="beat-web-turn", daemon=True).start()
        return await told


def _tell(loop: asyncio.AbstractEventLoop, told: asyncio.Future[T], tell: Callable[[Any], None], what: object) -> None:
    with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
        loop.call_soon_threadsafe(lambda: None if told.done() else tell(what))
