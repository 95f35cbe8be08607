"""Cache derived values, and reuse each of them while its input is the same.

An open page of the web UI asks every two seconds, and most of what it shows has not changed.
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
    """A cache with one value for each name; it keeps the `room` names that were used last."""

    def __init__(self, room: int) -> None:
        self._room, self._kept = room, OrderedDict[object, tuple[G, M]]()
        self._turn = threading.Lock()

    def made(self, name: Hashable, given: G, make: Callable[[G], M]) -> M:
        """Return the value for this name: the kept one if it was made from the same input, else a new one.

        `make` runs outside the lock, so two threads may make the same value at once.
        """
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
