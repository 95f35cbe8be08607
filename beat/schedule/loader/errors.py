"""Explain in one sentence why an import failed, with the last executed line of the user's own code."""

from __future__ import annotations

import contextlib
import linecache
import os
import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from beat.errors import DeclarationError, LoadError
from beat.schedule.loader import finder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_LONGEST = 300
_BEAT, _STDLIB, _INSTALLED = Path(__file__).parents[2], Path(os.__file__).parent, {"site-packages", "dist-packages"}


@contextlib.contextmanager
def explained(subject: str, asked: str) -> Iterator[None]:
    """Turn exceptions of the user's code into a LoadError.

    `subject` names the step in messages, and `asked` is the module that it imports or calls.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as e:  # sys.exit in a module must not end beat
        raise caused(_sentence(subject, asked, e), e) from e


def caused(sentence: str, cause: BaseException) -> LoadError:
    """Return a LoadError whose `__cause__` is what the user's code raised."""
    problem = LoadError(sentence)
    problem.__cause__ = cause
    return problem


def _sentence(subject: str, asked: str, error: BaseException) -> str:
    place, line = _place(error, asked)
    importing = subject == asked
    if isinstance(error, DeclarationError):
        return str(error) if error.where else f"{place or subject}: {error}"
    if isinstance(error, SystemExit):
        during = " while being imported" if importing else ""
        return f"{subject} called sys.exit({_message(error)}){during}" + (f" ({place})" if place else "")
    if isinstance(error, ModuleNotFoundError) and not place and f"{asked}.".startswith(f"{error.name}."):
        return ("" if importing else f"{subject}: ") + _missing(asked, str(error.name))
    what = ": ".join(filter(None, [subject, type(error).__name__, _message(error)]))
    return f"{what} ({': '.join(filter(None, [place, line]))})" if place else what


def _missing(asked: str, missing: str) -> str:
    """Return the message for a requested module that does not exist itself, with a suggestion."""
    package, _, last = missing.rpartition(".")
    start = f"no module named {asked!r}" + (f": there is no {missing!r}" if missing != asked else "")
    if not package:
        near = finder.nearest("", last, finder.names_in([str(finder.current())]))
        near = near or f" Start beat in the directory that holds {last!r}, or put that directory on PYTHONPATH."
        return f"{start} in the current directory or on sys.path.{near}"
    directories = getattr(sys.modules.get(package), "__path__", None)
    if directories is None:
        return f"{start}: {package!r} is a module, not a package, so write {package!r}"
    return f"{start} in the package {package!r}.{finder.nearest(f'{package}.', last, finder.names_in(directories))}"


def _place(error: BaseException, asked: str) -> tuple[str, str]:
    """Return `file:line` and the text of the deepest line in the user's own code; both "" if there is none."""
    if isinstance(error, SyntaxError) and error.filename and finder.is_file(error.filename):
        return f"{finder.shown(error.filename)}:{error.lineno or 1}", _one_line(error.text or "")
    own = [(frame, number) for frame, number in traceback.walk_tb(error.__traceback__) if _is_own(frame, asked)]
    if not own:
        return "", ""
    frame, number = own[-1]
    file = frame.f_code.co_filename
    linecache.checkcache(file)  # a long-running process may have cached an older text
    return f"{finder.shown(file)}:{number}", _one_line(linecache.getline(file, number, frame.f_globals))


def _is_own(frame: FrameType, asked: str) -> bool:
    """Return whether a frame is the user's own code: in the package of `asked`, or neither beat nor installed."""
    path = Path(frame.f_code.co_filename)
    if path.name.startswith("<") or path.is_relative_to(_BEAT):
        return False
    same = str(frame.f_globals.get("__name__")).partition(".")[0] == asked.partition(".")[0]
    return same or not (path.is_relative_to(_STDLIB) or _INSTALLED & set(path.parts))


def _message(error: BaseException) -> str:
    """Return the message of `error` on one line, or the exit code of a SystemExit."""
    try:
        if isinstance(error, SystemExit):
            return "" if error.code is None else _one_line(repr(error.code))
        text = str((isinstance(error, SyntaxError) and error.msg) or error)
    except (Exception, SystemExit):  # noqa: BLE001 - the user's __str__ may raise anything
        return "(its message cannot be shown)"
    if isinstance(error, ImportError) and error.path:
        text = text.replace(error.path, finder.shown(error.path))
    return _one_line(text)


def _one_line(text: str) -> str:
    """Return the first line, cut short, printable, and with passwords of URLs masked, even those with a slash."""
    line = text.strip().partition("\n")[0].rstrip()[: 10 * _LONGEST]
    line = re.sub(r"(?<=://)[^\s'\"]*@", "***@", line)
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line[: _LONGEST + 1])
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
