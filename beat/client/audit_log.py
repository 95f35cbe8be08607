"""Read the audit log: actions in the newest events of the event stream, and the pauses and overrides in force."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.history import ledger
from beat.history.history import Action, Change, Fired, assemble
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.storage.store import Store

MOST = 3000
"""How many events are read, and how many entries are returned, at most."""
_PAGE = 500
_TYPES = frozenset(each.encode() for each in (*ledger.CHANGES, *ledger.ACTIONS, "removed"))
_ASKED = {f'"by":"{each}"'.encode(): each for each in ledger.ASKED}


@dataclass(frozen=True)
class Deed:
    """One action: an operator's, or a scheduler's with new code."""

    at: datetime
    by: str
    type: str
    """One of the ledger's CHANGES or ACTIONS, `removed`, or for a requested run `manual` or `backfill`."""
    schedule_id: str
    written: bytes = field(default=b"", repr=False)
    """The line of the ledger."""

    @functools.cached_property
    def line(self) -> Action | Change | Fired | None:
        """Return the action as a history line; None if the history has no line for it."""
        entry = ledger.read(self.written)
        lines = assemble(self.schedule_id, [entry]) if entry else []
        return next((each for each in lines if isinstance(each, Action | Change | Fired)), None)


class Deeds(NamedTuple):
    """The audit log, newest first."""

    deeds: tuple[Deed, ...]
    since: datetime | None
    """The time of the oldest event that was read; None if there was none."""
    whole: bool
    """Whether the event stream has no older events."""
    people: tuple[str, ...] = ()
    """All operators and schedulers in the log, sorted by name."""


def events(store: Store, most: int, page: int = _PAGE) -> Iterator[tuple[str, Mapping[bytes, bytes]]]:
    """Yield the newest events of the stream, newest first, about `most`; none if the key is not a stream."""
    client: Any = store.client
    end = "+"
    for _ in range(0, most, page):
        with client.pipeline(transaction=False) as pipe:
            pipe.xrevrange(store.keys.events, end, "-", count=page)
            [found] = pipe.execute(raise_on_error=False)
        if isinstance(found, Exception):
            if "WRONGTYPE" in str(found):
                return
            raise found
        for event_id, fields in found:
            yield event_id.decode(errors="replace"), fields
        if len(found) < page:
            return
        end = f"({found[-1][0].decode(errors='replace')}"


def read(store: Store) -> Deeds:
    """Read the actions among the newest events."""
    looked = list(events(store, MOST))
    found = tuple(deed for event_id, fields in looked if (deed := _deed(event_id, fields)))
    return Deeds(found, _at(looked[-1][0]) if looked else None, len(looked) < MOST)


def in_force(known: Standing) -> Iterator[Deed]:
    """Yield the actions that set the current pause and override, from the hash of the schedule."""
    pause, over, each = known.pause, known.override, known.schedule_id
    if pause and pause.at:
        told = ledger.Acted("paused", pause.at, pause.by, pause.reason, pause.until)
        yield Deed(pause.at, pause.by, "paused", each, json.dumps({**ledger.plain(told), "type": "paused"}).encode())
    if over and over.at:
        yield Deed(over.at, over.by, "rescheduled", each)


def _deed(event_id: str, fields: Mapping[bytes, bytes]) -> Deed | None:
    kind, written = fields.get(b"type", b""), fields.get(b"entry", b"")
    asked = next((word for mark, word in _ASKED.items() if mark in written), "") if kind == b"enqueued" else ""
    if kind not in _TYPES and not asked:
        return None
    schedule_id = fields.get(b"schedule", b"").decode(errors="replace")
    by = _beat_of(written) if asked else fields.get(b"by", b"").decode(errors="replace")
    return Deed(_at(event_id), by, asked or kind.decode(), schedule_id, written)


def _beat_of(written: bytes) -> str:
    """Return the name in a decision's ledger line; empty if it has none."""
    try:
        found = json.loads(written)["beat"]
    except (ValueError, KeyError, TypeError, RecursionError):  # not written by beat
        return ""
    return found if isinstance(found, str) else ""


def _at(event_id: str) -> datetime:
    """Return when the event was added, by Redis' clock."""
    try:
        return clock.from_ms(int(event_id.partition("-")[0]))
    except OverflowError:  # the id of the event lies beyond the calendar
        return clock.EPOCH
