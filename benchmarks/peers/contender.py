"""Describe a contender: how to install it, start it and read its messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# One environment for each group; the versions that the table is about.
PINS = {
    "rq": {"rq": "2.12.0", "rq-scheduler": "0.14.0", "apscheduler": "3.11.3", "redis": "8.1.0"},
    "celery": {"celery[redis]": "5.7.0", "celery-redbeat": "2.4.2", "redis": "8.1.0"},
}


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A scheduler, started by its public entry point with a schedule that is due every second.

    In `command` and `prepare`, `{bin}` is the environment's directory of programs, `{url}` the private Redis and `{n}`
    the number of the process. Both run in a directory that contains `files`. `prepare` runs once, before the first
    process.
    """

    name: str
    title: str
    group: str | None  # a key of PINS; None for the environment of this interpreter
    queue: str  # the Redis list that the workers read
    queues: tuple[str, ...] = ()  # all of them, where there are several
    push: str = "EXEC"  # the command that fills it, as the proxy of tests/resilience names it
    files: Mapping[str, str]
    prepare: tuple[str, ...] = ()
    command: tuple[str, ...]
    looks: str = ""
    """The Redis command with which it starts to look for due schedules, and which it does not use before. Empty if it
    keeps its schedules in memory."""
    tick: Callable[[str], int] | None = None
    """A function that returns the tick of a message, in seconds since the epoch; None if messages name no tick."""
