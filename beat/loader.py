"""Imports the user's modules, by dotted name, file or package, and says in one sentence what stopped one.

A module is imported by the name under which a worker in the same directory can import it, or it is a problem: never
another module of the same name, and never run twice by one `load`.
"""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import inspect
import linecache
import os
import pkgutil
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from beat.errors import DeclarationError, LoadError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import FrameType

_EXAMPLES = "write a dotted name such as 'app.tasks', or a path such as 'app/tasks.py'"
_LONGEST = 300
_BEAT, _STDLIB, _INSTALLED = Path(__file__).parent, Path(os.__file__).parent, {"site-packages", "dist-packages"}
_is_file, _is_dir = os.path.isfile, os.path.isdir  # Path's own raise for a name too long or a directory forbidden


@dataclass(frozen=True, slots=True)
class Loaded:
    """What one `load` did: the modules now imported, and one problem for each that could not be.

    A problem's `__cause__` is what the module raised, or None when the name or the module itself was refused.
    """

    modules: tuple[str, ...]
    problems: tuple[LoadError, ...]


def load(*names: str) -> Loaded:
    """Imports every module named, going on after a problem so that all are known at once. KeyboardInterrupt passes.

    A name is dotted (`app.tasks`) or a path (`app/tasks.py`, `app/`); the current directory is importable. A package
    brings its sub-modules, except `__main__`, tests (`tests`, `test_*`, `conftest`), names that no `import` statement
    can write (Django's `0001_initial`) and directories without `__init__.py`: name those to have them.
    """
    loading = _Loading()
    importlib.invalidate_caches()
    # All names are understood before any code runs: a module may change the current directory.
    targets = [target for name in names for target in loading.understand(name)]
    sys.meta_path.insert(0, loading)
    try:
        for target in targets:
            _importable(target.root)
            loading.add(target.name, target.source)
    finally:
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not loading]
    return Loaded(tuple(loading.modules), tuple(loading.problems.values()))


def prepare(setup: str | None = None, environ: Mapping[str, str] = os.environ) -> None:
    """Makes the application ready to be imported: `django.setup()` if DJANGO_SETTINGS_MODULE is set, then `setup`.

    `setup` is `"module:callable"`, called without arguments. What goes wrong is a LoadError; KeyboardInterrupt passes.
    """
    _importable(_here(), at=0)
    if settings := environ.get("DJANGO_SETTINGS_MODULE"):
        if importlib.util.find_spec("django") is None:
            raise LoadError("DJANGO_SETTINGS_MODULE is set, but Django is not installed: install it, or unset it")
        os.environ["DJANGO_SETTINGS_MODULE"] = settings  # the only place where Django looks
        with _explained(f"django.setup() with DJANGO_SETTINGS_MODULE={settings!r}", settings):
            importlib.import_module("django").setup()
    if setup is not None:
        _call(setup)


class _Target(NamedTuple):
    """A module to import: its dotted name, the file it must come from if known, and the directory to find it from."""

    name: str
    source: str
    root: Path


class _Loading:
    """One `load`: what is imported so far, and what has failed.

    While it lasts it is also the first finder of `sys.meta_path`, and hands out the error of a module that has failed:
    run again for the next module that imports it, its first schedules would be declared twice.
    """

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.problems: dict[str, LoadError] = {}
        self._failed: dict[str, BaseException] = {}

    def find_spec(self, name: str, _path: object, _target: object = None, /) -> None:
        if name in self._failed:
            raise self._failed[name]

    def understand(self, name: object) -> Iterator[_Target]:
        """The module meant by `name`; nothing, and a problem, if it can mean none."""
        try:
            yield _locate(name)
        except LoadError as problem:
            self.problems[f"{name!r} as given"] = problem  # no module's name, so that it hides none

    def add(self, name: str, source: str = "") -> None:
        """Imports `name`, which must come from `source` if that is known, then its sub-modules."""
        if name in self.problems:
            return
        try:
            with _explained(name, name):
                module = importlib.import_module(name)
            children = list(_children(name, module))
            _refuse_another(name, module, source, children)
        except LoadError as problem:
            self.problems[name] = self._remember(name, problem)
            return
        if name not in self.modules:
            self.modules.append(name)
            for child in children:
                self.add(child)

    def _remember(self, name: str, problem: LoadError) -> LoadError:
        """`problem`, or a shorter one when its cause has been told; marks every module that the cause ended."""
        cause = problem.__cause__
        if cause is None:
            return problem
        ended = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(cause.__traceback__)]
        for module in [name, *ended]:
            if module not in sys.modules:
                self._failed.setdefault(module, cause)
        first = next((module for module, error in self._failed.items() if error is cause), name)
        return problem if first == name else _caused(f"{name}: not imported, for the same reason as {first}", cause)


