"""Periodic tasks for RQ: any number of schedulers, every tick exactly one job.

A name is loaded when it is first used, so that `beat --help` need not wait for what it does not show.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from beat._version import __version__

if TYPE_CHECKING:
    from beat import events
    from beat.alerts.functions import on_event
    from beat.client import Client
    from beat.cron import Cron
    from beat.current import get_current_run
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
    from beat.every import Every
    from beat.follows import Follows
    from beat.groups import Group
    from beat.monitor import Monitor
    from beat.registry import Registry, group, periodic, register, schedulable
    from beat.report import Report
    from beat.requires import Requires
    from beat.run import Run
    from beat.schedule import Schedule
    from beat.service import Scheduler

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
    "events",
    "get_current_run",
    "group",
    "on_event",
    "periodic",
    "register",
    "schedulable",
]

_HOMES = {  # the others are errors
    "Client": "client",
    "Cron": "cron",
    "Every": "every",
    "Follows": "follows",
    "Group": "groups",
    "Monitor": "monitor",
    "Registry": "registry",
    "Report": "report",
    "Requires": "requires",
    "Run": "run",
    "Schedule": "schedule",
    "Scheduler": "service",
    "get_current_run": "current",
    "group": "registry",
    "on_event": "alerts.functions",
    "periodic": "registry",
    "register": "registry",
    "schedulable": "registry",
}


def __dir__() -> list[str]:
    """Return the public names; sub-modules and what this module imports are none."""
    return __all__


if not TYPE_CHECKING:  # or any misspelt name would pass

    def __getattr__(name: str) -> object:
        """Load a name when it is first used."""
        if name == "events":
            return import_module("beat.events")
        if name not in __all__:
            raise AttributeError(f"module 'beat' has no attribute {name!r}")
        return globals().setdefault(name, getattr(import_module(f"beat.{_HOMES.get(name, 'errors')}"), name))
