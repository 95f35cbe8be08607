"""Tells when files change, by looking at them twice a second: it works on every disk, in containers too."""

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
"""File → when it was last written, and its size; None for one that is not there."""


def look(files: Iterable[str]) -> Look:
    """The state of these files, and of what lies beside them in packages: a new module is a change too."""
    known = set(files)
    for file in list(known):
        if Path(file).name == "__init__.py":
            known.update(map(str, Path(file).parent.glob("*.py")))
    return {file: _state(Path(file)) for file in known}


async def changed(before: Look) -> str:
    """Waits until one of the files is another than it was, and is no longer being written; which one."""
    last = before
    while True:
        now = look(before)
        names = _different(before, now)
        # an editor may remove a file before it writes the new one, or save several
        if names and now == last:
            return names[0]
        await asyncio.sleep(_SETTLED_S if names else _EVERY_S)
        last = now


def forget_compiled(before: Look, now: Look) -> None:
    """Has Python read anew what has changed: it goes by size and whole seconds, and files are edited twice in one."""
    for file in _different(before, now):
        with contextlib.suppress(OSError, NotImplementedError):  # there is none, or Python keeps none
            Path(cache_from_source(file)).unlink()


def _different(before: Look, now: Look) -> list[str]:
    return sorted(file for file in before.keys() | now.keys() if before.get(file) != now.get(file))


def _state(file: Path) -> tuple[int, int] | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