def _locate(name: object) -> _Target:
    here = _here()
    _importable(here, at=0)
    if isinstance(name, str) and "\0" not in name:
        if os.sep in name or name.endswith(".py") or _is_file(name):
            return _locate_path(name, here)
        if _is_dotted(name) and name != "__main__":
            return _Target(name, _hidden(name, here), here)
        module, colon, _ = name.partition(":")
        if colon and _is_dotted(module):
            raise LoadError(f"{name!r:.80} names something in a module, and beat loads whole modules: write {module!r}")
    raise LoadError(f"{name!r:.80} is not the name of a module: {_EXAMPLES}")


def _hidden(name: str, here: Path) -> str:
    """The user's own file behind a name of the standard library, if there is one.

    A dotted name may otherwise come from anywhere: an application installed, and started in its checkout, is not wrong.
    """
    if name.partition(".")[0] not in sys.stdlib_module_names:
        return ""
    below = here.joinpath(*name.split("."))
    return next((str(file) for file in (below / "__init__.py", below.with_suffix(".py")) if _is_file(file)), "")


def _locate_path(name: str, here: Path) -> _Target:
    # Not resolved: a link below the current directory is imported by its own name.
    path = Path(os.path.normpath(here / name))
    if not _is_file(path) and not _is_dir(path):
        raise LoadError(f"there is no file {name!r:.80}.{_meant_path(name, path)}")
    if _is_file(path) and path.suffix != ".py":
        raise LoadError(f"{name!r:.80} is not a Python file: {_EXAMPLES}")
    path, root = _rooted(path, here)
    source = path / "__init__.py" if _is_dir(path) else path
    if root != here and not _is_file(source):
        raise LoadError(f"{name!r:.80} has no __init__.py, so it is not a package: add one, or name its files")
    *parts, last = source.relative_to(root).parts
    parts += [last.removesuffix(".py")] if last != "__init__.py" else []
    if not parts:
        raise LoadError(f"{name!r:.80} is the current directory, not a module: {_EXAMPLES}")
    for part in parts:
        if not part.isidentifier():
            better = re.sub(r"\W|^(?=\d)", "_", part)
            raise LoadError(f"{name!r:.80} cannot be imported: {part!r} is not a Python name, so rename it {better!r}")
    return _Target(".".join(parts), str(source) if _is_file(source) else "", root)


def _rooted(path: Path, here: Path) -> tuple[Path, Path]:
    """`path`, and where its dotted name starts: here, or else the directory that holds its outermost package."""
    for spelled in (path, path.parent.resolve() / path.name):
        if spelled.is_relative_to(here):
            return spelled, here
    return path, next((up for up in path.parents if not _is_file(up / "__init__.py")), Path(path.anchor))


def _children(name: str, module: ModuleType) -> Iterator[str]:
    for _, child, _ in pkgutil.iter_modules(list(getattr(module, "__path__", []))):
        skipped = child in {"__main__", "tests", "conftest"} or child.startswith("test_")
        if child.isidentifier() and not skipped:
            yield f"{name}.{child}"


def _refuse_another(name: str, module: object, source: str, children: list[str]) -> None:
    """Refuses a module that is not the one asked for, and a mere directory, which Python imports as an empty one."""
    file = getattr(module, "__file__", None)
    if source and isinstance(module, ModuleType):  # some put an object of their own into sys.modules
        # Directories are compared, not files: beside tasks.py may lie a compiled tasks.so, which Python prefers.
        if file is None or Path(file).parent.resolve() != Path(source).parent.resolve():
            other = f"the module at {_shown(file)}" if file else "a module of Python's own"
            raise LoadError(f"{_shown(source)} cannot be imported: {name!r} is already {other}, so rename the file")
    elif file is None and hasattr(module, "__path__") and not children:
        raise LoadError(f"the directory {name!r} holds no modules to import: {_EXAMPLES}")


def _call(setup: object) -> None:
    subject = f"setup {setup!r:.80}"
    name, _, attribute = str(setup).partition(":")
    if not _is_dotted(name) or not attribute.isidentifier():
        raise LoadError(f"{subject} is not of the form 'module:callable': write 'app.boot:setup', for example")
    with _explained(subject, name):
        module = importlib.import_module(name)
        exists = hasattr(module, attribute)
    if not exists:
        names = [known for known in dir(module) if callable(getattr(module, known, None))]
        raise LoadError(f"{subject}: {name} has no {attribute!r}.{did_you_mean(attribute, names)}")
    function = getattr(module, attribute)
    if not callable(function) or inspect.iscoroutinefunction(function):
        kind = "an async function" if callable(function) else f"of type {type(function).__name__}"
        raise LoadError(f"{subject}: {attribute!r} is {kind}, and beat needs a plain function to call")
    with _explained(subject, name):
        function()


