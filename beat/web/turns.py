"""Threads that make answers: a few at a time, and none that the end of the process waits for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.exceptions import HTTPException

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_MOST = 300
"""Who wait: each has a thread. A server of our own takes fewer connections; one that we are mounted in may take any."""


class Turns:
    """Room for so many at once; who else comes waits, and beyond so many is sent away.

    A thread may wait for Redis for seconds: it is a daemon.
    """

    def __init__(self, at_once: int, most: int = _MOST) -> None:
        self._room, self._places = threading.BoundedSemaphore(at_once), threading.BoundedSemaphore(most)

    async def take(self, work: Callable[..., T], *given: Any) -> T:
        """What `work` returns or raises, from a thread."""
        if not self._places.acquire(blocking=False):
            raise _crowded()
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
                finally:
                    self._places.release()

        try:
            threading.Thread(target=run, name="beat-web-turn", daemon=True).start()
        except RuntimeError:  # the system gives no more threads
            self._places.release()
            raise _crowded() from None
        return await told


def _crowded() -> HTTPException:
    return HTTPException(503, "too many ask at the same time: come again in a moment", {"retry-after": "2"})


def _tell(loop: asyncio.AbstractEventLoop, told: asyncio.Future[T], tell: Callable[[Any], None], what: object) -> None:
    with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
        loop.call_soon_threadsafe(lambda: None if told.done() else tell(what))
