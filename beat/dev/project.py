"""Survey an application for the supervisor: its schedules, queues and source files.

As a program, this module loads the modules that its arguments name, and prints a `Survey` as JSON. It runs in a process
of its own for each survey, because Python imports the code of an application only once.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beat.config import settings
from beat.errors import BadInstant, BeatError
from beat.schedule.registry import default_registry
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from beat.schedule.schedule import Schedule

_BEAT = Path(__file__).parent.parent
_INSTALLED = {"site-packages", "dist-packages"}
_RANKS = ("high", "normal", "low")


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The facts about an application that `beat dev` needs, or the reason why it cannot be loaded."""

    problem: str = ""
    """Why the modules cannot be loaded; empty if they were loaded."""
    own_fault: bool = False
    """Whether the error passed through a file of the application, so that editing it can help."""
    files: tuple[str, ...] = ()
    """The source files to watch."""
    path: tuple[str, ...] = ()
    """The entries that loading added to `sys.path`. A worker needs them too."""
    schedules: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    """The queues of pickled jobs, highest priority first."""
    json_queues: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()
    """Queues that receive both pickled and JSON jobs. A worker can read only one kind."""
    tries_later: bool = False
    """Whether a retry may be delayed, so that a worker needs RQ's scheduler."""
    first: str = ""
    """The id of the schedule that ticks next; empty if no schedule ticks again."""
    tick: str = ""
    """The time of the next tick, in RFC 3339."""

    @classmethod
    def read(cls, text: bytes) -> Survey:
        """Parse the survey that the program printed."""
        fields: dict[str, Any] = json.loads(text)
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**(fields | lists))


def survey(names: Sequence[str]) -> Survey:
    """Load the modules into this process, and return what they declare or why they cannot be loaded."""
    before = [*sys.path, str(Path.cwd())]
    try:
        loaded = default_registry.load(*names, setup=settings.load().settings.setup)
    except BeatError as e:
        faulty = list(_sources(_files_of(e), below=Path.cwd()))
        files = dict.fromkeys([*faulty, *_imported()])
        return Survey(problem=str(e), own_fault=bool(faulty), files=tuple(files))
    found = sorted(default_registry, key=lambda schedule: _RANKS.index(schedule.priority))
    queues = {s.queue: None for s in found if s.serializer == "pickle"}
    json_queues = {s.queue: None for s in found if s.serializer == "json"}
    tick, first = min(_next_ticks(default_registry), default=("", ""))
    return Survey(
        files=tuple(dict.fromkeys([*_imported(), *_imported(loaded.modules)])),
        path=tuple(entry for entry in sys.path if entry not in before),
        schedules=tuple(schedule.id for schedule in default_registry),
        queues=tuple(queues),
        json_queues=tuple(queue for queue in json_queues if queue not in queues),
        mixed=tuple(queue for queue in json_queues if queue in queues),
        tries_later=any(s.retry and any(s.retry.intervals) for s in found),
        first=first,
        tick=tick,
    )


def _next_ticks(schedules: Iterable[Schedule]) -> Iterator[tuple[str, str]]:
    now = clock.now()
    for schedule in schedules:
        try:
            tick = schedule.after(now) if schedule.enabled else None
        except BadInstant:  # its ticks lie beyond the end of the calendar
            continue
        if tick:
            yield clock.text(tick), schedule.id


def _imported(names: Iterable[str] | None = None) -> Iterator[str]:
    """Yield the source files of these modules, or of all modules imported from below the current directory."""
    modules: list[Any] = [sys.modules.get(name) for name in (sys.modules.copy() if names is None else names)]
    files = (getattr(module, "__file__", None) for module in modules)
    return _sources((file for file in files if isinstance(file, str)), below=Path.cwd() if names is None else Path("/"))


def _sources(files: Iterable[str], below: Path) -> Iterator[str]:
    """Yield the Python files below a directory that the user may edit: neither beat nor an installed library."""
    for file in files:
        path = Path(file)
        outside = path.is_relative_to(_BEAT) or path.is_relative_to(sys.prefix) or _INSTALLED & set(path.parts)
        if path.suffix == ".py" and path.is_relative_to(below) and not outside:
            yield file


def _files_of(error: BaseException) -> Iterator[str]:
    """Yield the files that an error and its causes passed through."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, SyntaxError) and cause.filename:
            yield cause.filename
        yield from (frame.f_code.co_filename for frame, _ in traceback.walk_tb(cause.__traceback__))
        cause = cause.__cause__ or cause.__context__


def _main() -> None:
    answer = os.dup(1)
    os.dup2(2, 1)  # modules may print while they are imported: only the answer goes to stdout
    found = survey(sys.argv[1:])
    with os.fdopen(answer, "w", encoding="utf-8") as file:
        json.dump(asdict(found), file)
    os._exit(0)  # threads that the application has started would keep the process alive


if __name__ == "__main__":
    _main()
