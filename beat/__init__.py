"""Periodic tasks for RQ: any number of schedulers, every tick exactly one job.

Each public name is imported on first use, so that `beat --help` does not wait for modules that it does not need.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from beat._version import __version__

if TYPE_CHECKING:
    from beat import events
    from beat.client.client import Client
    from beat.config.groups import Group
    from beat.errors import (
        BadArguments,
        BadCron,
        BadDuration,
        BadFunction,
        BadInstant,
        BadOption,
        BadZone,
        BeatError,
        ConfigError,
        Conflict,
        DeclarationError,
        DuplicateSchedule,
        LoadError,
        NoRedis,
        Refused,
        Stuck,
        UnknownSchedule,
    )
    from beat.jobs.current_run import get_current_run
    from beat.jobs.report import Report
    from beat.jobs.run import Run
    from beat.notify.alerts.hooks import on_event
    from beat.schedule.follows import Follows
    from beat.schedule.monitor import Monitor
    from beat.schedule.registry import Registry, default_registry, group, periodic, register, schedulable
    from beat.schedule.requires import Requires
    from beat.schedule.schedule import Schedule
    from beat.scheduler import Scheduler
    from beat.timing.cron import Cron
    from beat.timing.interval import Every

__all__ = [
    "BadArguments",
    "BadCron",
    "BadDuration",
    "BadFunction",
    "BadInstant",
    "BadOption",
    "BadZone",
    "BeatError",
    "Client",
    "ConfigError",
    "Conflict",
    "Cron",
    "DeclarationError",
    "DuplicateSchedule",
    "Every",
    "Follows",
    "Group",
    "LoadError",
    "Monitor",
    "NoRedis",
    "Refused",
    "Registry",
    "Report",
    "Requires",
    "Run",
    "Schedule",
    "Scheduler",
    "Stuck",
    "UnknownSchedule",
    "__version__",
    "default_registry",
    "events",
    "get_current_run",
    "group",
    "on_event",
    "periodic",
    "register",
    "schedulable",
]

_HOMES = {  # every other name is in beat.errors
    "Client": "client.client",
    "default_registry": "schedule.registry",
    "Cron": "timing.cron",
    "Every": "timing.interval",
    "Follows": "schedule.follows",
    "Group": "config.groups",
    "Monitor": "schedule.monitor",
    "Registry": "schedule.registry",
    "Report": "jobs.report",
    "Requires": "schedule.requires",
    "Run": "jobs.run",
    "Schedule": "schedule.schedule",
    "Scheduler": "scheduler",
    "get_current_run": "jobs.current_run",
    "group": "schedule.registry",
    "on_event": "notify.alerts.hooks",
    "periodic": "schedule.registry",
    "register": "schedule.registry",
    "schedulable": "schedule.registry",
}


def __dir__() -> list[str]:
    """Return the public names, without submodules and this module's own imports."""
    return __all__


if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept any misspelt name

    def __getattr__(name: str) -> object:
        """Import a public name on first use."""
        if name == "events":
            return import_module("beat.events")
        if name not in __all__:
            raise AttributeError(f"module 'beat' has no attribute {name!r}")
        return globals().setdefault(name, getattr(import_module(f"beat.{_HOMES.get(name, 'errors')}"), name))
