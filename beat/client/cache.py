"""What was made lately, kept for as long as that of which it was made is the same: who asks again gets it at once.

A page that is open asks every two seconds, and most of what it shows has not changed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

G = TypeVar("G")
M = TypeVar("M")


class Lately(Generic[G, M]):
    """The newest of each name; so many names, those that were asked for last."""

    def __init__(self, room: int) -> None:
        self._room, self._kept = room, OrderedDict[object, tuple[G, M]]()
        self._turn = threading.Lock()

    def made(self, name: Hashable, given: G, make: Callable[[G], M]) -> M:
        """What `make` makes of it, or made of the same before."""
        with self._turn:
            kept = self._kept.get(name)
            if kept and kept[0] == given:
                self._kept.move_to_end(name)
                return kept[1]
        made = make(given)
        with self._turn:
            self._kept[name] = given, made
            self._kept.move_to_end(name)
            if len(self._kept) > self._room:
                self._kept.popitem(last=False)
        return made
