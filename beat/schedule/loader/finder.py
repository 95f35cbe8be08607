"""Find the module that a dotted name, file or package means, and the directory to import it from."""

from __future__ import annotations

import contextlib
import functools
import glob
import os
import pkgutil
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from beat.errors import LoadError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

_PACKAGE = Path(__file__).resolve().parents[2]
EXAMPLES = "write a dotted name such as 'app.tasks', or a path such as 'app/tasks.py'"
is_file, _is_dir = os.path.isfile, os.path.isdir  # Path's methods raise if a name is too long or access is denied


class Target(NamedTuple):
    """A module to import: its dotted name, the file that it must come from or "", and its root for sys.path."""

    name: str
    source: str
    root: Path


def locate(name: object) -> Target:
    """Return the module that `name` means; raise LoadError if it cannot mean one."""
    here = current()
    make_importable(here, at=0)
    if isinstance(name, str) and "\0" not in name:
        if os.sep in name or name.endswith(".py") or is_file(name):
            return _locate_path(name, here)
        if name == _PACKAGE.name:
            raise LoadError(
                f"{name!r} is the package beat itself: name the module that declares your schedules, as in 'app.tasks'"
            )
        if is_dotted(name) and name != "__main__":
            return Target(name, _hidden(name, here), here)
        module, colon, _ = name.partition(":")
        if colon and is_dotted(module):
            raise LoadError(f"{name!r:.80} names something in a module, and beat loads whole modules: write {module!r}")
    raise LoadError(f"{name!r:.80} is not the name of a module: {EXAMPLES}")


def refuse_namesake(directory: Path) -> None:
    """Raise LoadError for a user's own `beat.py` or `beat/`, which workers would import instead of this package."""
    for file in (directory / f"{_PACKAGE.name}.py", directory / _PACKAGE.name / "__init__.py"):
        if is_file(file) and file.parent.resolve() != _PACKAGE:
            namesake = file.parent if file.name == "__init__.py" else file
            raise LoadError(
                f"{shown(str(namesake))} has the name of the package beat, and a worker that starts here imports it "
                f"instead: rename it, for example to schedules{namesake.suffix}"
            )


def _hidden(name: str, here: Path) -> str:
    """Return the user's own file for a name that the standard library also has, or "".

    Other dotted names may come from anywhere, because an application may be installed and started in its checkout.
    """
    if name.partition(".")[0] not in sys.stdlib_module_names:
        return ""
    below = here.joinpath(*name.split("."))
    return next((str(file) for file in (below / "__init__.py", below.with_suffix(".py")) if is_file(file)), "")


def _locate_path(name: str, here: Path) -> Target:
    # Do not resolve links, because a link below the current directory is imported by its own name.
    path = Path(os.path.normpath(here / name))
    if not is_file(path) and not _is_dir(path):
        raise LoadError(f"there is no file {name!r:.80}.{_meant_path(name, path)}")
    if is_file(path) and path.suffix != ".py":
        raise LoadError(f"{name!r:.80} is not a Python file: {EXAMPLES}")
    path, root = _rooted(path, here)
    source = path / "__init__.py" if _is_dir(path) else path
    if root != here and not is_file(source):
        raise LoadError(f"{name!r:.80} has no __init__.py, so it is not a package: add one, or name its files")
    *parts, last = source.relative_to(root).parts
    parts += [last.removesuffix(".py")] if last != "__init__.py" else []
    if parts[:1] == [_PACKAGE.name]:
        refuse_namesake(root)
    if not parts:
        raise LoadError(f"{name!r:.80} is the current directory, not a module: {EXAMPLES}")
    for part in parts:
        if not part.isidentifier():
            better = re.sub(r"\W|^(?=\d)", "_", part)
            raise LoadError(f"{name!r:.80} cannot be imported: {part!r} is not a Python name, so rename it {better!r}")
    return Target(".".join(parts), str(source) if is_file(source) else "", root)


def _rooted(path: Path, here: Path) -> tuple[Path, Path]:
    """Return the path and the root of its dotted name: `here`, a root below it, or the parent of its top package."""
    # Prefer the innermost root on sys.path: an application installed from `src` imports its modules from there.
    roots = sorted((Path(entry) for entry in sys.path if Path(entry).is_absolute()), key=lambda root: -len(root.parts))
    for spelled in (path, path.parent.resolve() / path.name):
        if spelled.is_relative_to(here):
            return spelled, next((root for root in roots if root != spelled and spelled.is_relative_to(root)), here)
    return path, next((up for up in path.parents if not is_file(up / "__init__.py")), Path(path.anchor))


def _meant_path(name: str, path: Path) -> str:
    bare = name.rstrip(os.sep)
    for meant in (f"{bare}.py", bare.partition(":")[0], bare.removesuffix(".py").replace(".", os.sep) + ".py"):
        if is_file(meant):
            return f" Did you mean {meant!r}?"
    names = _found("*.py", path.parent) + [str(Path(init).parent) for init in _found("*/__init__.py", path.parent)]
    return nearest(bare.removesuffix(path.name), path.name, names)


def nearest(before: str, last: str, names: Iterable[str]) -> str:
    """Return "Did you mean …" for the last part of a name; a long common prefix would make every name similar."""
    return did_you_mean(f"{before}{last}", [f"{before}{name}" for name in names if did_you_mean(last, [name])])


def names_in(directories: Iterable[str]) -> set[str]:
    """Return the modules and packages in these directories."""
    found = {info.name for info in pkgutil.iter_modules(list(directories))}
    return found | {str(Path(file).parent) for directory in directories for file in _found("*/*.py", directory)}


def bare_packages(directories: Iterable[str]) -> list[str]:
    """Return the directories that mention `periodic` in a file but have no `__init__.py`."""
    files = (Path(directory, file) for directory in directories for file in _found("*/*.py", directory))
    speaking = (file for file in files if not is_file(file.with_name("__init__.py")) and _mentions(file, b"periodic"))
    return sorted({file.parent.name for file in speaking})


def _mentions(file: Path, word: bytes) -> bool:
    try:
        return word in file.read_bytes()
    except OSError:  # a file that cannot be read cannot be imported
        return False


def _found(pattern: str, directory: str | Path) -> list[str]:
    return glob.glob(pattern, root_dir=directory)  # noqa: PTH207 - Path.glob raises where it may not look


def shown(file: str) -> str:
    """Return the path relative to the current directory if it is below it, or else unchanged."""
    try:
        return _below(file, os.getcwd())  # noqa: PTH109 (creating a Path would take most of the time)
    except OSError:
        return file


@functools.lru_cache(maxsize=1024)  # called for every schedule, with few distinct files
def _below(file: str, directory: str) -> str:
    with contextlib.suppress(ValueError):
        return str(Path(file).relative_to(directory))
    return file


def current() -> Path:
    """Return the current directory; raise LoadError if it was removed."""
    try:
        return Path.cwd()
    except OSError as e:
        raise LoadError("the current directory was removed: change into one that exists") from e


def make_importable(directory: Path, at: int = 1) -> None:
    """Add `directory` to sys.path: the current one first, as `python -m` does, and others behind it."""
    if str(directory) not in sys.path:
        sys.path.insert(at, str(directory))


def is_dotted(name: str) -> bool:
    """Return whether `name` could be written in an `import` statement."""
    return all(part.isidentifier() for part in name.split("."))
