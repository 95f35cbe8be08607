"""Wait longer after each failure, and say an error in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

_FIRST_S, _LONGEST_S = 0.1, 2.0


class Patience:
    """How long to wait before the next try: longer each time, up to two seconds."""

    def __init__(self) -> None:
        self._next_s = _FIRST_S

    def wait(self, stopping: threading.Event) -> None:
        """Waits, or returns when it is time to stop."""
        stopping.wait(self._next_s)
        self._next_s = min(self._next_s * 2, _LONGEST_S)

    def reset(self) -> None:
        """It went well."""
        self._next_s = _FIRST_S


def cause(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
