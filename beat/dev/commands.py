"""Build the command lines and the environment of the processes that `beat dev` runs.

A command line never contains a password, because every user of the machine can read it. The Redis URL is passed in the
environment.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beat.dev import worker_output

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from beat.dev.project import Survey

_DEFAULT_QUEUE = "default"
_JSON = ("--serializer", "rq.serializers.JSONSerializer")


@dataclass(frozen=True)
class Command:
    """The command line of one process."""

    tag: str
    arguments: tuple[str, ...]
    queues: tuple[str, ...] = ()
    """The queues that it works on, if it is a worker."""


def surveyor(modules: Sequence[str]) -> tuple[str, ...]:
    """Return the command that loads the modules and prints a `Survey` as JSON."""
    return (sys.executable, "-m", "beat.dev.project", *modules)


def commands(survey: Survey, modules: Sequence[str]) -> Iterator[Command]:
    """Yield the commands of a scheduler and of a worker for each serializer in use.

    Without any schedule there is one worker, on the default queue.
    """
    yield Command("beat", (sys.executable, "-m", "beat", "run", "--", *modules))
    if survey.queues or not survey.json_queues:
        yield _worker("worker", survey, survey.queues or (_DEFAULT_QUEUE,))
    if survey.json_queues:
        yield _worker("json", survey, survey.json_queues, *_JSON)


def environment(survey: Survey, url: str) -> Mapping[str, str]:
    """Return the environment of these processes, with the Redis URL and the import path of the application."""
    path = [*survey.path, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        **({"PYTHONPATH": os.pathsep.join(path)} if path else {}),
        "PYTHONUNBUFFERED": "1",
        "BEAT_REDIS_URL": url,
        "RQ_REDIS_URL": url,
    }


def _worker(tag: str, survey: Survey, queues: tuple[str, ...], *more: str) -> Command:
    later = ("--with-scheduler",) if survey.tries_later else ()
    arguments = (*worker_output.ARGUMENTS, *later, *more, "--", *queues)
    return Command(tag, (sys.executable, "-m", "beat.dev.worker", *arguments), queues)
