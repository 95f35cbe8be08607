"""Read the files in which other tools keep their schedules, found by path or by dotted name.

Files are read as text. Only `module`, for `--import`, imports and thereby runs the user's code.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.errors import BadSource, LoadError, NoSource, did_you_mean
from beat.schedule import loader
from beat.schedule.loader import finder

if TYPE_CHECKING:
    from types import ModuleType


_LARGEST = 10_000_000
_HERE = "-"


class File(NamedTuple):
    """The text of a file, with its names."""

    shown: str
    """The path, relative to the current directory if the file is below it."""
    module: str | None
    """The dotted name under which it can be imported, if there is one."""
    text: str


def read(place: str) -> File:
    """Return the text of a file, or of standard input for `-`."""
    if place == _HERE:
        if sys.stdin is None:  # standard input was closed when Python started
            raise NoSource("nothing is piped in")
        return File("stdin", None, _decoded(sys.stdin.buffer.read(_LARGEST + 1), "stdin"))
    try:
        with Path(place).open("rb") as file:
            return File(finder.shown(place), None, _decoded(file.read(_LARGEST + 1), place))
    except (FileNotFoundError, NotADirectoryError) as e:
        raise NoSource(f"there is no file {place!r:.200}") from e
    except (OSError, ValueError) as e:
        raise BadSource(f"{place!r:.200} cannot be read: {getattr(e, 'strerror', None) or e}") from e


def read_python(place: str) -> File:
    """Return the text of a Python file, found by its path or by its dotted name without importing anything."""
    if not finder.is_dotted(place) or place.endswith(".py") or finder.is_file(place):
        return read(place)._replace(module=_module(place))
    roots = [finder.current(), *map(Path, sys.path)]
    ends = (Path(*place.split(".")).with_suffix(".py"), Path(*place.split("."), "__init__.py"))
    for file in (root / end for root in roots for end in ends):
        if finder.is_file(file):
            return read(str(file))._replace(module=place)
    raise NoSource(
        f"there is no module {place!r:.200} in the current directory or on sys.path: "
        "write the path of its file, as in 'app/celery.py'"
    )


def _module(place: str) -> str | None:
    try:
        return finder.locate(place).name
    except LoadError:  # Python cannot import that name
        return None


def _decoded(raw: bytes, place: str) -> str:
    if len(raw) > _LARGEST:
        raise BadSource(f"{place!r:.200} has more than {_LARGEST:,} bytes: is it the right file?")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise BadSource(f"{place!r:.200} is not text: byte {e.start + 1:,} is no UTF-8") from e


def module(place: str) -> ModuleType:
    """Import the module of that path or dotted name, and return it."""
    loader.prepare()
    name = finder.locate(place).name
    loaded = loader.load(place)
    if loaded.problems:
        raise loaded.problems[0]
    return sys.modules[name]


def attribute(owner: Any, path: str, shown: str) -> Any:
    """Return a nested attribute such as `app.conf.beat_schedule`; raise NoSource if a name is missing."""
    for name in path.split("."):
        try:
            owner = getattr(owner, name)
        except AttributeError:
            raise NoSource(f"{shown} has no {name!r:.80}.{did_you_mean(name, dir(owner))}") from None
        shown = f"{shown}.{name}"
    return owner


def path_of(function: Any) -> str:
    """Return the dotted path of a function, or of the object that a decorator made of it."""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
