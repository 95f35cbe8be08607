"""Stop a scheduler on SIGTERM and SIGINT."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_INTERRUPTED = 130


@contextlib.contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on SIGTERM or SIGINT within the context; a second signal ends the process at once.

    Outside the main thread it does nothing, because only that thread may set signal handlers.
    """
    asked: list[bool] = []

    def handle(*_: object) -> None:
        if asked:
            os._exit(_INTERRUPTED)
        asked.append(True)
        stop()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, handle) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
