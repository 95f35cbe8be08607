"""Brings the definitions of a beat's code into Redis, where any beat finds them; says what this beat has registered."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from beat import definitions, jobs
from beat.errors import DeclarationError
from beat.event import Event
from beat.health import Once
from beat.placement import place
from beat.protocol import Registration, Reply
from beat.replies import misplaced
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from beat.event import Emit
    from beat.placement import Placement
    from beat.schedule import Schedule
    from beat.state import State
    from beat.store import Store

ANNOUNCED_MS = 30_000
"""How long an announcement lasts unless it is renewed: longer than a beat takes to restart."""
_PAGE = 100
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
        counted: Counter[str] = Counter()
        lost: list[str] = []
        for page in pages(wanted, _PAGE):
            for schedule, reply in self._bring(page):
                counted[reply.code] += 1
                self._tell(schedule, reply)
                if reply.code == "NEW":
                    lost.append(schedule.id)
        if reseed and lost:
            self._emit(Event("reseeded", fields={"count": len(lost), "ids": lost[:10]}))
        if ids is None and not reseed:
            self._emit(Event("registered", fields={"schedules": len(wanted), "new": counted["NEW"]}))

    def _bring(self, page: Sequence[Schedule]) -> Iterable[tuple[Schedule, Reply]]:
        """Until every one has its answer: what changed while we looked at it is looked at again."""
        for _ in range(_TRIES):
            now = self._store.time()
            looked = zip(page, self._store.look([schedule.id for schedule in page]), strict=True)
            items = [(s, item) for s, seen in looked if (item := self._prepared(s, seen, now))]
            if not items:
                return
            replies = self._store.register([item for _, item in items], beat=self._beat)
            answered = list(zip((schedule for schedule, _ in items), replies, strict=True))
            yield from (pair for pair in answered if pair[1].code != "RETRY")
            page = [schedule for schedule, reply in answered if reply.code == "RETRY"]
        yield from ((schedule, Reply("RETRY", "it changes faster than it can be looked at")) for schedule in page)

    def _prepared(self, schedule: Schedule, seen: State | None, now: datetime) -> Registration | None:
        placed = place(schedule, seen, now)
        if placed is None:
            self.older.discard(schedule.id)
            return None
        try:
            return _registration(schedule, seen, placed)
        except DeclarationError as e:  # this version of RQ cannot write the job
            self._tell(schedule, Reply("BADARG", str(e)))
            return None

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
