"""Register the definitions of a scheduler's code in Redis, so that any scheduler can fire them; announce them, too."""

from __future__ import annotations

import hashlib
import itertools
from collections import deque
from typing import TYPE_CHECKING

from beat.engine.events import Event
from beat.engine.health import Once
from beat.engine.replies import misplaced
from beat.errors import DeclarationError
from beat.policies.definition_diff import plain, summary
from beat.policies.reconcile import foresee, standing
from beat.schedule import serialize
from beat.storage import group_limits, lifetimes
from beat.storage.announcements import Declaration
from beat.storage.messages import Registration, Reply, Sight
from beat.storage.provenance import Known
from beat.storage.registration import Origin, registration
from beat.storage.store import pages

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from beat.config.groups import Group
    from beat.engine.events import Emit
    from beat.policies.reconcile import Prospect
    from beat.schedule.schedule import Schedule
    from beat.storage.messages import Looked
    from beat.storage.store import Store

ANNOUNCED_MS = lifetimes.ANNOUNCED_MS
_PAGE = 50  # fits into the socket buffer while Redis works on another page; otherwise sending blocks
_AHEAD = 4
"""How many pages are in flight, as long as there are as many."""
_TRIES = 10
_GROUPS = "@groups"  # not a valid id of a schedule


class Sync:
    """The schedules that one scheduler declares."""

    def __init__(
        self,
        store: Store,
        schedules: Iterable[Schedule],
        *,
        beat: str,
        emit: Emit,
        app: str = "default",
        functions: Iterable[str] = (),
        signatures: Mapping[str, str] | None = None,
        groups: Iterable[Group] = (),
        host: str = "",
        modules: Container[str] | None = None,
    ) -> None:
        self.schedules = {schedule.id: schedule for schedule in schedules}
        self.groups = list(groups)
        self.app, self.functions = app, list(functions)
        """The functions that may be scheduled from data."""
        self._signatures = signatures or {}
        revs = [f"{schedule.id} {schedule.rev}" for schedule in self.schedules.values()]
        told = "\n".join(sorted([*revs, *self.functions]))
        self.digest = f"{app}.{hashlib.sha256(told.encode()).hexdigest()[:16]}" if revs else ""
        """The digest of what is declared; empty without schedules, even if functions are exposed."""
        self.older: set[str] = set()
        """The schedules for which a live scheduler announces a newer definition."""
        self.refused: set[str] = set()
        """The schedules that could not be registered, or that belong to another owner in Redis."""
        self.known = Known.of(self.schedules.values(), app, host=host, modules=modules)
        """The modules and places whose declarations this scheduler has completely."""
        self._store, self._beat, self._emit, self._host = store, beat, emit, host
        self._taken_over: dict[str, list[str]] = {}
        self._once = Once(emit)

    def announce(self) -> None:
        """Announce all declarations. Call it before `register`, so that every registered definition is announced."""
        declared = {schedule.id: Declaration.of(schedule).write() for schedule in self.schedules.values()}
        exposed = self.functions, self._signatures, self.app
        reply = self._store.announce(declared, *exposed, digest=self.digest, ttl=ANNOUNCED_MS)
        if reply.code != "OK":
            self._once.say("", misplaced(reply))
        else:
            self._once.forget("")

    def register(self, ids: Iterable[str] | None = None, *, reseed: bool = False) -> None:
        """Register these schedules, or all of them.

        With `reseed`, a schedule that is new to Redis had been lost, and that is logged as an error.
        """
        wanted = [self.schedules[each] for each in (self.schedules if ids is None else ids)]
        new: list[str] = []
        if ids is None:
            self._bring_groups(anew=not reseed)
        self._now = self._store.time()
        self._taken_over.clear()
        try:
            _in_turn(self._bring(page, new) for page in pages(wanted, _PAGE))
        finally:
            self._store.hang_up()  # after an error, nothing may read the answers that were meant for these
        for app, taken in self._taken_over.items():
            fields = {"was": app, "app": self.app, "count": len(taken), "ids": taken[:10]}
            self._emit(Event("taken_over", fields=fields))
        if reseed and new:
            self._emit(Event("reseeded", fields={"count": len(new), "ids": new[:10]}))
        if ids is None and not reseed:
            self._emit(Event("registered", fields={"schedules": len(wanted), "new": len(new)}))

    def _bring_groups(self, *, anew: bool) -> None:
        """Write the limits of the groups. Without `anew`, keep those in Redis, which an operator may have set."""
        reply = group_limits.keep(self._store, self.groups, anew=anew)
        if reply.code == "OK":
            self._once.forget(_GROUPS)
        else:
            self._once.say(_GROUPS, misplaced(reply))

    def _bring(self, page: Sequence[Schedule], new: list[str]) -> Iterator[None]:
        """Register a page, and look again at schedules that change meanwhile; give up after `_TRIES`.

        Yields after each message that it sends. The caller resumes it when the answer is the next one to read.
        """
        for _ in range(_TRIES):
            looked = self._store.looking(_sights(page, self._now), app=self.app)
            yield
            items = self._prepared(page, looked())
            if not items:
                return
            registered = self._store.registering([item for _, item in items], beat=self._beat)
            yield
            answered = list(zip((prospect for prospect, _ in items), registered(), strict=True))
            for prospect, reply in answered:
                if reply.code != "RETRY":
                    self._tell(prospect, reply)
            new += [prospect.schedule.id for prospect, reply in answered if reply.code == "NEW"]
            page = [prospect.schedule for prospect, reply in answered if reply.code == "RETRY"]
            if not page:
                return
        for schedule in page:
            self._refuse(schedule.id, Reply("RETRY", "it changes faster than it can be looked at"))

    def _prepared(self, page: Sequence[Schedule], looked: Looked) -> list[tuple[Prospect, Registration]]:
        """Return what must be written for a page; schedules that are up to date are left out."""
        self._now, items = looked.now, []
        for known in (self.older, self.refused):
            known.difference_update(s.id for n, s in enumerate(page) if known and n not in looked.others)
        for n, seen in looked.others.items():
            found = foresee(page[n], seen, looked.now, self.app)
            if found.placed is None:
                self.older.discard(page[n].id)
                self.refused.discard(page[n].id)
                continue
            try:
                origin = Origin("code", self.app, host=self._host)
                items.append((found, registration(page[n], found.before, found.placed, origin)))
            except DeclarationError as e:  # this version of RQ cannot write the job
                self._refuse(page[n].id, Reply("BADARG", str(e)))
        return items

    def _tell(self, found: Prospect, reply: Reply) -> None:
        schedule = found.schedule
        if reply.code == "OLDER":
            if schedule.id not in self.older:
                self._emit(Event("older", schedule.id, {"rev": schedule.rev, "newer": reply.words}))
            self.older.add(schedule.id)
            return
        self.older.discard(schedule.id)
        if reply.code in {"NEW", "BACK", "UPDATED", "MOVED"}:
            self.refused.discard(schedule.id)
            if found.before and found.before.app not in {"", self.app}:
                self._taken_over.setdefault(found.before.app, []).append(schedule.id)
            for event in _news(found, reply):
                self._emit(event)
        elif reply.code in {"SHARED", "OWNED"}:  # `Neighbours` warns where the two differ
            self.refused.add(schedule.id)
        else:
            self._refuse(schedule.id, reply)

    def _refuse(self, schedule_id: str, reply: Reply) -> None:
        self.refused.add(schedule_id)
        words = _TAKEN if reply.code == "TAKEN" else reply.words
        self._once.say(schedule_id, Event("refused", schedule_id, {"code": reply.code, "error": words}))


