"""What the tests of declarations declare: functions and values at the top of a module, where a worker finds them."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from datetime import date


def plain() -> str:
    """Says plain.

    And nothing else.
    """
    return "plain"


def report(kind: str, *, copies: int = 1) -> tuple[str, int]:
    return kind, copies


def anything(*args: object, **kwargs: object) -> tuple[tuple[object, ...], dict[str, object]]:
    return args, kwargs


def is_monday(day: date) -> bool:
    return day.weekday() == 0


async def poll() -> str:
    """Polls."""
    return "polled"


def loop() -> Iterator[int]:
    yield 1


async def stream() -> AsyncIterator[int]:
    yield 1


def größe() -> None: ...  # noqa: PLC2401 (a name that Python takes and an id does not)


def transparent(func: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator as it should be."""

    @functools.wraps(func)
    def wrapper(*args: object, **kwargs: object) -> object:
        return func(*args, **kwargs)

    return wrapper


def with_session(func: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that adds an argument of its own."""

    @functools.wraps(func)
    def wrapper(*args: object, **kwargs: object) -> object:
        return func("session", *args, **kwargs)

    return wrapper


def nameless(func: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that forgets the name of what it decorates."""

    def wrapper(*args: object, **kwargs: object) -> object:
        return func(*args, **kwargs)

    return wrapper


@transparent
def wrapped(kind: str) -> str:
    return kind


@with_session
def in_session(session: str, kind: str) -> tuple[str, str]:
    return session, kind


@nameless
def forgotten() -> None: ...


class Reports:
    def method(self) -> None: ...

    @classmethod
    def of_class(cls) -> None: ...

    @staticmethod
    def static(kind: str = "daily") -> str:
        return kind

    class Inner:
        @staticmethod
        def static() -> None: ...


def calls_a_class_method() -> None:
    Reports.of_class()


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Queues(str, enum.Enum):  # noqa: UP042 (the older form prints as its name, and people have it)
    REPORTS = "reports"
    HIGH = "high"
    PICKLE = "pickle"
    HOOK = "app.hooks.done"


class Number(enum.IntEnum):
    THREE = 3


@dataclass(frozen=True)
class Point:
    x: int
    tags: frozenset[str] = frozenset()


class Tags(frozenset[str]):
    """A set with a class of its own."""


class Missing:
    """A singleton, which pickle writes as its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> str:
        return self.name


MISSING, MISSING_TOO = Missing("MISSING"), Missing("MISSING_TOO")


class Forgetful(Exception):
    """Can be pickled, and cannot be read again: the commonest trap there is."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
