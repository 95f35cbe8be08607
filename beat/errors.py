"""Define every error that beat raises, in one tree.

::

    BeatError
    ├── DeclarationError (also ValueError)   a declaration that cannot work
    │   ├── BadCron                          an invalid cron expression; a caret shows where
    │   ├── BadZone                          not the name of an IANA time zone
    │   ├── BadDuration                      not a duration, or one out of range
    │   ├── BadInstant                       a naive datetime, or one outside the calendar
    │   ├── BadFunction                      a callable that no worker could import
    │   ├── BadArguments                     arguments that do not fit the function or cannot be serialized
    │   ├── BadOption                        an option with an invalid value
    │   └── DuplicateSchedule                two schedules with the same id
    ├── UnknownSchedule (also KeyError)      there is no schedule with that id
    ├── BadSource                            schedules of another program that cannot be imported
    │   └── NoSource                         there are none to import
    ├── Refused                              the state in Redis forbids the change; nothing was done
    │   └── Conflict                         another client changed the schedule first; nothing was done
    ├── ConfigError                          settings or modules that beat cannot start with
    │   └── LoadError                        a module that could not be imported
    ├── NoRedis                              Redis is unreachable, or beat cannot work with it
    └── Stuck                                a thread of a running scheduler hangs

Each message says what is wrong, why, and what would work. `exit_code` is the exit status of the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable


class BeatError(Exception):
    """The base class of every error that beat raises on purpose."""

    exit_code: ClassVar[int] = 1


class DeclarationError(BeatError, ValueError):
    """An invalid declaration, rejected where it is written."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.where: str | None = None
        """The source line of the declaration, as `file:line`; None until it is known."""
        self.mistakes: tuple[DeclarationError, ...] = (self,)
        """The mistakes of the declaration, one error each; only this error if there is just one."""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class BadCron(DeclarationError):
    """An invalid cron expression. The message has carets under the part that is wrong."""

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
    """Return one error that lists the distinct mistakes of all errors, or the only mistake itself.

    The class is that of the mistakes if they share one other than BadCron, and DeclarationError otherwise.
    """
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
    """A name that is not an IANA time zone."""


class BadDuration(DeclarationError):
    """A duration that beat cannot parse, or that is out of range."""


class BadInstant(DeclarationError):
    """A naive datetime, or one outside the calendar."""


class BadFunction(DeclarationError):
    """A callable that no worker could import."""


class BadArguments(DeclarationError):
    """Arguments that do not fit the function, or that would not reach a worker unchanged."""


class BadOption(DeclarationError):
    """An option with an invalid value."""


class DuplicateSchedule(DeclarationError):
    """A second schedule with the same id."""


class UnknownSchedule(BeatError, KeyError):
    """There is no schedule with that id."""

    exit_code = 3

    def __str__(self) -> str:
        return str(self.args[0])


class BadSource(BeatError):
    """Schedules of another program that cannot be imported, as with a syntax error or a Redis key of another type."""

    exit_code = 2


class NoSource(BadSource):
    """A source that has no schedules to import."""

    exit_code = 3


class Refused(BeatError):
    """The state in Redis forbids the change; nothing was done."""

    exit_code = 4


class Conflict(Refused):
    """Another client changed the schedule first; nothing was done."""


class ConfigError(BeatError):
    """Settings or modules that beat cannot start with."""

    exit_code = 78


class LoadError(ConfigError):
    """A module that could not be imported."""


class NoRedis(BeatError):
    """Redis is unreachable, or beat cannot work with it."""

    exit_code = 69


class Stuck(BeatError):
    """A thread of a running scheduler hangs; only ending the process ends it."""

    exit_code = 70

    def __init__(self, message: str, stacks: str = "") -> None:
        super().__init__(message)
        self.stacks = stacks
        """The stack of each thread when the hang was noticed."""


def nearest(word: str, names: Iterable[str]) -> str:
    """Return the name that is most similar to `word`, or an empty string."""
    import difflib  # noqa: PLC0415 (imported only after a misspelling)

    by_lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(word.lower()[:_SHOWN], by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else ""


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return `" Did you mean 'x'?"` for the name nearest to `word`, or an empty string."""
    found = nearest(word, names)
    return f" Did you mean {found!r}?" if found else ""
