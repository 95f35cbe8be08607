"""What becomes of ticks that wait, who may come in and who passes by; `fire` has the last word about the room."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat import clock, dependencies, policies, prepare, verdicts
from beat.errors import DeclarationError
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
    known, free, stand = dict(facts), _room(slot, pages), 0
    for place, words in enumerate(slot.waiting):
        arrival = Arrival.read(words)
        page = pages[arrival.id]
        if page.schedule is None:
            continue
        mine = known.get(arrival.id, NONE)
        has_room, is_newest = free is None or free > 0, place == len(slot.waiting) - 1
        reason, why = _unwanted(page.schedule, arrival, mine) if arrival.after and not slot.is_group else ("", "")
        if arrival.after and not has_room and not slot.is_group:
            reason = reason or _outdone(page.schedule, stand, is_newest=is_newest)
        if reason:
            passed = verdicts.passing(page.rev, page.schedule, *arrival[1:3], keys, after=arrival.after, reason=reason)
            expects = dependencies.expected(page.schedule, clock.read(arrival.tick), mine) if why else ""
            yield passed._replace(why=why, expects=expects)
        elif has_room:
            found = verdicts.admitted(page.rev, page.schedule, *arrival[1:3], keys, after=arrival.after, facts=mine)
            item, known[arrival.id] = found
            needs = item.queue.count("\n") + 1 if slot.is_group else 1
            # Who comes behind a tick that waits for more room would take it away from that one, again and again.
            free = free and max(0, free - needs)
            yield item
        else:
            stand += 1


def _room(slot: Slot, pages: Mapping[str, Page]) -> int | None:
    """How many may come in; None where nobody counts."""
    if slot.is_group:
        try:
            return Group.read(slot.id[1:], slot.rev).max_running - len(slot.running) + slot.ended
        except DeclarationError:  # `fire` says so
            return 1
    schedule = pages[slot.id].schedule
    room = policies.slot(schedule) if schedule and slot.state in {"active", "finished"} else None
    if not schedule or not room:
        return None
    return max(0, room.running - len(slot.running) - slot.hall * policies.jobs(schedule) + slot.ended)


def _unwanted(schedule: Schedule, arrival: Arrival, facts: Facts) -> tuple[str, str]:
    """Why a tick that follows a success does not fire, whatever room there is: a reason, and words."""
    tick = clock.read(arrival.tick)
    if policies.is_excluded(schedule, tick):
        return prepare.EXCLUDED, ""
    why = dependencies.unmet(schedule, tick, facts)
    return (dependencies.DEPENDENCY, why) if why else ("", "")


def _outdone(schedule: Schedule, stand: int, *, is_newest: bool) -> str:
    """Why a tick that follows a success may not wait either, with so many before it; nothing if it may."""
    if schedule.overlap == "replace":
        return "" if is_newest else "replaced"
    room = policies.slot(schedule)
    return "overlap" if room and stand >= room.waiting else ""
