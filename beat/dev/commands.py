"""The processes that a survey calls for. A command line holds no password: all users of a machine can read it."""

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
    """One process of the family."""

    tag: str
    arguments: tuple[str, ...]
    queues: tuple[str, ...] = ()
    """Those that it works on, if it is a worker."""


def surveyor(modules: Sequence[str]) -> tuple[str, ...]:
    """The process that loads the modules and prints a survey."""
    return (sys.executable, "-m", "beat.dev.project", *modules)


def commands(survey: Survey, modules: Sequence[str]) -> Iterator[Command]:
    """A scheduler, and a worker for each serializer in use."""
    yield Command("beat", (sys.executable, "-m", "beat", "run", "--", *modules))
    if survey.queues or not survey.json_queues:
        yield _worker("worker", survey, survey.queues or (_DEFAULT_QUEUE,))
    if survey.json_queues:
        yield _worker("json", survey, survey.json_queues, *_JSON)


def environment(survey: Survey, url: str) -> Mapping[str, str]:
    """What all of them find in their environment."""
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
