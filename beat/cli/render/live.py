"""Redraw a whole terminal without flicker, and restore it afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # the alternate screen, with the cursor hidden
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


@contextlib.contextmanager
def screen() -> Iterator[Callable[[Sequence[str]], None]]:
    """Switch to the alternate screen within the block, and yield the function that redraws it."""
    _write(_ENTER)
    try:
        yield draw
    finally:
        _write(_LEAVE)


def draw(lines: Sequence[str]) -> None:
    """Draw as many lines as the terminal has room for, in one write."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    shown = [click.unstyle(line) if plain else line for line in lines[: height()]]
    _write(_HOME + f"{_REST_OF_LINE}\r\n".join(shown) + _REST_OF_LINE + _REST_OF_SCREEN)


def height() -> int:
    """Return the number of lines of the terminal."""
    return shutil.get_terminal_size().lines


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
