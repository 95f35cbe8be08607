"""Who did what to schedules: read from the newest events of the outbox, and from what is in force."""

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
"""Events that are looked through, and deeds that are told."""
_PAGE = 500
_TYPES = frozenset(each.encode() for each in (*ledger.CHANGES, *ledger.ACTIONS, "removed"))
_ASKED = {f'"by":"{each}"'.encode(): each for each in ledger.ASKED}


@dataclass(frozen=True)
class Deed:
    """One thing that somebody did to a schedule, or a beat with new code."""

    at: datetime
    by: str
    type: str
    """One of the ledger's CHANGES or ACTIONS, `removed`, or `manual` and `backfill` of runs."""
    schedule_id: str
    written: bytes = field(default=b"", repr=False)
    """The line of the ledger."""

    @functools.cached_property
    def line(self) -> Action | Change | Fired | None:
        """As a history has it; None of what has no line there."""
        entry = ledger.read(self.written)
        lines = assemble(self.schedule_id, [entry]) if entry else []
        return next((each for each in lines if isinstance(each, Action | Change | Fired)), None)


class Deeds(NamedTuple):
    """What was done, newest first."""

    deeds: tuple[Deed, ...]
    since: datetime | None
    """How far back the events were looked through; None if there is none."""
    whole: bool
    """Whether the outbox has no older ones."""
    people: tuple[str, ...] = ()
    """All who did something, by name."""


def events(store: Store, most: int, page: int = _PAGE) -> Iterator[tuple[str, Mapping[bytes, bytes]]]:
    """The newest events of the outbox, newest first, at most so many; nothing where that is no stream."""
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
    """Those of the newest events."""
    looked = list(events(store, MOST))
    found = tuple(deed for event_id, fields in looked if (deed := _deed(event_id, fields)))
    return Deeds(found, _at(looked[-1][0]) if looked else None, len(looked) < MOST)


def in_force(known: Standing) -> Iterator[Deed]:
    """The pause and the rule of an operator that hold now, as its hash tells of them."""
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
    """Who gave a verdict, as its line says."""
    try:
        found = json.loads(written)["beat"]
    except (ValueError, KeyError, TypeError, RecursionError):  # somebody else wrote it
        return ""
    return found if isinstance(found, str) else ""


def _at(event_id: str) -> datetime:
    """By Redis' clock."""
    try:
        return clock.from_ms(int(event_id.partition("-")[0]))
    except OverflowError:  # somebody has written an event of a far future
        return clock.EPOCH
