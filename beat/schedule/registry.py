"""Keep the schedules that code declares, in the order of declaration; each id occurs once."""

from __future__ import annotations

import functools
import sys
import threading
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from beat.config import sources
from beat.config.groups import Group
from beat.errors import BadFunction, DeclarationError, DuplicateSchedule, LoadError, UnknownSchedule, did_you_mean
from beat.schedule import cross_checks, from_options, functions, loader, options, source_location
from beat.schedule.groups import Groups
from beat.schedule.mistakes import Mistakes, Refusals
from beat.schedule.schedule import Schedule
from beat.timing.interval import Every

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator
    from contextlib import AbstractContextManager
    from datetime import datetime

    from beat.config.groups import Limits
    from beat.schedule.options import Options, Shared, WithExpression, WithInterval
    from beat.schedule.source_location import Place
    from beat.timing.durations import Duration

_LISTS, _DICTS = (list, tuple), (dict, MappingProxyType)
F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True)
class Load:
    """The result of `Registry.load`."""

    modules: tuple[str, ...]
    """Every imported module, including sub-modules."""
    silent: tuple[str, ...]
    """The given names whose modules declare no schedule."""
    unseen: tuple[str, ...] = ()
    """Directories without `__init__.py` that seem to declare schedules but were not imported."""
    problems: tuple[LoadError, ...] = ()
    """One error for each failed import; outside of `collecting`, the first is raised instead."""


@dataclass(frozen=True)
class Modules:
    """The modules whose declarations a registry knows fully; a schedule missing from them was removed from the code."""

    names: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    """Packages loaded with all sub-modules; a sub-module missing from them was removed from the code, too."""

    def __contains__(self, module: object) -> bool:
        parts = str(module).split(".")
        return module in self.names or any(".".join(parts[:n]) in self.packages for n in range(1, len(parts)))


