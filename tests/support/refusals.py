"""How the tests look at a refusal: its class, its sentence, and values that do harm when they are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from beat.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 400


def refused(kind: type[DeclarationError], make: Callable[[], object]) -> str:
    """The sentence with which `make` is refused, for the reason `kind` and no other."""
    with pytest.raises(DeclarationError) as caught:
        make()
    assert type(caught.value) is kind
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) <= LONGEST
    return message


def accepted(make: Callable[[], object]) -> bool:
    """Whether `make` accepts; any error but a refusal comes through."""
    try:
        make()
    except DeclarationError:
        return False
    return True


class Harm(Exception):
    """Raised by values that bear no looking at."""


def _harm(*_: object) -> NoReturn:
    raise Harm("out of context")


class BadRepr:
    __repr__ = _harm


class BadEq:
    __eq__ = _harm
    __hash__ = _harm


class BadLen:
    __len__ = _harm
    __iter__ = _harm
    __bool__ = _harm


class BadAttributes:
    def __getattr__(self, name: str) -> Any:
        raise Harm(name)


class Proxy:
    """Like a request's proxy outside of a request: it raises even when asked for its class."""

    __class__ = property(_harm)


class BadReduce:
    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise Harm("cannot be taken apart")


class NonsenseReduce:
    def __reduce_ex__(self, protocol: object) -> Any:
        return 5


class EndlessReduce:
    def __reduce_ex__(self, protocol: object) -> Any:
        return list, (), None, iter(int, 1)


class DeeperReduce:
    def __reduce_ex__(self, protocol: object) -> Any:
        return DeeperReduce, (DeeperReduce(),)


HOSTILE = (BadRepr, BadEq, BadLen, BadAttributes, Proxy, BadReduce, NonsenseReduce, EndlessReduce, DeeperReduce)
