"""Brings the definitions of a beat's code into Redis, where any beat finds them; says what this beat has registered."""

from __future__ import annotations

import hashlib
import itertools
from collections import deque
from typing import TYPE_CHECKING

from beat import definitions, durations, jobs
from beat.errors import DeclarationError
from beat.event import Event
from beat.health import Once
from beat.placement import place, standing
from beat.protocol import Registration, Reply, Sight
from beat.replies import misplaced
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from beat.event import Emit
    from beat.placement import Placement
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

    def __init__(self, store: Store, schedules: Iterable[Schedule], *, beat: str, emit: Emit) -> None:
        self.schedules = {schedule.id: schedule for schedule in schedules}
        revs = "\n".join(sorted(f"{schedule.id} {schedule.rev}" for schedule in self.schedules.values()))
        self.digest = hashlib.sha256(revs.encode()).hexdigest()[:16] if revs else ""
        self.older: set[str] = set()
        """The schedules of which a live beat has a newer definition."""
        self._store, self._beat, self._emit = store, beat, emit
        self._once = Once(emit)

    def announce(self) -> None:
        """To be done before registering: what is in Redis is always announced by somebody."""
        revs = {schedule.id: schedule.rev for schedule in self.schedules.values()}
        reply = self._store.announce(revs, digest=self.digest, ttl=ANNOUNCED_MS)
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
            items = self._prepared(page, looked())
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

    def _prepared(self, page: Sequence[Schedule], looked: Looked) -> list[tuple[Schedule, Registration]]:
        """What is to be written of a page."""
        self._now, items = looked.now, []
        if self.older:
            self.older.difference_update(schedule.id for n, schedule in enumerate(page) if n not in looked.others)
        for n, seen in looked.others.items():
            schedule, placed = page[n], place(page[n], seen, looked.now)
            if placed is None:
                self.older.discard(schedule.id)
                continue
            try:
                items.append((schedule, _registration(schedule, seen, placed)))
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
        if reply.code in {"UPDATED", "MOVED"}:
            self._emit(Event(reply.code.lower(), schedule.id, {"from": reply.words, "rev": schedule.rev}))
        elif reply.code != "NEW":
            self._once.say(schedule.id, Event("refused", schedule.id, {"code": reply.code, "error": reply.words}))


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


def _registration(schedule: Schedule, seen: State | None, placed: Placement) -> Registration:
    rule = definitions.rule(schedule)
    fields: dict[str, str] = {
        "func": schedule.func,
        **{name: rule[name] for name in ("cron", "every") if name in rule},
        "tz": str(schedule.tz),
        "queue": schedule.queue,
        "priority": schedule.priority,
        "description": schedule.description,
        "source": "code",
        **_policies(schedule),
        "timing_rev": schedule.timing_rev,
        **{name: str(seconds) for name, seconds in jobs.own_ttls(schedule).items()},
        "definition": definitions.write(schedule),
    }
    return Registration(
        id=schedule.id,
        rev=schedule.rev,
        seen_rev=seen.rev if seen else "",
        seen_next=seen.next_run if seen else "",
        seen_state=seen.state if seen else "",
        state=placed.state,
        next=placed.next,
        next_due=placed.next_due,
        rule=definitions.ticks(schedule),
        fields=fields,
        template=jobs.template(schedule),
    )


def _policies(schedule: Schedule) -> dict[str, str]:
    """Those that are worth a line for who looks with redis-cli; the definition has all of them."""
    shown = {
        "misfire": schedule.misfire if schedule.misfire != "once" else "",
        "overlap": schedule.overlap if schedule.overlap != "allow" else "",
        "max_runs": str(schedule.max_runs or ""),
        "exclude": ", ".join(schedule.exclude),
        "jitter": durations.short(schedule.jitter) if schedule.jitter else "",
    }
    return {name: value for name, value in shown.items() if value}
