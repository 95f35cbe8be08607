"""The registry: the schedules that code declares, in the order of their declaration, each id once."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

from beat import functions, loader, options, sources
from beat.errors import BadFunction, DeclarationError, DuplicateSchedule, LoadError, UnknownSchedule, did_you_mean
from beat.every import Every
from beat.schedule import Place, Schedule
from beat.timing import timing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from types import FrameType

    from beat.options import Options

P = ParamSpec("P")
R = TypeVar("R")

_TIMING = ("every", "seconds", "phase")


@dataclass(frozen=True)
class Load:
    """What `Registry.load` did."""

    modules: tuple[str, ...]
    """Every module that was imported, sub-modules included."""
    silent: tuple[str, ...]
    """Those of the names asked for that declared no schedule."""
    problems: tuple[LoadError, ...] = ()
    """One for each module that could not be imported; only within `collecting`, otherwise the first is raised."""


class Registry:
    """Schedules by id. Inserting is safe from several threads."""

    def __init__(self, defaults: Callable[[], sources.Defaults] = sources.Defaults) -> None:
        self._defaults = functools.cache(defaults)
        self._schedules: dict[str, Schedule] = {}
        self._codes: dict[str, object] = {}
        self._lock = threading.Lock()
        self._problems: list[DeclarationError] | None = None

    def periodic(
        self, expression: str | None = None, **given: Unpack[Options]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """A decorator that registers a function and returns the very same function."""
        if callable(expression):  # `@periodic` without parentheses has no rule, and is refused for that
            self.register(expression)

        def decorate(func: Callable[P, R]) -> Callable[P, R]:
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
        place = _caller()
        try:
            with options.Reading("the declaration"):
                if isinstance(func, Schedule):
                    return self._insert(func if func.declared else replace(func, declared=place))
                return self._insert(self._declare(func, expression, given, place), func.__code__)
        except DeclarationError as e:
            error = _at(place, e)
            if self._problems is None:
                raise error from e.__cause__
            self._problems.append(error)
            return Schedule(id="refused", func="beat.refused", timing=Every("1d"), enabled=False)

    def get(self, schedule_id: str) -> Schedule:
        """The schedule of that id; raises UnknownSchedule."""
        try:
            return self._schedules[schedule_id]
        except KeyError:
            hint = did_you_mean(schedule_id, self._schedules)
            raise UnknownSchedule(f"there is no schedule {schedule_id!r:.120}.{hint}") from None

    def next_run(self, schedule_id: str, after: datetime) -> datetime | None:
        """The first tick of that schedule strictly later than `after`, or None when it has ended."""
        return self.get(schedule_id).after(after)

    def load(self, *names: str) -> Load:
        """Imports modules (dotted names, files, packages with their sub-modules) and takes what they declare."""
        loaded = loader.load(*names)
        if loaded.problems and self._problems is None:
            raise loaded.problems[0]
        if self is not default:
            for schedule in default:
                taken = self._schedules.get(schedule.id) is schedule
                if not taken and schedule.declared and schedule.declared.module in loaded.modules:
                    self._insert(schedule)
        spoke = [f"{schedule.declared.module}." for schedule in self if schedule.declared]
        asked = ((name, module) for name, module in loaded.asked.items() if module in loaded.modules)
        silent = (name for name, module in asked if not any(said.startswith(f"{module}.") for said in spoke))
        return Load(modules=loaded.modules, silent=tuple(silent), problems=loaded.problems)

    @contextlib.contextmanager
    def collecting(self) -> Iterator[list[DeclarationError]]:
        """Within it nothing wrong is raised, so that all is found at once.

        Wrong declarations go into the list, failed imports into `Load.problems`.
        """
        outer, self._problems = self._problems, []
        try:
            yield self._problems
        finally:
            self._problems = outer

    def _insert(self, schedule: Schedule, code: object = None) -> Schedule:
        with self._lock:
            if code is not None and self._codes.get(schedule.func, code) is not code:
                raise BadFunction(
                    f"{schedule.func} is defined twice, and a worker would find only the later: rename one of the two"
                )
            if first := self._schedules.get(schedule.id):
                raise DuplicateSchedule(
                    f"schedule {schedule.id!r} is declared twice, first at {first.declared or 'an unknown place'} "
                    f"for {first.func}: give one of them another name, as in id='{schedule.id}-2'"
                )
            self._schedules[schedule.id] = schedule
            if code is not None:
                self._codes[schedule.func] = code
        return schedule

    def _declare(self, func: Callable[..., Any], expression: str | None, given: Options, place: Place) -> Schedule:
        options.refuse_unknown(given)
        defaults = self._defaults()
        path = functions.path(func)
        rest: dict[str, Any] = {name: value for name, value in given.items() if name not in _TIMING}
        rest.setdefault("id", func.__name__)
        rest.setdefault("description", functions.summary(func)[: options.LONGEST_DESCRIPTION])
        rest.setdefault("tz", defaults.tz)
        rest.setdefault("queue", defaults.queues[options.priority(given.get("priority", "normal"))])
        when = timing(
            expression,
            every=given.get("every"),
            tz=rest["tz"],
            seconds=options.flag(given.get("seconds", False), "seconds"),
            phase=given.get("phase", 0),
            start=given.get("start"),
            presets=defaults.presets,
        )
        schedule = Schedule(func=path, timing=when, declared=place, **rest)
        functions.check_arguments(func, schedule.args, schedule.kwargs)
        return schedule

    def __iter__(self) -> Iterator[Schedule]:
        return iter(list(self._schedules.values()))

    def __len__(self) -> int:
        return len(self._schedules)

    def __contains__(self, schedule_id: object) -> bool:
        return schedule_id in self._schedules


def _at(place: Place, error: DeclarationError) -> DeclarationError:
    error.where = str(place)
    return error


def _caller() -> Place:
    """The first place on the stack that is not in this file."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 (the way to the caller)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    if frame is None:
        return Place("<unknown>", 0, "")
    return Place(_shown(frame.f_code.co_filename), frame.f_lineno, frame.f_globals.get("__name__", ""))


def _shown(file: str) -> str:
    here = os.getcwd() + os.sep  # noqa: PTH109 (text in, text out; a Path would be made only to be taken apart)
    return file.removeprefix(here)


default = Registry(sources.defaults)
"""The registry behind `beat.periodic` and `beat.register`."""

periodic = default.periodic
"""Decorates a function with a schedule: `@periodic("0 9 * * mon-fri", tz="Europe/Paris")`."""

register = default.register
"""Schedules a function that one doesn't own: `register(shutil.disk_usage, "@daily", args=["/"])`."""
