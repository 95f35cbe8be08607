"""Draw a progress bar in one line of a terminal, and nothing where there is no terminal."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

_WIDTH = 24
_CLEAR = "\r\x1b[K"


class Progress:
    """A progress bar with the counts of what did not succeed."""

    def __init__(self, stream: TextIO | None, name: str) -> None:
        self._stream, self._name = stream, name
        self.is_drawn = stream is not None and stream.isatty()

    def show(self, done: int, total: int, states: Mapping[str, int], now_at: str) -> None:
        """Redraw the bar, cut to the width of the terminal."""
        if not self.is_drawn or self._stream is None:
            return
        filled = _WIDTH * done // max(1, total)
        bad = ", ".join(f"{number} {state}" for state, number in states.items() if state != "succeeded")
        parts = (f"{done:,} of {total:,}", bad, now_at)
        line = f"{self._name} {self._bar(filled)} {', '.join(part for part in parts if part)}"
        self._stream.write(_CLEAR + line[: shutil.get_terminal_size().columns - 1])
        self._stream.flush()

    def clear(self) -> None:
        """Erase the bar, so that other output can take its line."""
        if self.is_drawn and self._stream is not None:
            self._stream.write(_CLEAR)
            self._stream.flush()

    def _bar(self, filled: int) -> str:
        full, empty = ("█", "░") if _can_write(self._stream, "█░") else ("#", ".")
        return full * filled + empty * (_WIDTH - filled)


def _can_write(stream: TextIO | None, text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        return False
    return True
