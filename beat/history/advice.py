"""Recognize why a worker could not call the function of a job, and advise what to do.

RQ reports a function that cannot be imported with a message of its own, such as `Invalid attribute name: app.report`.
The frames of the traceback tell such a failure from an error that the function itself raised. Only failures inside RQ,
before the function began, are recognized.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from beat.config import shell_quoting
from beat.history.ledger import LONGEST_TRACEBACK

if TYPE_CHECKING:
    from beat.history.ledger import Error

LINK = re.compile(
    r"\n\n(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\n\n"
)
"""The text between two tracebacks of an exception chain."""
_FRAME = re.compile(r'^  File "([^"\n]+)", line \d+, in (\S+)$', re.MULTILINE)
_JOB = re.compile(r"[/\\]rq[/\\]job\.py$")
_MISFIT = re.compile(
    r"unexpected keyword argument|required (?:positional|keyword-only) argument|positional arguments? but"
    r"|multiple values for argument|positional-only arguments passed as keyword"
)
_NAME = re.compile(r"Invalid attribute name: ([^\s:]+)")
_OWNER = re.compile(r"AttributeError: (?:partially initialized )?module '([^']+)' has no attribute '([^']*)'")
_NO_MODULE = "__builtins__"  # RQ looks for a name there when it could import no part of it


class Advice(NamedTuple):
    """A problem and its remedy."""

    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}"


def advice(error: Error | None, queue: str = "") -> Advice | None:
    """Return what to do about a run that failed before its function began; None for any other error."""
    if error is None:
        return None
    links = LINK.split(error.traceback)
    frames = [(_JOB.search(path) is not None, name) for path, name in _FRAME.findall(links[-1])]
    inside = frames[frames.index((True, "_execute")) + 1 :] if (True, "_execute") in frames else None
    name = shell_quoting.arguments(queue) if queue else "QUEUE"
    worker = f"`rq worker -P DIR {name}`"
    if error.type.endswith("DeserializationError"):
        is_rqs = bool(frames) and frames[-1] == (True, "_deserialize_data") and (not inside or inside[0][0])
        return _unreadable(links[0], name) if is_rqs else None
    if inside is None:
        return None
    if inside[:1] == [(True, "func")]:
        return _not_imported(error, worker)
    is_whole = len(error.traceback) < LONGEST_TRACEBACK
    if not inside and is_whole and error.type == "TypeError" and _MISFIT.search(error.message):
        return Advice(
            "The function in the worker does not take these arguments: the worker runs another version of the code,"
            " or the arguments are wrong.",
            "Deploy the same version to the worker and restart it, or correct the arguments.",
        )
    return None


def _not_imported(error: Error, worker: str) -> Advice:
    named = _NAME.match(error.message) if error.type == "ValueError" else None
    if named is None:
        return Advice(
            f"The worker could not import the function: its module raised {error.type or 'an error'}.",
            "Make the import work in the worker's environment, and restart the worker.",
        )
    owner, last = _OWNER.search(error.traceback), named[1].rpartition(".")[2]
    name = ".".join(part for part in (owner[1], owner[2], last) if part) if owner else named[1]
    if _NO_MODULE in error.traceback or (owner and owner[2]):  # RQ does not say why it could not import a module
        return Advice(
            f"The worker could not import {name}.",
            f"Start it where the code and all that it imports are installed ({worker}, or set PYTHONPATH), in the same"
            " version.",
        )
    return Advice(
        f"The worker's code has no {name}: it is another version.",
        "Deploy the same version to the worker and restart it.",
    )


def _unreadable(cause: str, queue: str) -> Advice:
    """Advise on a job that RQ could not deserialize because of the serializer or a class in its arguments."""
    last = cause.rstrip().rpartition("\n")[2]
    if "UnpicklingError: invalid load key" in last:
        return Advice(
            "The worker reads pickles, and the schedule writes JSON.",
            f"Start it with `rq worker --serializer rq.serializers.JSONSerializer {queue}`.",
        )
    if ("UnicodeDecodeError" in last or "JSONDecodeError" in last) and "serializers.py" in cause:
        return Advice(
            "The worker reads JSON, and the schedule writes pickles.",
            'Start it without `--serializer`, or declare the schedule with serializer="json".',
        )
    return Advice(
        f"The worker could not read the arguments of the job: {last[:200]}.",
        f"Start it where the code is installed (`rq worker -P DIR {queue}`, or set PYTHONPATH), in the same version.",
    )