class Registry:
    """The schedules that code declares, by id; it is safe to add to it from several threads."""

    def __init__(self, defaults: Callable[[], sources.Defaults] = sources.Defaults) -> None:
        self._defaults = functools.cache(defaults)
        self._schedules: dict[str, Schedule] = {}
        self._codes: dict[str, object] = {}
        self._functions: dict[str, None] = {}
        self._signatures: dict[str, str] = {}
        self._lock = threading.Lock()
        self._refusals = Refusals()
        self._groups = Groups(self._refusals)
        self._loaded: list[str] = []
        self._brought: set[str] = set()
        self._packages: set[str] = set()

    @overload
    def periodic(self, expression: str, **given: Unpack[WithExpression]) -> Callable[[F], F]: ...
    @overload
    def periodic(
        self, expression: None = None, *, every: Duration, **given: Unpack[WithInterval]
    ) -> Callable[[F], F]: ...
    @overload
    def periodic(self, expression: None = None, *, follows: str, **given: Unpack[Shared]) -> Callable[[F], F]: ...
    def periodic(self, expression: str | None = None, **given: Unpack[Options]) -> Callable[[F], F]:
        """Decorate a function with a schedule, and return the same function.

        Give one rule: an expression, `every` or `follows`. A Duration is a number of seconds, a timedelta, or text such
        as "90s", "15m", "1h30m" or "1d".

        A route is "first", "last", "round_robin", "random", "least_used", "least_recent", "hash", "shortest",
        "first_idle", "failover" or "broadcast".

        Args:
            expression (str): Cron fields such as "0 9 * * mon-fri", "@daily", or the name of a preset.
            every (Duration): Interval from 1 second to 366 days, counted from the epoch or from `start`.
            follows (str): Id of another schedule; this one ticks after each of its successes.
            phase (Duration): Shift of an interval; every="1h", phase="5m" ticks at five past.
            seconds (bool): Whether the expression has six fields, seconds first.
            tz (str): IANA time zone of the expression; by default the setting tz, or UTC.
            start (datetime): No tick before this aware datetime.
            end (datetime): No tick after this aware datetime.
            id (str): Unique id of the schedule; by default the name of the function.
            args (Sequence[object]): Positional arguments of the function.
            kwargs (Mapping[str, object]): Keyword arguments of the function.
            enabled (bool): Whether the schedule ticks; False only registers it.
            description (str): One line of text; by default the first line of the docstring.
            priority (Priority): "high", "normal" (the default) or "low"; decides the queue unless one is named.
            queue (str): RQ queue of the jobs; by default the queue of the priority.
            queues (Sequence[str]): RQ queues among which `route` chooses, instead of `queue`.
            route (Route): How to choose among `queues`; "broadcast" sends a job to each of them.
            job_timeout (Duration): Time that a run may take; -1 for no limit.
            result_ttl (Duration): Time that RQ keeps a result; -1 for no limit.
            failure_ttl (Duration): Time that RQ keeps a failed job; -1 for no limit.
            ttl (Duration): Time that a job may wait in the queue.
            retry (Retry): Number of retries, {"max": 3, "interval": [10, 60]}, or rq.Retry(...).
            at_front (bool): Whether jobs go to the front of the queue.
            meta (Mapping[str, object]): Meta of the jobs; the key "beat" is reserved.
            on_success (Callback): Function, its dotted path or rq.Callback(...) that RQ calls after a success.
            on_failure (Callback): Callback that RQ calls after a failure.
            on_stopped (Callback): Callback that RQ calls after a run was stopped.
            serializer (Serializer | type): "pickle" (the default), "json", or one of RQ's serializer classes.
            misfire (Misfire): Which missed ticks fire: the latest ("once", the default), none ("skip") or each ("all").
            misfire_after (Duration): Lateness from which a tick counts as missed; by default the setting of that name.
            catchup_window (Duration): Age beyond which a missed tick never fires.
            catchup_limit (int): With misfire="all", how many missed ticks may fire at once, 1 to 100.
            overlap (Overlap): During a run, "allow" another (default), "skip" the tick, "wait", or "replace" the run.
            max_running (int): With overlap="skip" or "wait", how many runs may be in progress at once, 1 to 100.
            max_waiting (int): With overlap="wait", how many ticks may wait, 1 to 1,000.
            max_runs (int): Number of runs after which the schedule is finished.
            exclude (DayOff | Collection[DayOff]): Days without ticks: dates, date ranges, or functions of a date.
            jitter (Duration): Maximum delay of a tick, up to a day; the delay is the same each time for a given tick.
            group (str): Group whose capacity the schedule shares.
            slow_queue (str): Queue of the jobs while the schedule is slow.
            slow_after (Duration): Time from which a run counts as slow.
            slow_times (int): Number of slow runs that make the schedule slow, 1 to 1,000.
            slow_window (Duration): Time within which the slow runs are counted, up to a day.
            requires (str | Requires | Sequence[str | Requires]): Schedules that must have succeeded first.
            monitor (str | Monitor): Monitoring service of the runs: a ping URL, "sentry" or "sentry:slug".
        """
        if callable(expression):  # `@periodic` without parentheses: raise, because there is no rule
            self._register(expression, None, {})

        def decorate(func: F) -> F:
            self._register(func, expression, given)
            return func

        return decorate

    @overload
    def register(self, func: Schedule, /) -> Schedule: ...
    @overload
    def register(
        self, func: Callable[..., object], expression: str, /, **given: Unpack[WithExpression]
    ) -> Schedule: ...
    @overload
    def register(
        self, func: Callable[..., object], expression: None = None, /, *, every: Duration, **given: Unpack[WithInterval]
    ) -> Schedule: ...
    @overload
    def register(
        self, func: Callable[..., object], expression: None = None, /, *, follows: str, **given: Unpack[Shared]
    ) -> Schedule: ...
    def register(
        self, func: Schedule | Callable[..., object], expression: str | None = None, /, **given: Unpack[Options]
    ) -> Schedule:
        """Add a schedule for `func` with the options of `periodic`, or add a finished Schedule.

        Raise DuplicateSchedule if the id is already declared.
        """
        return self._register(func, expression, given)

    def _register(self, func: Schedule | Callable[..., object], expression: str | None, given: Options) -> Schedule:
        here = source_location.caller(__file__)
        try:
            with options.Reading("the declaration"):
                if isinstance(func, Schedule):
                    return self._insert(func if func.declared else replace(func, declared=here))
                return self._insert(self._declare(func, expression, given, here), func.__code__)
        except DeclarationError as e:
            self._refusals.refuse(e, here)
            return Schedule(id="refused", func="beat.refused", timing=Every("1d"), enabled=False)

    def schedulable(self, func: F) -> F:
        """Expose a function without a schedule, so that `Client.add` and `beat add` can schedule it."""
        here = source_location.caller(__file__)
        try:
            path = functions.path(func)
            self._functions[path] = None
            self._signatures[path] = functions.signature(func)
        except DeclarationError as e:
            self._refusals.refuse(e, here)
        return func

    def group(self, name: str, **limits: Unpack[Limits]) -> Group:
        """Limit how many runs of a group's schedules may be in progress at once; repeating equal limits is allowed.

        Args:
            name (str): The group that schedules name with group=.
            max_running (int): The capacity, 1 to 1,000.
            when_full ("wait" | "skip"): What happens to a tick when the group is full; by default it waits.
            max_waiting (int): With when_full="wait", how many ticks may wait, 1 to 1,000.
        """
        return self._groups.declare(name, limits, source_location.caller(__file__))

    @property
    def groups(self) -> dict[str, Group]:
        """Return the groups by name; settings override the code."""
        told = self._defaults().groups
        return {**self._groups.found, **{name: Group.read(name, line) for name, line in told.items()}}

    @property
    def functions(self) -> list[str]:
        """Return the paths of functions that can be scheduled from data: schedulable ones and those with a schedule."""
        return sorted({*self._functions, *(schedule.func for schedule in self)})

    @property
    def signatures(self) -> dict[str, str]:
        """Return the parameters of `functions` as JSON by path, for functions that this registry has seen."""
        return {path: self._signatures[path] for path in self.functions if self._signatures.get(path)}

    @property
    def main_module(self) -> str:
        """Return the module that was loaded first or, without one, the module of the first declaration."""
        declared = (schedule.declared.module for schedule in self if schedule.declared)
        return next(iter(self._loaded), "") or next(declared, "")

    @property
    def modules(self) -> Modules:
        """Return the modules whose declarations this registry knows fully; for the default one, all imported."""
        imported = sys.modules.keys() - {"__main__"} if self is default_registry else self._brought
        declared = {schedule.declared.module for schedule in self if schedule.declared}
        return Modules(frozenset(imported | declared), frozenset(self._packages))

    def get(self, schedule_id: str) -> Schedule:
        """Return the schedule with that id; raise UnknownSchedule if there is none."""
        if schedule_id in self:
            return self._schedules[schedule_id]
        hint = did_you_mean(str(schedule_id), self._schedules)
        raise UnknownSchedule(f"there is no schedule {schedule_id!r:.120}.{hint}")

    def next_run(self, schedule_id: str, after: datetime) -> datetime | None:
        """Return the schedule's first tick strictly later than `after`, or None if it has ended."""
        return self.get(schedule_id).after(after)

    def load(self, *names: str, setup: str | None = None) -> Load:
        """Import modules (dotted names, files, packages with their sub-modules) and add their declarations.

        Before that, call `django.setup()` if DJANGO_SETTINGS_MODULE is set, and then `setup`, a `"module:callable"`.
        Raise LoadError for a failed import and DeclarationError for a bad declaration, unless within `collecting`.
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
            declared = [schedule for schedule in default_registry if _at_home(schedule, modules)]
            exposed = [path for path in default_registry.functions if path.rpartition(".")[0] in modules]
            self._functions |= dict.fromkeys(exposed)
            self._signatures = {**default_registry.signatures, **self._signatures}
            for schedule in declared if self is not default_registry else []:
                self._adopt(schedule)
            self._groups.adopt(default_registry._groups, modules, {schedule.group for schedule in declared})
            if not (declared or exposed) and not any(_at_home(schedule, modules) for schedule in self):
                silent.append(name)
        whole = not (loaded.problems or self._refusals.found)
        for error in cross_checks.check(self, self.groups, whole=whole):
            self._refusals.refuse(error)
        return Load(loaded.modules, tuple(silent), loaded.unseen, loaded.problems)

    def _adopt(self, schedule: Schedule) -> None:
        try:
            if self._schedules.get(schedule.id) is not schedule:
                self._insert(schedule)
        except DeclarationError as e:
            self._refusals.refuse(e, schedule.declared)

    def collecting(self) -> AbstractContextManager[list[DeclarationError]]:
        """Collect errors instead of raising them within a `with` block, so that all are found at once.

        Bad declarations go into the list, failed imports into `Load.problems`.
        """
        return self._refusals.collecting()

    def _insert(self, schedule: Schedule, code: object = None) -> Schedule:
        with self._lock:
            first = self._schedules.get(schedule.id)
            if first and code and self._codes.get(first.func) is not code and _again(first, schedule):
                first = None  # the module ran again, after a failed import or a reload
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
        mistakes = Mistakes()
        path = name = description = ""
        with mistakes:
            path, name = functions.path(func), func.__name__
            description = functions.summary(func)[: options.LONGEST_DESCRIPTION]
        if mistakes.found and not callable(func):
            mistakes.refuse()
        args, kwargs = given.get("args", ()), given.get("kwargs", {})
        with mistakes:
            more = {"id": name or "refused", "description": description, "declared": here}
            schedule = from_options.declare(path or "beat.refused", expression, given, self._defaults(), **more)
            args, kwargs = schedule.args, schedule.kwargs
        if path and type(args) in _LISTS and type(kwargs) in _DICTS:  # other types were already rejected
            with mistakes:
                functions.check_arguments(func, args, kwargs)
        mistakes.refuse()
        self._signatures[path] = functions.signature(func)
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
    """Return whether one of the modules declares the schedule or contains its function."""
    declared = schedule.declared
    return (declared is not None and declared.module in modules) or schedule.func.rpartition(".")[0] in modules


default_registry = Registry(sources.defaults)
"""The registry behind `beat.periodic` and `beat.register`."""

periodic = default_registry.periodic
"""Decorate a function with a schedule: `@periodic("0 9 * * mon-fri", tz="Europe/Paris")`."""

group = default_registry.group
"""Limit how many runs of a group's schedules may be in progress at once: `group("reports", max_running=5)`."""

schedulable = default_registry.schedulable
"""Expose a function without a schedule, so that it can be scheduled from data."""

register = default_registry.register
"""Schedule a function without decorating it: `register(shutil.disk_usage, "@daily", args=["/"])`."""
