"""Print the output of all processes to one terminal, each line with the tag of its process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from typing import TextIO

Style = Literal["", "dim", "good", "bad", "warn"]

_WIDTH = len("worker")
_CODES = {
    "redis": "34",
    "beat": "36",
    "worker": "33",
    "json": "35",
    "web": "32",
    "dim": "2",
    "good": "32",
    "bad": "31",
    "warn": "33",
}


class Screen:
    """A stream of tagged lines, coloured only on a terminal and only if NO_COLOR is not set.

    `secrets` maps each text that must not appear to the text shown in its place. `closed` is true once the reader of
    the stream has gone; later lines are dropped.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self._colours = stream.isatty() and not plain
        self._bar = "│" if _can_write(stream, "│") else "|"
        self.secrets: dict[str, str] = {}
        self.closed = False

    def line(self, tag: str, text: str, style: Style = "") -> None:
        """Print one line and flush it."""
        for secret, shown in self.secrets.items():
            text = text.replace(secret, shown)
        if style:
            text = self._coloured(style, text)
        if self.closed:
            return
        try:
            written = f"{self._coloured(tag, f'{tag:{_WIDTH}}{self._bar}')} {text}".rstrip() + "\n"
            self._stream.write(_writable(self._stream, written))
            self._stream.flush()
        except OSError:  # the pipe or the terminal was closed
            self.closed = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def hide_interrupt(self) -> None:
        """Make the next line overwrite the ^C that the terminal has echoed."""
        if self._stream.isatty():
            self._stream.write("\r")

    def _coloured(self, name: str, text: str) -> str:
        return f"\x1b[{_CODES[name]}m{text}\x1b[0m" if self._colours and name in _CODES else text


def _can_write(stream: TextIO, text: str) -> bool:
    return _writable(stream, text) == text


def _writable(stream: TextIO, text: str) -> str:
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)
