"""The items of `fire` as they are sent: what plain ticks share is said once, for all of a crowd."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from beat.protocol import Item

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BY = Item._fields.index("by")
_REST = tuple(Item._field_defaults[name] for name in Item._fields[_BY + 1 :])


def counted(items: Iterable[Item]) -> Iterator[tuple[Any, ...]]:
    """The items of `fire` as they are sent: each after the number of its words, or the plain ones in crowds."""
    for shared, group in itertools.groupby(items, _shared):
        if shared is None:
            yield from ((len(item), *item) for item in group)
        else:
            crowd = [(item.id, item.rev, item.run) for item in group]
            yield (0, len(crowd), *shared, *itertools.chain.from_iterable(crowd))


def _shared(item: Item) -> tuple[Any, ...] | None:
    """What a plain item may share with others; None where there is anything special about it."""
    if item[0] != "fire" or item[_BY + 1 :] != _REST:
        return None
    before, id_, after = item.job.rpartition(item.id)
    return (*item[3:7], item.queue, item.by, before, after) if id_ else None
