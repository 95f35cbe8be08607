"""What takes long is made aside: a page shows what was made last, and waits but a moment for the first.

Only one thing is made at a time, and for a small part of the time, so that pages have the most of the machine.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.errors import BeatError

if TYPE_CHECKING:
    from collections.abc import Callable

_MOMENT_S = 0.12
_LATER_S = 0.2
"""After which the page that asked has gone to its reader."""
_SHARE = 20
"""Of so many parts of the time one is spent here, however long a thing takes."""


class _Made(NamedTuple):
    at: float
    took: float
    value: Any


class Background:
    """Things by name, each made by one thread at a time."""

    def __init__(self) -> None:
        self._made: dict[str, _Made] = {}
        self._making: dict[str, threading.Thread] = {}
        self._lock, self._turn = threading.Lock(), threading.Lock()

    def newest(self, name: str, seconds: float, make: Callable[[], Any], *, quick: bool = True) -> Any | None:
        """What was made last, and made anew meanwhile if that is older; None while the first is not ready.

        What is not `quick` is not waited for, and begun when the page that asks has been answered.
        """
        with self._lock:
            found, thread = self._made.get(name), self._making.get(name)
            old = found is None or time.monotonic() - found.at >= max(seconds, _SHARE * found.took)
            if old and thread is None:
                given = (name, make, 0 if quick else _LATER_S)
                thread = threading.Thread(target=self._make, args=given, name=f"beat-web-{name}", daemon=True)
                self._making[name] = thread
                thread.start()
        if found is None and thread and quick:
            thread.join(_MOMENT_S)
            found = self._made.get(name)
        return found.value if found else None

    def _make(self, name: str, make: Callable[[], Any], wait_s: float) -> None:
        time.sleep(wait_s)
        try:
            with self._turn, contextlib.suppress(BeatError):  # Redis may be away: the page says so itself
                began = time.monotonic()
                value = make()
                ended = time.monotonic()
                self._made[name] = _Made(ended, ended - began, value)
        finally:
            del self._making[name]
