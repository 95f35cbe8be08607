"""Represent another tool's schedules in beat's terms: those that can move, and those that cannot, with the reason.

Every `Found` of a `Reading` was validated as a schedule, so beat would accept it unchanged.
"""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from beat.config.sources import Defaults
from beat.errors import DeclarationError
from beat.schedule.from_options import declare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from beat.schedule.schedule import Schedule

_STRANGE = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)
_LONGEST = 100
_UNSAID: tuple[Any, ...] = (None, False, (), {})
_PLAIN = (type(None), bool, int, str, bytes)


class NotCarried(Exception):
    """One schedule cannot move; the text says why."""


@dataclass(frozen=True)
class Command:
    """A shell command line, with the environment that cron would start it in."""

    line: str
    stdin: str | None = None
    shell: str = "/bin/sh"
    home: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A schedule that can move."""

    name: str
    """Its name in the other tool."""
    where: str
    """The source, as in `app/celery.py:12`, or the key in Redis."""
    id: str
    func: str = ""
    """The dotted path of its function; empty for a command."""
    cron: str | None = None
    every: str | None = None
    seconds: bool = False
    tz: str | None = None
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    queue: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """The other options of a declaration by name."""
    notes: tuple[str, ...] = ()
    """The entries that were not carried over or have changed, each with the reason."""
    command: Command | None = None

    def given(self) -> dict[str, Any]:
        """Return the options of a declaration beside function, id and expression, without empty ones."""
        said = {
            "every": self.every,
            "seconds": self.seconds,
            "tz": self.tz,
            "args": self.args,
            "kwargs": dict(self.kwargs),
            "queue": self.queue,
        }
        return {**{name: value for name, value in said.items() if value not in _UNSAID}, **self.options}

    def schedule(self) -> Schedule:
        """Return the schedule; raise DeclarationError if beat would reject it."""
        given: Any = {"id": self.id, **self.given()}
        return declare(self.func or f"schedules.{identifier(self.id)}", self.cron, given, Defaults())


@dataclass(frozen=True)
class Left:
    """A schedule that cannot move."""

    name: str
    where: str
    why: str


@dataclass(frozen=True)
class Draft:
    """A schedule of the other tool before conversion."""

    name: str
    where: str
    make: Callable[[], Found]
    """A function that converts it, or raises NotCarried if it cannot move."""


@dataclass(frozen=True)
class Reading:
    """The result of reading another tool's schedules."""

    source: str
    place: str
    found: tuple[Found, ...]
    left: tuple[Left, ...]
    notes: tuple[str, ...]
    """Notes that concern all schedules."""


def gathered(
    source: str, place: str, drafts: Iterable[Draft], notes: Iterable[str] = (), *, intervals: str = ""
) -> Reading:
    """Convert and validate each draft, and return those that can move and those that cannot, with the reason.

    `notes` concern all schedules; `intervals` is a note to add if any schedule has an interval.
    """
    found: list[Found] = []
    left: list[Left] = []
    ids = _Ids()
    for draft in drafts:
        try:
            made = _tried(draft.make(), ids)
        except DeclarationError as e:
            left.append(Left(draft.name, draft.where, f"beat does not take it: {e.message}"))
        except NotCarried as e:
            left.append(Left(draft.name, draft.where, str(e)))
        else:
            found.append(made)
    more = [intervals] if intervals and any(each.every for each in found) else []
    return Reading(source, place, tuple(found), tuple(left), (*notes, *more))


class _Ids:
    """A set of ids that keeps each id unique."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def free(self, wanted: str) -> str:
        """Return the wanted id or, if it is taken, the id with the next free number appended."""
        free = wanted
        while free in self._taken:
            number = self._numbers[wanted] = self._numbers.get(wanted, 1) + 1
            free = f"{wanted[: _LONGEST - len(str(number)) - 1]}-{number}"
        self._taken.add(free)
        return free


def _tried(made: Found, ids: _Ids) -> Found:
    word = next((word for word in made.func.split(".") if keyword.iskeyword(word)), None)
    if word:
        raise NotCarried(f"{made.func} is not the path of a function: {word!r} is a word of Python's own")
    refuse_unplain(made.args, "args")
    refuse_unplain(dict(made.kwargs), "kwargs")
    replace(made, id=slug(made.id)).schedule()
    return replace(made, id=ids.free(slug(made.id)))


def slug(name: str) -> str:
    """Return a valid id that resembles `name`."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return _STRANGE.sub("-", letters).strip("-")[:_LONGEST] or "schedule"


def identifier(schedule_id: str) -> str:
    """Return a valid Python name that resembles an id."""
    name = schedule_id.replace("-", "_").lower()
    return f"run_{name}" if name[:1].isdigit() or keyword.iskeyword(name) or keyword.issoftkeyword(name) else name


def positional(value: object) -> tuple[Any, ...]:
    """Return positional arguments as a tuple; raise NotCarried if the value is not a list."""
    if value is None or isinstance(value, list | tuple):
        return tuple(value or ())
    raise NotCarried(f"args is {value!r:.60}, not a list")


def named(value: object, name: str = "kwargs") -> Mapping[str, Any]:
    """Return named arguments or options as a dict; raise NotCarried if the value is not a dict with text keys."""
    if value is None or value == () or (isinstance(value, Mapping) and all(isinstance(key, str) for key in value)):
        return dict(value or {})
    raise NotCarried(f"{name} is {value!r:.60}, not a dict whose keys are text")


def refuse_unplain(value: object, path: str) -> None:
    """Raise NotCarried for a value that is not None, bool, number, text, bytes, or a list, tuple or dict of these."""
    if type(value) in _PLAIN or (type(value) is float and math.isfinite(value)):
        return
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        for number, item in enumerate(value):
            refuse_unplain(item, f"{path}[{number}]")
    elif isinstance(value, dict) and type(value) is dict:
        for key, item in value.items():
            refuse_unplain(key, f"a key of {path}")
            refuse_unplain(item, f"{path}[{key!r:.40}]")
    else:
        shown = repr(value) if type(value) is float else f"a {type(value).__name__}"
        raise NotCarried(f"{path} is {shown}, and only plain data can be written down: declare it in code yourself")
