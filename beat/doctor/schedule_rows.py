"""Read every schedule in pages, for all checks of schedules."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.storage.connection import Refused, forbids
from beat.storage.store import pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from beat.storage.store import Store

_PAGE = 500  # keeps the script below 25 ms per page
_BETWEEN = "\x1f"  # '\31' in survey.lua


class Row(NamedTuple):
    """One schedule as survey.lua returns it; missing values are empty."""

    id: str
    kind: str
    """The type of its key: `hash`, `none` if there is no such schedule, or another type."""
    score: str = ""
    locked: str = ""
    """How many ms its lock still lasts."""
    state: str = ""
    due_at: str = ""
    pause_until: str = ""
    queue: str = ""
    consecutive_failures: str = ""
    unannounced_at: str = ""
    source: str = ""
    overlap: str = ""
    overridden: str = ""
    func: str = ""
    """Only for schedules from data."""


def read(store: Store) -> Iterator[list[Row]]:
    """Yield pages of all schedules that the set or the index knows; some may come twice."""
    try:
        for ids in pages(itertools.chain.from_iterable(store.ids()), _PAGE):
            yield page(store, ids)
    except Refused as e:
        if forbids(e):
            raise
        # the set or the index is of another type, which the findings about key types say


def page(store: Store, ids: Sequence[str]) -> list[Row]:
    """Return these schedules, each with its lock and index score as of the same moment."""
    lines: list[bytes] = store.run("survey", [[each] for each in ids])
    return [_row(each, line.decode(errors="replace")) for each, line in zip(ids, lines, strict=True)]


def number(store: Store) -> int:
    """Return how many schedules the set knows."""
    try:
        return int(store.client.scard(store.keys.schedules))
    except Refused as e:
        if forbids(e):
            raise
        return 0


def details(store: Store, ids: Sequence[str], *fields: str) -> dict[str, dict[str, str]]:
    """Return more fields of a few schedules; missing values are empty."""
    found: dict[str, dict[str, str]] = {}
    for some in pages(ids, _PAGE):
        with store.client.pipeline(transaction=False) as pipe:
            for each in some:
                pipe.hmget(store.keys.schedule(each), fields)
            replies: list[Any] = pipe.execute(raise_on_error=False)
        for each, values in zip(some, replies, strict=True):
            told = values if isinstance(values, list) else [None] * len(fields)
            found[each] = {
                name: (value or b"").decode(errors="replace") for name, value in zip(fields, told, strict=True)
            }
    return found


def _row(schedule_id: str, line: str) -> Row:
    parts = line.split(_BETWEEN)
    if len(parts) != len(Row._fields) - 1:  # a value contains the separator
        parts = ["unreadable"]
    return Row(schedule_id, *parts)
