"""Show what is being measured, the time spent so far, and an estimate of the time left."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping

_CLEAR = "\r\x1b[2K"


class Progress:
    """One changing line on a terminal; elsewhere, one line for each suite and figure."""

    def __init__(self, expected_s: Mapping[str, float], out: TextIO = sys.stderr) -> None:
        self._expected, self._out = dict(expected_s), out
        self._began = time.monotonic()
        self._suite, self._since = "", self._began

    def begin(self, suite: str, title: str) -> None:
        """Begin a suite and print its title."""
        self._suite, self._since = suite, time.monotonic()
        self.write(f"── {title}")

    def end(self) -> None:
        """End the current suite."""
        self._expected.pop(self._suite, None)

    def say(self, words: str) -> None:
        """Show what is being measured now."""
        if self._out.isatty():
            self._out.write(f"{_CLEAR}   {self.remaining()}  {words}"[:120])
            self._out.flush()
        else:
            self.write(f"   … {words}")

    def write(self, line: str) -> None:
        """Print a line that stays."""
        self._out.write(f"{_CLEAR if self._out.isatty() else ''}{line}\n")
        self._out.flush()

    def remaining(self) -> str:
        """Return the time spent and the time left: `2:10 so far, about 12 min to go`."""
        now = time.monotonic()
        spent = now - self._began
        here = max(0.0, self._expected.get(self._suite, 0) - (now - self._since))
        left = here + sum(seconds for suite, seconds in self._expected.items() if suite != self._suite)
        return f"{int(spent // 60)}:{int(spent % 60):02d} so far, about {max(1, round(left / 60))} min to go"
