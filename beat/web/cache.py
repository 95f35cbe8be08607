"""Compute slow values in the background, so that a page shows the newest value and never waits long.

Only one value is computed at a time, and each takes up a small share of the time, so that requests keep the CPU.
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
"""Delay before a slow computation starts, so that the page that needs it is sent first."""
_SHARE = 20
"""A value is kept for at least this many times as long as it took to compute."""


class _Made(NamedTuple):
    at: float
    took: float
    value: Any


class Background:
    """The newest value by name, each computed by at most one thread."""

    def __init__(self) -> None:
        self._made: dict[str, _Made] = {}
        self._making: dict[str, threading.Thread] = {}
        self._lock, self._turn = threading.Lock(), threading.Lock()

    def newest(self, name: str, seconds: float, make: Callable[[], Any], *, quick: bool = True) -> Any | None:
        """Return the newest value, and start replacing it if it is older than `seconds`; None until the first is ready.

        If the first value is `quick`, wait for it briefly. Otherwise start it after the page that needs it was sent.
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
            with self._turn, contextlib.suppress(BeatError):  # if Redis is unavailable, the page reports it
                began = time.monotonic()
                value = make()
                ended = time.monotonic()
                self._made[name] = _Made(ended, ended - began, value)
        finally:
            del self._making[name]
