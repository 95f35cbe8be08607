"""A terminal on which the same picture is drawn again and again, without flicker; as it was, when that is over."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # a screen of its own, without the cursor
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


@contextlib.contextmanager
def screen() -> Iterator[Callable[[Sequence[str]], None]]:
    """Within it a picture can be drawn, over the one before."""
    _write(_ENTER)
    try:
        yield draw
    finally:
        _write(_LEAVE)


def draw(lines: Sequence[str]) -> None:
    """Draws as many lines as there is room for, in one piece."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    shown = [click.unstyle(line) if plain else line for line in lines[: height()]]
    _write(_HOME + f"{_REST_OF_LINE}\r\n".join(shown) + _REST_OF_LINE + _REST_OF_SCREEN)


def height() -> int:
    """How many lines the terminal has."""
    return shutil.get_terminal_size().lines


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
