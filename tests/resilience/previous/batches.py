"""Encode the items of the previous scripts, as `storage/batches.py` and `storage/store.py` did."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from tests.resilience.previous.messages import Item

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.resilience.previous.messages import Registration

_AT = Item._fields.index
_SHARED = slice(_AT("tick"), _AT("job"))
_OTHERS = (slice(_AT("at"), _AT("slot")), slice(_AT("data"), _AT("group")), slice(_AT("expects"), None))
_NOTHING = [tuple(Item("", "", ""))[part] for part in _OTHERS]


def counted(items: Iterable[Item]) -> Iterator[tuple[Any, ...]]:
    """Yield the words of `fire`'s items: a single item after the number of its words, or a batch.

    A batch is defined once, by a 0 and the shared fields. Negative numbers then name it, before the members that use
    it.
    """
    crowds: dict[tuple[Any, ...], int] = {}
    for shared, group in itertools.groupby(items, _shared):
        if shared is None:
            yield from ((len(item), *item) for item in group)
            continue
        if shared not in crowds:
            crowds[shared] = -1 - len(crowds)
            yield (0, *shared)
        members = [(item.id, item.rev, item.run) for item in group]
        yield (crowds[shared], len(members), *itertools.chain.from_iterable(members))


def _shared(item: Item) -> tuple[Any, ...] | None:
    """Return the fields that the item can share with others; None if it has more of its own than id, rev and run."""
    words: tuple[Any, ...] = item
    if words[0] != "fire" or [words[part] for part in _OTHERS] != _NOTHING:
        return None
    before, id_, after = item.job.rpartition(item.id)
    return (*words[_SHARED], item.queue, item.by, item.slot, item.max_runs, item.group, before, after) if id_ else None


def words_of(items: Iterable[Registration]) -> Iterator[list[Any]]:
    """Yield the items of `register` as they are sent: a template equal to the previous one is sent only once."""
    before = None
    for item in items:
        fields, template = _flat(item.fields), _flat(item.template) if item.template != before else []
        yield [*item[:-2], len(fields), len(template), *fields, *template]
        before = item.template


def _flat(mapping: Mapping[str, Any]) -> list[Any]:
    return list(itertools.chain.from_iterable(mapping.items()))
