"""Find the line of code that declared a schedule or group."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from beat.schedule.loader import finder

if TYPE_CHECKING:
    from types import FrameType


@dataclass(frozen=True)
class Place:
    """The file, line and module of a declaration."""

    file: str
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def path(self) -> str:
        """Return the absolute path of the file."""
        return _absolute(self.file)


def caller(beyond: str) -> Place:
    """Return the location of the nearest caller outside the file `beyond`."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 (the fastest way to the caller)
    while frame is not None and frame.f_code.co_filename == beyond:
        frame = frame.f_back
    if frame is None:
        return Place("<unknown>", 0, "")
    return _place(finder.shown(frame.f_code.co_filename), frame.f_lineno, frame.f_globals.get("__name__", ""))


@functools.lru_cache(maxsize=1024)  # thousands of schedules share a few files
def _absolute(file: str) -> str:
    return str(Path(file).absolute())


_place = functools.lru_cache(maxsize=1024)(Place)  # a loop declares many schedules on one line
