"""Wait longer after each failure, and describe an error in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

_FIRST_S, _LONGEST_S = 0.1, 2.0


class Patience:
    """An exponential backoff, up to two seconds."""

    def __init__(self) -> None:
        self._next_s = _FIRST_S

    def wait(self, stopping: threading.Event) -> None:
        """Wait for the current delay, or until `stopping` is set, and double the delay."""
        stopping.wait(self._next_s)
        self._next_s = min(self._next_s * 2, _LONGEST_S)

    def reset(self) -> None:
        """Start over with the shortest delay, after a success."""
        self._next_s = _FIRST_S


def cause(error: BaseException) -> str:
    """Return the error as one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
