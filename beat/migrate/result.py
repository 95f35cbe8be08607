"""What a predecessor's schedules are in beat's words: those that can move in, and those that cannot, with the reason.

Whatever is found has been tried as a schedule: beat would take it as it stands.
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
from beat.schedule.declare import declare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from beat.schedule.schedule import Schedule

_STRANGE = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)
_LONGEST = 100
_UNSAID: tuple[Any, ...] = (None, False, (), {})
_PLAIN = (type(None), bool, int, str, bytes)


class NotCarried(Exception):
    """Why one schedule cannot move in; the others can."""


@dataclass(frozen=True)
class Command:
    """A line that a shell runs, as cron would start it."""

    line: str
    stdin: str | None = None
    shell: str = "/bin/sh"
    home: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A schedule that can move in."""

    name: str
    """What the predecessor calls it."""
    where: str
    """`app/celery.py:12`, or the key in Redis."""
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
    """The other options of a declaration, by name."""
    notes: tuple[str, ...] = ()
    """What was not carried over, or has changed, and why."""
    command: Command | None = None

    def given(self) -> dict[str, Any]:
        """All that a declaration says beside the function, the id and the expression; nothing that it need not say."""
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
        """The schedule itself; refuses what beat would refuse."""
        given: Any = {"id": self.id, **self.given()}
        return declare(self.func or f"schedules.{identifier(self.id)}", self.cron, given, Defaults())


@dataclass(frozen=True)
class Left:
    """A schedule that cannot move in."""

    name: str
    where: str
    why: str


@dataclass(frozen=True)
class Draft:
    """A schedule of the predecessor that has yet to be understood."""

    name: str
    where: str
    make: Callable[[], Found]
    """Raises NotCarried where that cannot be."""


@dataclass(frozen=True)
class Reading:
    """All that was read of a predecessor."""

    source: str
    place: str
    found: tuple[Found, ...]
    left: tuple[Left, ...]
    notes: tuple[str, ...]
    """What concerns them all."""


def gathered(
    source: str, place: str, drafts: Iterable[Draft], notes: Iterable[str] = (), *, intervals: str = ""
) -> Reading:
    """Each draft tried as a schedule: it is found, or it is left with the reason.

    `notes` concern them all; `intervals` is one about intervals, if there are any.
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
    """Each id once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def free(self, wanted: str) -> str:
        """That, or with the next number behind it."""
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
    """An id that is as near to `name` as an id can be."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return _STRANGE.sub("-", letters).strip("-")[:_LONGEST] or "schedule"


def identifier(schedule_id: str) -> str:
    """A Python name that is as near to an id as a name can be."""
    name = schedule_id.replace("-", "_").lower()
    return f"run_{name}" if name[:1].isdigit() or keyword.iskeyword(name) or keyword.issoftkeyword(name) else name


def positional(value: object) -> tuple[Any, ...]:
    """Positional arguments; refuses what is no list."""
    if value is None or isinstance(value, list | tuple):
        return tuple(value or ())
    raise NotCarried(f"args is {value!r:.60}, not a list")


def named(value: object, name: str = "kwargs") -> Mapping[str, Any]:
    """Named arguments, or options; refuses what is no dict whose keys are text."""
    if value is None or value == () or (isinstance(value, Mapping) and all(isinstance(key, str) for key in value)):
        return dict(value or {})
    raise NotCarried(f"{name} is {value!r:.60}, not a dict whose keys are text")


def refuse_unplain(value: object, path: str) -> None:
    """Refuses what cannot be written down: only None, bool, numbers, text, bytes, lists, tuples and dicts can."""
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
