"""Brings the definitions of a beat's code into Redis, where any beat finds them; says what this beat has registered."""

from __future__ import annotations

import hashlib
import itertools
from collections import deque
from typing import TYPE_CHECKING

from beat import overrides
from beat.errors import DeclarationError
from beat.event import Event
from beat.health import Once
from beat.placement import place, standing
from beat.protocol import Registration, Reply, Sight
from beat.registrations import Origin, registration
from beat.replies import misplaced
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from beat.event import Emit
    from beat.protocol import Looked
    from beat.schedule import Schedule
    from beat.state import State
    from beat.store import Store

ANNOUNCED_MS = 30_000
"""How long an announcement lasts unless it is renewed: longer than a beat takes to restart."""
_PAGE = 50  # so small that one fits into the buffer of a socket while Redis works on another: else sending waits for it
_AHEAD = 4
"""How many pages are on their way at least, while there are so many."""
_TRIES = 10


class Sync:
    """The schedules of one beat."""

    def __init__(
        self,
        store: Store,
        schedules: Iterable[Schedule],
        *,
        beat: str,
        emit: Emit,
        app: str = "default",
        functions: Iterable[str] = (),
    ) -> None:
        self.schedules = {schedule.id: schedule for schedule in schedules}
        self.app, self.functions = app, list(functions)
        """Those that may be scheduled from data."""
        revs = [f"{schedule.id} {schedule.rev}" for schedule in self.schedules.values()]
        told = "\n".join(sorted([*revs, *self.functions]))
        self.digest = hashlib.sha256(told.encode()).hexdigest()[:16] if told else ""
        self.older: set[str] = set()
        """The schedules of which a live beat has a newer definition."""
        self._store, self._beat, self._emit = store, beat, emit
        self._once = Once(emit)

    def announce(self) -> None:
        """To be done before registering: what is in Redis is always announced by somebody."""
        revs = {schedule.id: schedule.rev for schedule in self.schedules.values()}
        reply = self._store.announce(revs, self.functions, digest=self.digest, ttl=ANNOUNCED_MS)
        if reply.code != "OK":
            self._once.say("", misplaced(reply))
        else:
            self._once.forget("")

    def register(self, ids: Iterable[str] | None = None, *, reseed: bool = False) -> None:
        """Brings these definitions into Redis, or all; with `reseed`, what is new was lost, and that is said aloud."""
        wanted = [self.schedules[each] for each in (self.schedules if ids is None else ids)]
        new: list[str] = []
        self._now = self._store.time()
        try:
            _in_turn(self._bring(page, new) for page in pages(wanted, _PAGE))
        finally:
            self._store.hang_up()  # whatever happened: nobody may read an answer that was meant for these
        if reseed and new:
            self._emit(Event("reseeded", fields={"count": len(new), "ids": new[:10]}))
        if ids is None and not reseed:
            self._emit(Event("registered", fields={"schedules": len(wanted), "new": len(new)}))

    def _bring(self, page: Sequence[Schedule], new: list[str]) -> Iterator[None]:
        """Until every one has its answer: what changed while we looked at it is looked at again. Stops at questions."""
        for _ in range(_TRIES):
            sights = [Sight(schedule.id, schedule.rev, standing(schedule, self._now)) for schedule in page]
            looked = self._store.looking(sights)
            yield
            found = looked()
            others = _other_ids(page, found)
            olds: dict[str, State | None] = {}
            if others:
                known = self._store.looking([Sight(each) for each in others.values()])
                yield
                olds = dict(zip(others.values(), known().others.values(), strict=True))
            items = self._prepared(page, found, others, olds)
            if not items:
                return
            registered = self._store.registering([item for _, item in items], beat=self._beat)
            yield
            answered = list(zip((schedule for schedule, _ in items), registered(), strict=True))
            for schedule, reply in answered:
                if reply.code != "RETRY":
                    self._tell(schedule, reply)
            new += [schedule.id for schedule, reply in answered if reply.code == "NEW"]
            page = [schedule for schedule, reply in answered if reply.code == "RETRY"]
            if not page:
                return
        for schedule in page:
            self._tell(schedule, Reply("RETRY", "it changes faster than it can be looked at"))

    def _prepared(
        self, page: Sequence[Schedule], looked: Looked, others: Mapping[int, str], olds: Mapping[str, State | None]
    ) -> list[tuple[Schedule, Registration]]:
        """What is to be written of a page."""
        self._now, items = looked.now, []
        if self.older:
            self.older.difference_update(schedule.id for n, schedule in enumerate(page) if n not in looked.others)
        for n, seen in looked.others.items():
            schedule, old = page[n], others.get(n, "")
            before = olds.get(old) if old else seen
            if before is None or before.renamed_to:  # nothing to take over
                before, old = None if seen is None or seen.renamed_to else seen, ""
            ruling, rev = overrides.in_force(schedule, before.override if before else "")
            placed = place(ruling, before, looked.now, rev, anew=bool(old))
            if placed is None:
                self.older.discard(schedule.id)
                continue
            try:
                items.append((schedule, registration(schedule, before, placed, Origin("code", self.app, old))))
            except DeclarationError as e:  # this version of RQ cannot write the job
                self._tell(schedule, Reply("BADARG", str(e)))
        return items

    def _tell(self, schedule: Schedule, reply: Reply) -> None:
        if reply.code == "OLDER":
            if schedule.id not in self.older:
                self._emit(Event("older", schedule.id, {"rev": schedule.rev, "newer": reply.words}))
            self.older.add(schedule.id)
            return
        self.older.discard(schedule.id)
        if reply.code == "TAKEN":
            words = "somebody has added a schedule of this id from data: remove it, or give this one another id"
            self._once.say(schedule.id, Event("refused", schedule.id, {"code": reply.code, "error": words}))
        elif reply.code in {"UPDATED", "MOVED"}:
            self._emit(Event(reply.code.lower(), schedule.id, {"from": reply.words, "rev": schedule.rev}))
        elif reply.code != "NEW":
            self._once.say(schedule.id, Event("refused", schedule.id, {"code": reply.code, "error": reply.words}))


def _other_ids(page: Sequence[Schedule], looked: Looked) -> dict[int, str]:
    """For the schedules of a page that may have been known by another id: where they are looked for."""
    found = {}
    for n, seen in looked.others.items():
        old = (page[n].renamed_from or "") if seen is None else seen.renamed_to
        if old:
            found[n] = old
    return found


def _in_turn(steps: Iterable[Iterator[None]]) -> None:
    """Each goes on when the oldest question is its own. So Redis writes some pages while others are prepared."""
    waiting: deque[Iterator[None]] = deque()

    def go_on(each: Iterator[None]) -> None:
        waiting.extend(each for _ in itertools.islice(each, 1))

    for each in steps:
        go_on(each)
        for _ in range(2):  # a page has two questions
            if len(waiting) > _AHEAD:
                go_on(waiting.popleft())
    while waiting:
        go_on(waiting.popleft())
