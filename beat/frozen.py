"""Frozen dataclasses made quickly, where there are thousands to a page.

Their own `__init__` has each field set by a call, since they refuse to be changed: that takes three times as long.
"""

from __future__ import annotations

import functools
from dataclasses import MISSING, fields
from typing import Any, TypeVar

T = TypeVar("T")


def made(kind: type[T], values: dict[str, Any]) -> T:
    """As `kind(**values)`, of fields that it has; TypeError when one is missing that it needs."""
    needed, others = _parts(kind)  # type: ignore[arg-type] # a class has a hash, whatever mypy thinks
    if not needed <= values.keys():
        raise TypeError(f"{kind.__name__} needs {', '.join(sorted(needed - values.keys()))}")
    one = object.__new__(kind)
    vars(one).update(others | values)
    return one


@functools.cache
def _parts(kind: Any) -> tuple[frozenset[str], dict[str, Any]]:
    """The names of the fields that must be given, and what the others are where nothing is."""
    defaults = {own.name: own.default for own in fields(kind) if own.default is not MISSING}
    defaults |= {own.name: own.default_factory() for own in fields(kind) if own.default_factory is not MISSING}
    return frozenset(own.name for own in fields(kind)) - defaults.keys(), defaults
