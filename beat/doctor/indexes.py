"""Compare the indexes with the schedules: `due` by time, and a set for each state that is not active.

A live scheduler rebuilds the indexes from the hashes. Every disagreement is checked a second time, because a scheduler
may have been changing that schedule.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from beat.doctor import schedule_rows
from beat.doctor.facts import Index
from beat.storage import lifetimes
from beat.storage.store import pages
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from beat.doctor.schedule_rows import Row
    from beat.storage.store import Store

STATES = ("paused", "disabled", "finished", "retired", "broken")
LISTED = (*STATES, "failing", "overridden")
"""The kinds of schedules for which there is a set."""
_PAGE = 500


def kinds(row: Row) -> Iterator[str]:
    """Yield the kinds of a schedule: its state unless active, and failing, overridden or unannounced."""
    if row.state in STATES:
        yield row.state
    elif row.state != "active":
        yield "unknown"
    if row.consecutive_failures not in {"", "0"}:
        yield "failing"
    if row.overridden:
        yield "overridden"
    if row.unannounced_at and row.state == "active":
        yield "unannounced"


def disagrees(row: Row, now_ms: int) -> str:
    """Return how a schedule's entry in `due` is wrong, as a field of `Index`, or an empty string if it is right."""
    if row.kind == "none":
        return "no_hash"
    due = ms(row.pause_until if row.state == "paused" else row.due_at)
    is_waiting = row.state == "active" or (row.state == "paused" and due is not None)
    if row.kind != "hash" or row.locked or (is_waiting and due is None):
        return ""  # a scheduler is changing it, or it is broken, which another finding says
    if not is_waiting:
        return "not_active" if row.score else ""
    if not row.score:
        return "no_entry"
    is_hidden = due is not None and due <= float(row.score) <= now_ms + lifetimes.HIDDEN_MS
    return "" if is_hidden or float(row.score) == due else "elsewhere"


def look(store: Store, looked: int, suspects: Sequence[str], found: Mapping[str, Sequence[str]]) -> Index:
    """Check the suspects of `due` a second time, and compare each set with the ids that were found for it."""
    wrong: dict[str, set[str]] = defaultdict(set)
    for ids in pages(suspects, _PAGE):
        now_ms = clock.to_ms(store.time())
        for row in schedule_rows.page(store, ids):
            if kind := disagrees(row, now_ms):
                wrong[kind].add(row.id)
    for name in LISTED:
        doubtful = _members(store, name) ^ set(found.get(name, ()))
        for ids in pages(sorted(doubtful), _PAGE):
            members = _are_members(store, name, ids)
            pairs = zip(schedule_rows.page(store, ids), members, strict=True)
            wrong["unlisted"].update(row.id for row, is_in in pairs if not row.locked and is_in != (name in kinds(row)))
    return Index(looked=looked, **{kind: tuple(sorted(ids)) for kind, ids in wrong.items()})


def _members(store: Store, name: str) -> set[str]:
    client: Any = store.client
    if client.type(store.keys.index(name)) != b"set":
        return set()
    return {each.decode(errors="replace") for each in client.sscan_iter(store.keys.index(name), count=_PAGE)}


def _are_members(store: Store, name: str, ids: Sequence[str]) -> list[bool]:
    client: Any = store.client
    if client.type(store.keys.index(name)) != b"set":
        return [False] * len(ids)
    return [each == 1 for each in client.smismember(store.keys.index(name), list(ids))]


def ms(written: str) -> int | None:
    """Return the instant in ms, or None if the text is not an instant."""
    found = clock.found(written)
    return None if found is None else clock.to_ms(found)
