"""Detect changed files by polling twice a second, which works on every file system and in containers."""

from __future__ import annotations

import asyncio
import contextlib
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_EVERY_S = 0.5
_SETTLED_S = 0.1

Look = dict[str, tuple[int, int] | None]
"""File → its modification time in ns and its size in bytes; None if the file does not exist."""


def look(files: Iterable[str]) -> Look:
    """Return the state of these files, and of all modules of their packages, so that a new module is a change too."""
    known = set(files)
    for file in list(known):
        if Path(file).name == "__init__.py":
            known.update(map(str, Path(file).parent.glob("*.py")))
    return {file: _state(Path(file)) for file in known}


async def changed(before: Look) -> str:
    """Wait until a file differs from `before` and is no longer being written, and return its path."""
    last = before
    while True:
        now = look(before)
        names = _different(before, now)
        # an editor may remove a file before it writes the new one, or save several files
        if names and now == last:
            return names[0]
        await asyncio.sleep(_SETTLED_S if names else _EVERY_S)
        last = now


def forget_compiled(before: Look, now: Look) -> None:
    """Delete the bytecode of changed files.

    Python recompiles a file only if its size or its time in whole seconds differs, and two edits can share a second.
    """
    for file in _different(before, now):
        with contextlib.suppress(OSError, NotImplementedError):  # there is no bytecode, or Python keeps none
            Path(cache_from_source(file)).unlink()


def _different(before: Look, now: Look) -> list[str]:
    return sorted(file for file in before.keys() | now.keys() if before.get(file) != now.get(file))


def _state(file: Path) -> tuple[int, int] | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
