"""Frozen dataclasses made quickly, where there are thousands to a page.

Their own `__init__` has each field set by a call, since they refuse to be changed: that takes three times as long.
"""

from __future__ import annotations

import functools
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def made(kind: type[T], values: dict[str, Any]) -> T:
    """As `kind(**values)`: TypeError when something is missing, or is no field of it."""
    needed, others, factories = _parts(kind)  # type: ignore[arg-type] # a class has a hash, whatever mypy thinks
    if not needed <= values.keys() or not values.keys() <= needed | others.keys():
        raise TypeError(f"{kind.__name__} needs {sorted(needed)} and may have {sorted(others)}, not {sorted(values)}")
    one = object.__new__(kind)
    vars(one).update(others | values)
    for name, make in factories:
        if name not in values:
            vars(one)[name] = make()
    return one


@functools.cache
def _parts(kind: Any) -> tuple[frozenset[str], dict[str, Any], list[tuple[str, Callable[[], Any]]]]:
    """The names of the fields that must be given, what the others are where nothing is, and who makes it."""
    factories = [(own.name, own.default_factory) for own in fields(kind) if own.default_factory is not MISSING]
    others = {own.name: own.default for own in fields(kind) if own.default is not MISSING} | dict(factories)
    return frozenset(own.name for own in fields(kind)) - others.keys(), others, factories
