"""The files in which predecessors keep their schedules: found by path or by dotted name, and read, never run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from beat.errors import BadSource, LoadError, NoSource
from beat.loader import places

_LARGEST = 10_000_000
_HERE = "-"


class File(NamedTuple):
    """The text of a file, and what it is called."""

    shown: str
    """Relative to the current directory when below it."""
    module: str | None
    """The name under which it can be imported, if there is one."""
    text: str


def read(place: str) -> File:
    """The text of any file; `-` is what is piped in."""
    if place == _HERE:
        if sys.stdin is None:  # it was closed when Python started
            raise NoSource("nothing is piped in")
        return File("stdin", None, _decoded(sys.stdin.buffer.read(_LARGEST + 1), "stdin"))
    try:
        with Path(place).open("rb") as file:
            return File(places.shown(place), None, _decoded(file.read(_LARGEST + 1), place))
    except (FileNotFoundError, NotADirectoryError) as e:
        raise NoSource(f"there is no file {place!r:.200}") from e
    except (OSError, ValueError) as e:
        raise BadSource(f"{place!r:.200} cannot be read: {getattr(e, 'strerror', None) or e}") from e


def read_python(place: str) -> File:
    """The text of a Python file, given by its path or by the name under which it is imported; nothing is imported."""
    if not places.is_dotted(place) or place.endswith(".py") or places.is_file(place):
        return read(place)._replace(module=_module(place))
    roots = [places.current(), *map(Path, sys.path)]
    ends = (Path(*place.split(".")).with_suffix(".py"), Path(*place.split("."), "__init__.py"))
    for file in (root / end for root in roots for end in ends):
        if places.is_file(file):
            return read(str(file))._replace(module=place)
    raise NoSource(
        f"there is no module {place!r:.200} in the current directory or on sys.path: "
        "write the path of its file, as in 'app/celery.py'"
    )


def _module(place: str) -> str | None:
    try:
        return places.locate(place).name
    except LoadError:  # not a name that Python could import
        return None


def _decoded(raw: bytes, place: str) -> str:
    if len(raw) > _LARGEST:
        raise BadSource(f"{place!r:.200} has more than {_LARGEST:,} bytes: is it the right file?")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise BadSource(f"{place!r:.200} is not text: byte {e.start + 1:,} is no UTF-8") from e