_TAKEN = "somebody has added a schedule of this id from data: remove it, or give this one another id"


def _news(found: Prospect, reply: Reply) -> Iterator[Event]:
    """Yield the events for a definition that was registered; none if it is new."""
    schedule, before = found.schedule, found.before
    if before is None:
        return
    if before.unannounced_at or before.state == "retired":
        yield Event("returned", schedule.id, {"was": "retired" if before.state == "retired" else "held"})
    if reply.code == "UPDATED":
        yield Event("updated", schedule.id, {"rev": schedule.rev, "changes": _changes(reply.words, found.ruling)})
    elif reply.code == "MOVED":
        tick, _, former = reply.words.partition(" ")
        to = found.placed.next if found.placed else ""
        changes = _changes(former, found.ruling)
        fields = {"from": tick or "none", "to": to or "none", "rev": schedule.rev, "changes": changes}
        yield Event("moved", schedule.id, fields)
    if before.override and found.rev not in {before.rev, schedule.rev}:
        by, rule, code = before.overridden_by or "somebody", str(found.ruling.timing), str(schedule.timing)
        yield Event("overridden", schedule.id, {"by": by, "rule": rule, "code": code})


def _changes(former: str, schedule: Schedule) -> str:
    """Return the differences from the former definition, which is JSON; empty if that is unknown."""
    was = plain(former)
    return summary(was, plain(serialize.write(schedule))) if was else ""


def _sights(page: Sequence[Schedule], now: datetime) -> list[Sight]:
    """Return how each schedule should stand in Redis; those of one kind share the next tick."""
    kinds = {schedule.kind: schedule for schedule in page}
    following = {kind: standing(schedule, now) for kind, schedule in kinds.items()}
    return [Sight(schedule.id, schedule.rev, following[schedule.kind]) for schedule in page]


def _in_turn(steps: Iterable[Iterator[None]]) -> None:
    """Run the steps of all pages, each when its answer is the oldest; Redis writes some while others are prepared."""
    waiting: deque[Iterator[None]] = deque()

    def go_on(each: Iterator[None]) -> None:
        waiting.extend(each for _ in itertools.islice(each, 1))

    for each in steps:
        go_on(each)
        for _ in range(2):  # a page sends two messages
            if len(waiting) > _AHEAD:
                go_on(waiting.popleft())
    while waiting:
        go_on(waiting.popleft())
