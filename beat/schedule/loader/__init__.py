"""Imports the user's modules, by dotted name, file or package, and says in one sentence what stopped one.

A module is imported by the name under which a worker in the same directory can import it, or it is a problem: never
another module of the same name, and never run twice by one `load`.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import pkgutil
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from beat.errors import LoadError, did_you_mean
from beat.schedule.loader import errors, finder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Loaded:
    """What one `load` did: the modules now imported, and one problem for each that could not be.

    A problem's `__cause__` is what the module raised, or None when the name or the module itself was refused.
    """

    modules: tuple[str, ...]
    problems: tuple[LoadError, ...]
    brought: Mapping[str, frozenset[str]] = field(default_factory=dict, compare=False)
    """Each name that could be imported → its modules, and those that were first imported along with them."""
    unseen: tuple[str, ...] = field(default=(), compare=False)
    """Directories without `__init__.py` in which schedules seem to be declared, and which were not imported."""


def load(*names: str) -> Loaded:
    """Imports every module named, going on after a problem so that all are known at once. KeyboardInterrupt passes.

    A name is dotted (`app.tasks`) or a path (`app/tasks.py`, `app/`); the current directory is importable. A package
    brings its sub-modules, except `__main__`, tests (`tests`, `test_*`, `conftest`), what no `import` statement can
    write (Django's `0001_initial`) and directories without `__init__.py`: name those to have them.
    """
    loading = _Loading()
    importlib.invalidate_caches()
    # All names are understood before any code runs: a module may change the current directory.
    targets = [(name, target) for name in names for target in loading.understand(name)]
    sys.meta_path.insert(0, loading)
    try:
        brought = {}
        for name, target in targets:
            known = set(sys.modules)
            finder.make_importable(target.root)
            loading.add(target.name, target.source)
            if target.name in loading.modules:
                own = (module for module in loading.modules if f"{module}.".startswith(f"{target.name}."))
                brought[name] = frozenset(own) | (sys.modules.keys() - known)
    finally:
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not loading]
    return Loaded(tuple(loading.modules), tuple(loading.problems.values()), brought, tuple(loading.unseen))


def prepare(setup: str | None = None, environ: Mapping[str, str] = os.environ) -> None:
    """Makes the application ready to be imported: `django.setup()` if DJANGO_SETTINGS_MODULE is set, then `setup`.

    `setup` is `"module:callable"`, called without arguments. What goes wrong is a LoadError; KeyboardInterrupt passes.
    """
    finder.refuse_namesake(finder.current())
    finder.make_importable(finder.current(), at=0)
    if settings := environ.get("DJANGO_SETTINGS_MODULE"):
        if importlib.util.find_spec("django") is None:
            raise LoadError("DJANGO_SETTINGS_MODULE is set, but Django is not installed: install it, or unset it")
        os.environ["DJANGO_SETTINGS_MODULE"] = settings  # the only place where Django looks
        with errors.explained(f"django.setup() with DJANGO_SETTINGS_MODULE={settings!r}", settings):
            importlib.import_module("django").setup()
    if setup is not None:
        _call(setup)


class _Loading:
    """One `load`: what is imported so far, and what has failed.

    While it lasts it is also the first finder of `sys.meta_path`, and hands out the error of a module that has failed:
    run again for the next module that imports it, its first schedules would be declared twice.
    """

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.problems: dict[str, LoadError] = {}
        self.unseen: list[str] = []
        self._failed: dict[str, BaseException] = {}

    def find_spec(self, name: str, _path: object, _target: object = None, /) -> None:
        if name in self._failed:
            raise self._failed[name]

    def understand(self, name: object) -> Iterator[finder.Target]:
        """The module meant by `name`; nothing, and a problem, if it can mean none."""
        try:
            yield finder.locate(name)
        except LoadError as problem:
            self.problems[f"{name!r} as given"] = problem  # no module's name, so that it hides none

    def add(self, name: str, source: str = "") -> None:
        """Imports `name`, which must come from `source` if that is known, then its sub-modules."""
        if name in self.problems:
            return
        try:
            with errors.explained(name, name):
                module = importlib.import_module(name)
            children = list(_children(name, module))
            _refuse_another(name, module, source, children)
        except LoadError as problem:
            self.problems[name] = self._remember(name, problem)
            return
        if name not in self.modules:
            self.modules.append(name)
            self.unseen += [f"{name}.{bare}" for bare in finder.bare_packages(getattr(module, "__path__", []))]
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
        return (
            problem if first == name else errors.caused(f"{name}: not imported, for the same reason as {first}", cause)
        )


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
            other = f"the module at {finder.shown(file)}" if file else "a module of Python's own"
            raise LoadError(
                f"{finder.shown(source)} cannot be imported: {name!r} is already {other}, so rename the file"
            )
    elif file is None and hasattr(module, "__path__") and not children:
        raise LoadError(f"the directory {name!r} holds no modules to import: {finder.EXAMPLES}")


def _call(setup: object) -> None:
    subject = f"setup {setup!r:.80}"
    name, _, attribute = str(setup).partition(":")
    if not finder.is_dotted(name) or not attribute.isidentifier():
        raise LoadError(f"{subject} is not of the form 'module:callable': write 'app.boot:setup', for example")
    with errors.explained(subject, name):
        module = importlib.import_module(name)
        exists = hasattr(module, attribute)
    if not exists:
        names = [known for known in dir(module) if callable(getattr(module, known, None))]
        raise LoadError(f"{subject}: {name} has no {attribute!r}.{did_you_mean(attribute, names)}")
    function = getattr(module, attribute)
    if not callable(function) or inspect.iscoroutinefunction(function):
        kind = "an async function" if callable(function) else f"of type {type(function).__name__}"
        raise LoadError(f"{subject}: {attribute!r} is {kind}, and beat needs a plain function to call")
    with errors.explained(subject, name):
        function()