@contextlib.contextmanager
def _explained(subject: str, asked: str) -> Iterator[None]:
    """Turns what the user's code raises into a LoadError: `subject` is what was being done with the module `asked`."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as e:  # sys.exit and its like end that module, not beat
        raise _caused(_sentence(subject, asked, e), e) from e


def _caused(sentence: str, cause: BaseException) -> LoadError:
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
    """For a module that does not exist, as against one that imports what does not exist."""
    package, _, last = missing.rpartition(".")
    start = f"no module named {asked!r}" + (f": there is no {missing!r}" if missing != asked else "")
    if not package:
        near = _nearest("", last, _names_in([str(_here())]))
        near = near or f" Start beat in the directory that holds {last!r}, or put that directory on PYTHONPATH."
        return f"{start} in the current directory or on sys.path.{near}"
    directories = getattr(sys.modules.get(package), "__path__", None)
    if directories is None:
        return f"{start}: {package!r} is a module, not a package, so write {package!r}"
    return f"{start} in the package {package!r}.{_nearest(f'{package}.', last, _names_in(directories))}"


def _meant_path(name: str, path: Path) -> str:
    bare = name.rstrip(os.sep)
    for meant in (f"{bare}.py", bare.partition(":")[0], bare.removesuffix(".py").replace(".", os.sep) + ".py"):
        if _is_file(meant):
            return f" Did you mean {meant!r}?"
    names = _found("*.py", path.parent) + [str(Path(init).parent) for init in _found("*/__init__.py", path.parent)]
    return _nearest(bare.removesuffix(path.name), path.name, names)


def _nearest(before: str, last: str, names: Iterable[str]) -> str:
    """Compares the last parts alone: with a long common beginning every name is near."""
    return did_you_mean(f"{before}{last}", [f"{before}{name}" for name in names if did_you_mean(last, [name])])


def _names_in(directories: Iterable[str]) -> set[str]:
    found = {info.name for info in pkgutil.iter_modules(list(directories))}
    return found | {str(Path(file).parent) for directory in directories for file in _found("*/*.py", directory)}


def _found(pattern: str, directory: str | Path) -> list[str]:
    return glob.glob(pattern, root_dir=directory)  # noqa: PTH207 - Path.glob raises where it may not look


def _place(error: BaseException, asked: str) -> tuple[str, str]:
    """`file:line` of the deepest frame in the user's own code, and the text of that line; empty if none was running."""
    if isinstance(error, SyntaxError) and error.filename and _is_file(error.filename):
        return f"{_shown(error.filename)}:{error.lineno or 1}", _one_line(error.text or "")
    own = [(frame, number) for frame, number in traceback.walk_tb(error.__traceback__) if _is_own(frame, asked)]
    if not own:
        return "", ""
    frame, number = own[-1]
    file = frame.f_code.co_filename
    linecache.checkcache(file)  # a long-lived process may have read an older text
    return f"{_shown(file)}:{number}", _one_line(linecache.getline(file, number, frame.f_globals))


def _is_own(frame: FrameType, asked: str) -> bool:
    """Neither beat nor a library; an installed application is a library too, unless it is the one asked for."""
    path = Path(frame.f_code.co_filename)
    if path.name.startswith("<") or path.is_relative_to(_BEAT):
        return False
    same = str(frame.f_globals.get("__name__")).partition(".")[0] == asked.partition(".")[0]
    return same or not (path.is_relative_to(_STDLIB) or _INSTALLED & set(path.parts))


def _message(error: BaseException) -> str:
    """What `error` says, on one line; of a SystemExit, its code."""
    try:
        if isinstance(error, SystemExit):
            return "" if error.code is None else _one_line(repr(error.code))
        text = str((isinstance(error, SyntaxError) and error.msg) or error)
    except (Exception, SystemExit):  # noqa: BLE001 - the user's __str__ may raise anything
        return "(its message cannot be shown)"
    if isinstance(error, ImportError) and error.path:
        text = text.replace(error.path, _shown(error.path))
    return _one_line(text)


def _one_line(text: str) -> str:
    """The first line, short, printable and without a URL's password, even one with a slash in it."""
    line = text.strip().partition("\n")[0].rstrip()[: 10 * _LONGEST]
    line = re.sub(r"(?<=://)[^\s'\"]*@", "***@", line)
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line[: _LONGEST + 1])
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _shown(file: str) -> str:
    """Relative to the current directory when below it."""
    with contextlib.suppress(OSError, ValueError):
        return str(Path(file).relative_to(Path.cwd()))
    return file


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as e:
        raise LoadError("the current directory was removed: change into one that exists") from e


def _importable(directory: Path, at: int = 1) -> None:
    """Puts `directory` on sys.path unless it is there: the current one first, as `python -m` does, others behind it."""
    if str(directory) not in sys.path:
        sys.path.insert(at, str(directory))


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))
