"""Every error that beat raises, in one tree.

::

    BeatError
    ├── DeclarationError (also ValueError)   a developer wrote something that cannot work
    │   ├── BadCron                          an expression, with the field and a caret
    │   ├── BadZone                          not the name of an IANA time zone
    │   ├── BadDuration                      not a length of time, or out of range
    │   ├── BadInstant                       a naive datetime, or one outside the calendar
    │   ├── BadFunction                      no worker could import it
    │   ├── BadArguments                     they do not fit the function, or no worker would get them unchanged
    │   ├── BadOption                        an id, a queue, a time-out … that cannot be
    │   └── DuplicateSchedule                one id, two schedules
    ├── UnknownSchedule (also KeyError)      no schedule of that id
    ├── BadSource                            schedules of a predecessor that cannot be read
    │   └── NoSource                         there are none where they should be
    ├── Refused                              the state in Redis forbids it; nothing was done
    │   └── Conflict                         somebody else has changed the schedule meanwhile
    ├── ConfigError                          settings or modules that beat cannot start with
    │   └── LoadError                        a module that could not be imported
    ├── NoRedis                              no Redis there, or none that beat can work with
    └── Stuck                                a thread of a running beat hangs

Each message is one sentence that says what is wrong, why, and what would work. `exit_code` is what the command line
ends with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable


class BeatError(Exception):
    """The root of everything that beat raises on purpose."""

    exit_code: ClassVar[int] = 1


class DeclarationError(BeatError, ValueError):
    """A schedule that cannot work, refused where it is written."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.where: str | None = None
        """The place of the declaration, as `file:line`, once it is known."""
        self.mistakes: tuple[DeclarationError, ...] = (self,)
        """Each mistake of the declaration, where there are several; otherwise the error itself."""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class BadCron(DeclarationError):
    """A cron expression that beat refuses, with a caret under the part that is wrong."""

    def __init__(self, expression: str, problem: str, span: tuple[int, int] | None = None, hint: str = "") -> None:
        shown = expression if len(expression) <= _SHOWN else expression[:_SHOWN] + "…"
        shown = "".join(c if c.isprintable() else " " if c == "\t" else "·" for c in shown)
        lines = [f"cron {shown!r}: {problem}"]
        if span and span[0] < _SHOWN:
            start, end = span[0], min(max(span[1], span[0] + 1), len(shown) + 1)
            lines += [f"    {shown}", f"    {' ' * start}{'^' * (end - start)}"]
        if hint:
            lines.append(hint)
        super().__init__("\n".join(lines))
        self.expression = expression
        self.problem = problem
        self.span = span
        self.hint = hint

    def __reduce__(self) -> tuple[type[BadCron], tuple[object, ...], dict[str, object]]:
        return BadCron, (self.expression, self.problem, self.span, self.hint), self.__dict__


_SHOWN = 80


def together(errors: Iterable[DeclarationError]) -> DeclarationError:
    """Return one error for all of these: the only one itself, else one that lists them and has their common class."""
    mistakes = tuple({mistake.message: mistake for error in errors for mistake in error.mistakes}.values())
    if len(mistakes) == 1:
        return mistakes[0]
    kinds = {type(mistake) for mistake in mistakes}
    kind = kinds.pop() if len(kinds) == 1 and BadCron not in kinds else DeclarationError
    listed = ("- " + mistake.message.replace("\n", "\n  ") for mistake in mistakes)
    error = kind("\n".join([f"{len(mistakes)} mistakes:", *listed]))
    error.mistakes = mistakes
    return error


class BadZone(DeclarationError):
    """Not the name of an IANA time zone."""


class BadDuration(DeclarationError):
    """A length of time that beat cannot read, or that is out of range."""


class BadInstant(DeclarationError):
    """A naive datetime, or one outside the calendar."""


class BadFunction(DeclarationError):
    """A callable that no worker could import."""


class BadArguments(DeclarationError):
    """Arguments that do not fit the function, or that a worker would not get unchanged."""


class BadOption(DeclarationError):
    """An option of a schedule with a value that cannot be."""


class DuplicateSchedule(DeclarationError):
    """A second schedule with the id of another."""


class UnknownSchedule(BeatError, KeyError):
    """No schedule of that id."""

    exit_code = 3

    def __str__(self) -> str:
        return str(self.args[0])


class BadSource(BeatError):
    """Schedules of a predecessor that cannot be read: a syntax error, no dict, a Redis key of another kind."""

    exit_code = 2


class NoSource(BadSource):
    """Where the schedules of a predecessor should be, there are none."""

    exit_code = 3


class Refused(BeatError):
    """The state in Redis forbids a change, and nothing was done."""

    exit_code = 4


class Conflict(Refused):
    """Another client has changed the schedule meanwhile, and nothing was done."""


class ConfigError(BeatError):
    """Settings or modules that beat cannot start with."""

    exit_code = 78


class LoadError(ConfigError):
    """A module that could not be imported."""


class NoRedis(BeatError):
    """No Redis there, or none that beat can work with."""

    exit_code = 69


class Stuck(BeatError):
    """A thread of a running scheduler hangs, and ends only with its process."""

    exit_code = 70

    def __init__(self, message: str, stacks: str = "") -> None:
        super().__init__(message)
        self.stacks = stacks
        """Where each thread was at that moment."""


def nearest(word: str, names: Iterable[str]) -> str:
    """The name that is most like `word`, or nothing."""
    import difflib  # noqa: PLC0415 (where nothing is misspelt, nobody waits for it)

    by_lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(word.lower()[:_SHOWN], by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else ""


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """`" Did you mean 'x'?"` for the name nearest to `word`, or nothing."""
    found = nearest(word, names)
    return f" Did you mean {found!r}?" if found else ""
