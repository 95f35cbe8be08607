"""The registry: the schedules that code declares, in the order of their declaration, each id once."""

from __future__ import annotations

import functools
import sys
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from beat import declaring, functions, loader, options, place, relations, sources
from beat.errors import BadFunction, DeclarationError, DuplicateSchedule, LoadError, UnknownSchedule, did_you_mean
from beat.every import Every
from beat.grouping import Groups
from beat.groups import Group
from beat.refusals import Refusals
from beat.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator
    from contextlib import AbstractContextManager
    from datetime import datetime

    from beat.groups import Limits
    from beat.options import Options
    from beat.place import Place

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True)
class Load:
    """What `Registry.load` did."""

    modules: tuple[str, ...]
    """Every module that was imported, sub-modules included."""
    silent: tuple[str, ...]
    """Those of the names asked for that declared no schedule."""
    unseen: tuple[str, ...] = ()
    """Directories without `__init__.py` that seem to declare schedules, and that were not imported."""
    problems: tuple[LoadError, ...] = ()
    """One for each module that could not be imported; only within `collecting`, otherwise the first is raised."""


@dataclass(frozen=True)
class Modules:
    """The modules whose declarations a registry has: what they declare no more is gone from the code."""

    names: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    """Packages that were loaded with their sub-modules: a sub-module that is not there is gone, too."""

    def __contains__(self, module: object) -> bool:
        parts = str(module).split(".")
        return module in self.names or any(".".join(parts[:n]) in self.packages for n in range(1, len(parts)))


