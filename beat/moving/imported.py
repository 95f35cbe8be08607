"""The user's modules, run because `--import` asked for it: what they hold once they have been imported."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from beat import loader
from beat.errors import NoSource, did_you_mean
from beat.loader import places

if TYPE_CHECKING:
    from types import ModuleType


def module(place: str) -> ModuleType:
    """The module of that path or dotted name, imported."""
    loader.prepare()
    name = places.locate(place).name
    loaded = loader.load(place)
    if loaded.problems:
        raise loaded.problems[0]
    return sys.modules[name]


def attribute(owner: Any, path: str, shown: str) -> Any:
    """`app.conf.beat_schedule` of a module."""
    for name in path.split("."):
        try:
            owner = getattr(owner, name)
        except AttributeError:
            raise NoSource(f"{shown} has no {name!r:.80}.{did_you_mean(name, dir(owner))}") from None
        shown = f"{shown}.{name}"
    return owner


def path_of(function: Any) -> str:
    """The dotted path of a function, or of what a decorator has made of one."""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
