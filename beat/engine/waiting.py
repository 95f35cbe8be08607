"""Process the ticks that wait for a slot of their schedule or group, and the ticks that follow a success.

Runs that have ended are closed, so that waiting ticks get their slots. A run that a newer tick replaces is taken out
of its queue, or stopped in its worker. `fire` checks the capacity again, and admits each tick once. All state is in
Redis, so another scheduler continues if this one dies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat.config.groups import Group
from beat.engine import fire_items
from beat.engine.events import Event
from beat.engine.fact_reader import Inquiry
from beat.engine.health import Once
from beat.engine.obstacles import REJECTIONS, Obstacles, rejection
from beat.errors import DeclarationError
from beat.jobs import job_template
from beat.policies import decide, dependencies, jitter_and_capacity
from beat.policies.facts import NONE
from beat.storage.messages import Claim
from beat.storage.slots import Slots
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from beat.engine.definition_cache import Book, Page
    from beat.engine.events import Emit
    from beat.engine.run_tracker import Watcher
    from beat.policies.facts import Facts
    from beat.schedule.schedule import Schedule
    from beat.storage.keys import Keys
    from beat.storage.messages import Decided, Item, Slot
    from beat.storage.store import Store


class Arrival(NamedTuple):
    """A tick on a waiting list."""

    id: str
    tick: str
    by: str
    after: str = ""
    """The job whose success the tick follows; empty if it follows none."""

    @classmethod
    def read(cls, words: str) -> Arrival:
        """Parse a member of a waiting list."""
        return cls(*words.split(" "))


def decided(slot: Slot, pages: Mapping[str, Page], facts: Mapping[str, Facts], keys: Keys) -> Iterator[Item]:
    """Yield the items that admit or skip ticks on the waiting list of a slot, the oldest first.

    A tick without an item goes on waiting.
    """
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
            passed = fire_items.passing(
                page.rev, page.schedule, *arrival[1:3], keys, after=arrival.after, reason=reason
            )
            expects = dependencies.expected(page.schedule, clock.read(arrival.tick), mine) if why else ""
            yield passed._replace(why=why, expects=expects)
        elif has_room:
            found = fire_items.admitted(page.rev, page.schedule, *arrival[1:3], keys, after=arrival.after, facts=mine)
            item, known[arrival.id] = found
            needs = item.queue.count("\n") + 1 if slot.is_group else 1
            # If a broadcast needs more than is free, ticks behind it must not take that, or it never gets enough.
            free = free and max(0, free - needs)
            yield item
        else:
            stand += 1


def _room(slot: Slot, pages: Mapping[str, Page]) -> int | None:
    """Return the free capacity of the slot; None if it is unlimited."""
    if slot.is_group:
        try:
            return Group.read(slot.id[1:], slot.rev).max_running - len(slot.running) + slot.ended
        except DeclarationError:  # `fire` rejects the tick, and the rejection is logged
            return 1
    schedule = pages[slot.id].schedule
    room = jitter_and_capacity.slot(schedule) if schedule and slot.state in {"active", "finished"} else None
    if not schedule or not room:
        return None
    return max(0, room.running - len(slot.running) - slot.hall * jitter_and_capacity.jobs(schedule) + slot.ended)


def _unwanted(schedule: Schedule, arrival: Arrival, facts: Facts) -> tuple[str, str]:
    """Return why a tick that follows a success is skipped whatever the capacity: a reason and its explanation."""
    tick = clock.read(arrival.tick)
    if jitter_and_capacity.is_excluded(schedule, tick):
        return decide.EXCLUDED, ""
    why = dependencies.unmet(schedule, tick, facts)
    return (dependencies.DEPENDENCY, why) if why else ("", "")


def _outdone(schedule: Schedule, stand: int, *, is_newest: bool) -> str:
    """Return why a tick that follows a success may not wait behind `stand` others; an empty string if it may."""
    if schedule.overlap == "replace":
        return "" if is_newest else "replaced"
    room = jitter_and_capacity.slot(schedule)
    return "overlap" if room and stand >= room.waiting else ""


INTERVAL_MS = 900
"""How soon a slot is processed again if no run ends before that."""
_PAGE = 50


class Attendant:
    """The processing of waiting ticks in one thread."""

    def __init__(
        self,
        store: Store,
        book: Book,
        watcher: Watcher,
        *,
        token: str,
        emit: Emit,
        obstacles: Obstacles | None = None,
    ) -> None:
        self._store, self._slots, self._book, self._watcher = store, Slots(store), book, watcher
        self._token, self._emit, self._once = token, emit, Once(emit)
        self._obstacles = obstacles or Obstacles(emit)
        self._inquiry = Inquiry(store)

    def clear(self, ended: int) -> None:
        """Close this many runs that have ended, and admit the ticks that wait for their slots."""
        self._watcher.look(ended)
        self.turn(1)

    def turn(self, most: int = 10) -> None:
        """Process the slots that are due, at most this many pages; the others wait for the next call."""
        for _ in range(most):
            looked, slots = self._slots.attend(limit=_PAGE, interval=INTERVAL_MS)
            if self._slots.pending:
                self._hand_on()
            elif not looked:
                return
            if not slots:
                continue
            self._watcher.look(sum(slot.ended for slot in slots))
            pages = self._read(slots)
            now_ms = clock.to_ms(self._store.time())
            facts = self._inquiry.about([page.schedule for page in pages.values() if page.schedule], now_ms)
            items: list[Item] = []
            for slot in slots:
                own = pages.get(slot.id)
                if own and own.schedule and slot.state in {"active", "finished"} and own.schedule.overlap == "replace":
                    self._slots.withdraw(slot.id, slot.running, tick=Arrival.read(slot.waiting[-1]).tick)
                items += decided(slot, pages, facts, self._store.keys)
            for page in (items[n : n + _PAGE] for n in range(0, len(items), _PAGE)):
                self._tell(page, self._store.fire(page, token=self._token), pages)

    def _hand_on(self) -> None:
        """Give the next followers of successes their ticks, and log the successes that were dropped."""
        reply = self._slots.follow(token=self._token)
        if reply.code != "OK":
            self._once.say("", Event("unfollowed", fields={"error": f"{reply.words}; rename it, or delete it"}))
        for schedule_id, why in reply.dropped:
            self._emit(Event("unfollowed", schedule_id, {"error": why}))

    def _read(self, slots: Sequence[Slot]) -> Mapping[str, Page]:
        """Return the definitions of all schedules with waiting ticks, by id.

        A tick whose definition cannot be read is logged, and moved off the waiting list of its group.
        """
        claims = {claim.id: claim for slot in slots for claim in _waiting(slot)}
        found = dict(zip(claims, self._book.find(list(claims.values())), strict=True))
        for each, page in found.items():
            if page.schedule is None:
                self._once.say(each, Event("broken", each, {"code": "BADSTATE", "error": page.problem}))
        for slot in slots:
            unread = [words for words in slot.waiting if found[words.partition(" ")[0]].schedule is None]
            if slot.is_group and unread:
                self._slots.step_aside(slot.id, unread)
        return found

    def _tell(self, items: Iterable[Item], decided: Decided, pages: Mapping[str, Page]) -> None:
        for item, reply in zip(items, decided.replies, strict=True):
            schedule = pages[item.id].schedule
            if reply.code == "OK":
                self._obstacles.accepted(item.id, [item.due])
                queues = job_template.queue_names(item.queue)
                fields = {
                    "tick": item.tick,
                    "job_id": item.job,
                    "job_name": schedule.func if schedule else "",
                    "priority": schedule.priority if schedule else "",
                    "queue": ", ".join(queues),
                    "queues": queues,
                }
                if item.last:
                    self._emit(Event("followed", item.id, fields | {"after": item.last}))
                else:
                    self._emit(Event("admitted", item.id, fields))
            elif reply.code == "SKIPPED":
                passed = {"tick": item.tick, "count": 1, "reason": reply.words, "next_run": "", "why": item.why}
                self._emit(Event("skipped", item.id, passed))
            elif reply.code in REJECTIONS:
                self._obstacles.rejected(
                    rejection(item.id, reply, schedule.func if schedule else "", item), decided.now
                )


def _waiting(slot: Slot) -> Iterator[Claim]:
    """Yield a claim for each waiting tick; the cache finds the definitions by these."""
    if not slot.is_group:
        yield Claim(slot.id, slot.rev, "", 0, "")
        return
    for words, rev in zip(slot.waiting, slot.revs, strict=True):
        yield Claim(words.partition(" ")[0], rev, "", 0, "")
