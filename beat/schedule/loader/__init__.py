"""Import users' modules by dotted name, file or package, and explain each failure in one sentence.

A module is imported under the name by which a worker in the same directory can import it; otherwise it is a problem.
One `load` never imports another module of the same name instead, and never runs a module twice.
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
    """The result of one `load`: the imported modules, and one problem for each failure.

    A problem's `__cause__` is what the module raised, or None if beat rejected the name or the module.
    """

    modules: tuple[str, ...]
    problems: tuple[LoadError, ...]
    brought: Mapping[str, frozenset[str]] = field(default_factory=dict, compare=False)
    """The modules of each imported name, including others that its import loaded for the first time."""
    unseen: tuple[str, ...] = field(default=(), compare=False)
    """Directories without `__init__.py` that seem to declare schedules but were not imported."""


def load(*names: str) -> Loaded:
    """Import every named module; collect all problems and raise only KeyboardInterrupt.

    A name is dotted (`app.tasks`) or a path (`app/tasks.py`, `app/`); the current directory is importable. A package is
    imported with its sub-modules. Exceptions are `__main__`, tests (`tests`, `test_*`, `conftest`), names that are not
    identifiers (Django's `0001_initial`) and directories without `__init__.py`; these must be named to be imported.
    """
    loading = _Loading()
    importlib.invalidate_caches()
    # Locate all modules before any code runs, because a module may change the current directory.
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
    """Prepare the application for import: call `django.setup()` if DJANGO_SETTINGS_MODULE is set, then `setup`.

    `setup` is `"module:callable"` and is called without arguments. Every failure but KeyboardInterrupt is a LoadError.
    """
    finder.refuse_namesake(finder.current())
    finder.make_importable(finder.current(), at=0)
    if settings := environ.get("DJANGO_SETTINGS_MODULE"):
        if importlib.util.find_spec("django") is None:
            raise LoadError("DJANGO_SETTINGS_MODULE is set, but Django is not installed: install it, or unset it")
        os.environ["DJANGO_SETTINGS_MODULE"] = settings  # Django reads only this
        with errors.explained(f"django.setup() with DJANGO_SETTINGS_MODULE={settings!r}", settings):
            importlib.import_module("django").setup()
    if setup is not None:
        _call(setup)


class _Loading:
    """The state of one `load`: the modules imported so far, and those that failed.

    It is also the first finder of `sys.meta_path` meanwhile, and re-raises the error of a module that has failed.
    Python would otherwise run that module again for its next importer and declare its first schedules twice.
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
        """Yield the module that `name` means; if there is none, record a problem instead."""
        try:
            yield finder.locate(name)
        except LoadError as problem:
            self.problems[f"{name!r} as given"] = problem  # a key that no module has as its name

    def add(self, name: str, source: str = "") -> None:
        """Import `name` and its sub-modules; if `source` is given, `name` must come from its directory."""
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
        """Mark the modules that the problem stopped; return it, or a shorter one if its cause is already reported."""
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
    """Raise LoadError if Python imported another module than `source`, or a directory without modules."""
    file = getattr(module, "__file__", None)
    if source and isinstance(module, ModuleType):  # code may put other objects into sys.modules
        # Compare directories, not files, because Python prefers a compiled tasks.so beside tasks.py.
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