class Registry:
    """Schedules by id. Inserting is safe from several threads."""

    def __init__(self, defaults: Callable[[], sources.Defaults] = sources.Defaults) -> None:
        self._defaults = functools.cache(defaults)
        self._declarer = declaring.Declarer(self._defaults)
        self._schedules: dict[str, Schedule] = {}
        self._codes: dict[str, object] = {}
        self._functions: dict[str, None] = {}
        self._lock = threading.Lock()
        self._refusals = Refusals()
        self._groups = Groups(self._refusals)
        self._loaded: list[str] = []
        self._brought: set[str] = set()
        self._packages: set[str] = set()

    def periodic(self, expression: str | None = None, **given: Unpack[Options]) -> Callable[[F], F]:
        """A decorator that registers a function and returns the very same function."""
        if callable(expression):  # `@periodic` without parentheses has no rule, and is refused for that
            self.register(expression)

        def decorate(func: F) -> F:
            self.register(func, expression, **given)
            return func

        return decorate

    @overload
    def register(self, func: Schedule, /) -> Schedule: ...
    @overload
    def register(
        self, func: Callable[..., Any], expression: str | None = None, /, **given: Unpack[Options]
    ) -> Schedule: ...
    def register(
        self, func: Schedule | Callable[..., Any], expression: str | None = None, /, **given: Unpack[Options]
    ) -> Schedule:
        """Adds a schedule for `func` (or a schedule that is ready); refuses a second one of the same id."""
        here = place.caller(__file__)
        try:
            with options.Reading("the declaration"):
                if isinstance(func, Schedule):
                    return self._insert(func if func.declared else replace(func, declared=here))
                return self._insert(self._declare(func, expression, given, here), func.__code__)
        except DeclarationError as e:
            self._refusals.refuse(e, here)
            return Schedule(id="refused", func="beat.refused", timing=Every("1d"), enabled=False)

    def schedulable(self, func: F) -> F:
        """Decorates a function that has no schedule of its own: `Client.add` may give it any number of them."""
        here = place.caller(__file__)
        try:
            self._functions[functions.path(func)] = None
        except DeclarationError as e:
            self._refusals.refuse(e, here)
        return func

    def group(self, name: str, **limits: Unpack[Limits]) -> Group:
        """Says how much room the schedules of a group share; the same may be said in several places."""
        return self._groups.declare(name, limits, place.caller(__file__))

    @property
    def groups(self) -> dict[str, Group]:
        """The groups by name: what the settings say of one holds, whatever the code says."""
        told = self._defaults().groups
        return {**self._groups.found, **{name: Group.read(name, line) for name, line in told.items()}}

    @property
    def functions(self) -> list[str]:
        """The paths of all that may be scheduled from data: what was decorated as such, and what has a schedule."""
        return sorted({*self._functions, *(schedule.func for schedule in self)})

    @property
    def main_module(self) -> str:
        """Return the module that was loaded first, or else that of the first declaration."""
        declared = (schedule.declared.module for schedule in self if schedule.declared)
        return next(iter(self._loaded), "") or next(declared, "")

    @property
    def modules(self) -> Modules:
        """Return the modules whose declarations are all here; of the default registry, all that are imported."""
        imported = sys.modules.keys() - {"__main__"} if self is default else self._brought
        declared = {schedule.declared.module for schedule in self if schedule.declared}
        return Modules(frozenset(imported | declared), frozenset(self._packages))

    def get(self, schedule_id: str) -> Schedule:
        """The schedule of that id; raises UnknownSchedule."""
        if schedule_id in self:
            return self._schedules[schedule_id]
        hint = did_you_mean(str(schedule_id), self._schedules)
        raise UnknownSchedule(f"there is no schedule {schedule_id!r:.120}.{hint}")

    def next_run(self, schedule_id: str, after: datetime) -> datetime | None:
        """The first tick of that schedule strictly later than `after`, or None when it has ended."""
        return self.get(schedule_id).after(after)

    def load(self, *names: str, setup: str | None = None) -> Load:
        """Imports modules (dotted names, files, packages with their sub-modules) and takes what they declare.

        First the application is made ready: `django.setup()` where DJANGO_SETTINGS_MODULE is set, then `setup`, which
        is `"module:callable"`.
        """
        loader.prepare(setup)
        loaded = loader.load(*names)
        if loaded.problems and self._refusals.found is None:
            raise loaded.problems[0]
        silent = []
        self._loaded += loaded.modules
        self._packages |= {each for each in loaded.modules if hasattr(sys.modules.get(each), "__path__")}
        for name, modules in loaded.brought.items():
            self._brought |= modules
            declared = [schedule for schedule in default if _at_home(schedule, modules)]
            exposed = [path for path in default.functions if path.rpartition(".")[0] in modules]
            self._functions |= dict.fromkeys(exposed)
            for schedule in declared if self is not default else []:
                self._adopt(schedule)
            self._groups.adopt(default._groups, modules, {schedule.group for schedule in declared})
            if not (declared or exposed) and not any(_at_home(schedule, modules) for schedule in self):
                silent.append(name)
        whole = not (loaded.problems or self._refusals.found)
        for error in relations.check(self, self.groups, whole=whole):
            self._refusals.refuse(error)
        return Load(loaded.modules, tuple(silent), loaded.unseen, loaded.problems)

    def _adopt(self, schedule: Schedule) -> None:
        try:
            if self._schedules.get(schedule.id) is not schedule:
                self._insert(schedule)
        except DeclarationError as e:
            self._refusals.refuse(e, schedule.declared)

    def collecting(self) -> AbstractContextManager[list[DeclarationError]]:
        """Within it nothing wrong is raised, so that all is found at once.

        Wrong declarations go into the list, failed imports into `Load.problems`.
        """
        return self._refusals.collecting()

    def _insert(self, schedule: Schedule, code: object = None) -> Schedule:
        with self._lock:
            first = self._schedules.get(schedule.id)
            if first and code and self._codes.get(first.func) is not code and _again(first, schedule):
                first = None  # the module runs again, after a failed import or by a reload
            elif code and self._codes.get(schedule.func, code) is not code:
                raise BadFunction(
                    f"{schedule.func} is defined twice, and a worker would find only the later: rename one of the two"
                )
            if first:
                raise DuplicateSchedule(_twice(first, schedule))
            self._schedules[schedule.id] = schedule
            if code:
                self._codes[schedule.func] = code
        return schedule

    def _declare(self, func: Callable[..., Any], expression: str | None, given: Options, here: Place) -> Schedule:
        options.refuse_unknown(given)
        told = functions.summary(func)[: options.LONGEST_DESCRIPTION]
        path = functions.path(func)
        schedule = self._declarer.declare(path, expression, given, name=func.__name__, description=told, declared=here)
        functions.check_arguments(func, schedule.args, schedule.kwargs)
        return schedule

    def __iter__(self) -> Iterator[Schedule]:
        return iter(list(self._schedules.values()))

    def __len__(self) -> int:
        return len(self._schedules)

    def __contains__(self, schedule_id: object) -> bool:
        return isinstance(schedule_id, str) and schedule_id in self._schedules


def _again(first: Schedule, schedule: Schedule) -> bool:
    return first.declared == schedule.declared and first.rev == schedule.rev


def _twice(first: Schedule, schedule: Schedule) -> str:
    one, other = first.declared, schedule.declared
    if one and other and str(one) == str(other) and one.module != other.module:
        return f"schedule {schedule.id!r}: this file was imported as {one.module} and as {other.module}: use one name"
    return (
        f"schedule {schedule.id!r} is declared twice, first at {one or 'an unknown place'} for {first.func}: "
        f"give one of them another name, as in id='{schedule.id}-2'"
    )


def _at_home(schedule: Schedule, modules: Container[str]) -> bool:
    """Whether one of these declared it, or has its function."""
    declared = schedule.declared
    return (declared is not None and declared.module in modules) or schedule.func.rpartition(".")[0] in modules


default = Registry(sources.defaults)
"""The registry behind `beat.periodic` and `beat.register`."""

periodic = default.periodic
"""Decorates a function with a schedule: `@periodic("0 9 * * mon-fri", tz="Europe/Paris")`."""

group = default.group
"""Says how much room the schedules of a group share: `group("reports", max_running=5)`."""

schedulable = default.schedulable
"""Decorates a function that may be scheduled from data, and has no schedule of its own."""

register = default.register
"""Schedules a function that one doesn't own: `register(shutil.disk_usage, "@daily", args=["/"])`."""
