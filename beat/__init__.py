"""Periodic tasks for RQ: any number of schedulers, every tick exactly one job."""

from beat._version import __version__
from beat.cron import Cron
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
    DeclarationError,
    DuplicateSchedule,
    LoadError,
    UnknownSchedule,
)
from beat.every import Every
from beat.registry import Registry, default
from beat.schedule import Schedule

__all__ = [
    "BadArguments",
    "BadCron",
    "BadDuration",
    "BadFunction",
    "BadInstant",
    "BadOption",
    "BadZone",
    "BeatError",
    "ConfigError",
    "Cron",
    "DeclarationError",
    "DuplicateSchedule",
    "Every",
    "LoadError",
    "Registry",
    "Schedule",
    "UnknownSchedule",
    "__version__",
    "periodic",
    "register",
]

periodic = default.periodic
"""Decorates a function with a schedule: `@periodic("0 9 * * mon-fri", tz="Europe/Paris")`."""

register = default.register
"""Schedules a function that one doesn't own: `register(shutil.disk_usage, "@daily", args=["/"])`."""
