"""What becomes of ticks that wait: who may come in, and who passes by. Pure; `fire` has the last word about the room."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat import clock, dependencies, policies, prepare, verdicts
from beat.facts import NONE
from beat.groups import Group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beat.book import Page
    from beat.facts import Facts
    from beat.keys import Keys
    from beat.protocol import Item, Slot
    from beat.schedule import Schedule


class Arrival(NamedTuple):
    """A tick that waits."""

    id: str
    tick: str
    by: str
    after: str = ""
    """The job whose success it follows."""

    @classmethod
    def read(cls, words: str) -> Arrival:
        """As it stands in line."""
        return cls(*words.split(" "))


def decided(slot: Slot, pages: Mapping[str, Page], facts: Mapping[str, Facts], keys: Keys) -> Iterator[Item]:
    """The items of those who wait for a slot, the first who came first."""
    known = dict(facts)
    free = _room(slot, pages)
    for words in slot.waiting:
        arrival = Arrival.read(words)
        page = pages[arrival.id]
        if page.schedule is None:
            continue
        reason, why = _passes(page.schedule, arrival, slot, free, known.get(arrival.id, NONE))
        if reason:
            yield verdicts.passing(page.rev, page.schedule, *arrival[1:3], keys, after=arrival.after, reason=reason, why=why)
        elif free is None or free > 0:
            named = {"after": arrival.after, "facts": known.get(arrival.id, NONE)}
            item, known[arrival.id] = verdicts.admitted(page.rev, page.schedule, *arrival[1:3], keys, **named)
            free = None if free is None else free - 1
            yield item


def _room(slot: Slot, pages: Mapping[str, Page]) -> int | None:
    """How many may come in; None where nobody counts."""
    if slot.is_group:
        group = Group.read(slot.id[1:], slot.rev)
        return group.max_running - len(slot.running) + slot.ended if group else None
    schedule = pages[slot.id].schedule
    room = policies.slot(schedule) if schedule and slot.state in {"active", "finished"} else None
    return room.running - len(slot.running) - slot.hall + slot.ended if room else None
