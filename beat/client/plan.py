"""Compare the schedules of the code with Redis, page by page, to plan a deploy. Nothing is written.

`policies.reconcile` decides how each schedule continues, as it does when a scheduler registers the schedule.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from beat.client.connected import Connected
from beat.config.sources import UNNAMED
from beat.errors import BadInstant, DeclarationError
from beat.policies.definition_diff import Difference, differences, plain
from beat.policies.reconcile import KEEP, foresee, standing
from beat.schedule import serialize
from beat.schedule.registry import Registry
from beat.storage import provenance
from beat.storage.messages import Sight
from beat.storage.provenance import Known
from beat.storage.store import pages
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence
    from datetime import datetime, timedelta

    from beat.policies.reconcile import Prospect
    from beat.schedule.schedule import Schedule
    from beat.schedule.state import State


__all__ = ["KINDS", "Difference", "Kept", "OtherId", "Overridden", "Plan", "Step", "removed", "step"]

Kind = Literal[
    "added",  # it is new to Redis
    "changed",  # its definition is replaced
    "returning",  # it was on hold or retired, and continues
    "overridden",  # an operator's rule is in force and stays in force
    "taken",  # it is refused, because another live application declares the id, or it comes from data
    "removed",  # the code no longer declares it, so it is on hold and later retired
]
KINDS: tuple[Kind, ...] = get_args(Kind)
_TICKS = 3


class Kept(NamedTuple):
    """The definitions of a schedule in Redis, as JSON."""

    definition: str = ""
    """The definition in force."""
    declared: str = ""
    """The definition in the code, which differs if an operator has overridden the rule."""
    overridden_at: datetime | None = None


class Overridden(NamedTuple):
    """An operator's rule, and the rule of the code that it overrides."""

    by: str
    at: datetime | None
    rule: str
    code: str
    ticks: tuple[datetime, ...]
    """When the rule of the code would tick next."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a deploy would do to one schedule."""

    schedule_id: str
    kind: Kind
    changes: bool = True
    """Whether the step changes anything; an override that stays in force is listed, but changes nothing."""
    when: str
    """The rule in words: the new one, or for a removed schedule the present one."""
    tz: str
    declared: str = ""
    """Where the code declares it."""
    func: str = ""
    """The function that it calls; for a removed schedule, as Redis has it."""
    state: str = ""
    """The present state; empty for a new schedule."""
    differences: tuple[Difference, ...] = ()
    before: tuple[datetime, ...] = ()
    """The next ticks before the deploy, at most three."""
    after: tuple[datetime, ...] = ()
    """The next ticks after the deploy, at most three."""
    follows: str = ""
    """The schedule that it follows after the deploy, if it has no times of its own."""
    overridden: Overridden | None = None
    owner: str = ""
    """For a taken schedule, the live application that keeps the id; empty if the schedule comes from data."""
    place: str = ""
    """The directory and the host where a scheduler must run to remove it, if the application has no name."""
    held_since: datetime | None = None
    retire_after: timedelta | None = None
    """For a removed schedule, how long it is on hold before it is retired."""


class OtherId(NamedTuple):
    """A schedule that probably has a new id; its state and its history stay with the old id."""

    func: str
    old: str
    new: str


@dataclass(frozen=True)
class Plan:
    """What a deploy of an application would do, by kind, and within a kind in the order of the code."""

    app: str
    steps: tuple[Step, ...]
    same: int
    """How many schedules in Redis already equal those of the code."""

    @property
    def changes(self) -> bool:
        """Return whether the deploy would change anything."""
        return any(each.changes for each in self.steps)

    def of(self, kind: Kind) -> tuple[Step, ...]:
        """Return the steps of one kind."""
        return tuple(each for each in self.steps if each.kind == kind)

    def other_ids(self) -> tuple[OtherId, ...]:
        """Pair each removed schedule with the added one that calls the same function, if each is the only one."""
        gone, new = (_only_caller(self.of(kind)) for kind in ("removed", "added"))
        return tuple(OtherId(func, gone[func], new[func]) for func in sorted(gone.keys() & new.keys()))


def _only_caller(steps: Iterable[Step]) -> dict[str, str]:
    """Return the id for each function that exactly one of the steps calls."""
    callers: dict[str, list[str]] = {}
    for each in steps:
        callers.setdefault(each.func, []).append(each.schedule_id)
    return {func: ids[0] for func, ids in callers.items() if func and len(ids) == 1}


def step(found: Prospect, kept: Kept, now: datetime, app: str, owner: str = "") -> Step | None:
    """Return the step for a schedule of the code, or None if there is nothing to report.

    `owner` is another live application that declares the same id; its declaration stays in force.
    """
    before, schedule = found.before, found.schedule
    if owner and before and before.rev == found.rev:
        return None
    if found.placed is None and not (before and before.override):
        return None
    was = _read(kept.definition) if before else None
    return Step(
        schedule_id=schedule.id,
        kind="taken" if owner else _kind(found),
        owner=owner,
        changes=found.placed is not None,
        when=found.ruling.describe(),
        tz=str(found.ruling.tz),
        declared=str(schedule.declared or ""),
        func=schedule.func,
        state=before.state if before else "",
        differences=tuple(_differences(found, kept, app)) if before else (),
        before=_coming(was, before.next) if before and before.state == "active" else (),
        after=_coming(found.ruling, _first(found, now)),
        follows=found.ruling.follows or "",
        overridden=_overridden(found, kept, now) if before and before.override else None,
        held_since=clock.found(before.unannounced_at) if before else None,
    )


def removed(schedule_id: str, state: State, kept: Kept, retire_after: timedelta, place: str = "") -> Step:
    """Return the step for a schedule that the code no longer declares."""
    was = _read(kept.definition)
    return Step(
        schedule_id=schedule_id,
        kind="removed",
        when=was.describe() if was else "its rule cannot be read",
        tz=str(was.tz) if was else "UTC",
        declared=str(plain(kept.declared).get("declared", "")),
        func=was.func if was else "",
        state=state.state,
        before=_coming(was, state.next) if state.state == "active" else (),
        held_since=clock.found(state.unannounced_at),
        retire_after=retire_after,
        place=place,
    )


def _kind(found: Prospect) -> Kind:
    before = found.before
    if before is None:
        return "added"
    if before.source == "api":
        return "taken"
    if before.unannounced_at or before.state == "retired":
        return "returning"
    return "overridden" if before.override else "changed"


def _differences(found: Prospect, kept: Kept, app: str) -> Iterator[Difference]:
    """Yield the differences between Redis and the code, option by option."""
    before, schedule, placed = found.before, found.schedule, found.placed
    if before is None or placed is None or before.source == "api":
        return
    told = differences(plain(kept.declared), plain(serialize.write(schedule)))
    yield from told
    if before.app and before.app != app:
        yield Difference("application", before.app, app)
    if not told and before.rev != found.rev:
        yield Difference("definition", before.rev, found.rev)
    if before.state not in {placed.state, "retired"} and not any(each.option == "enabled" for each in told):
        yield Difference("state", before.state, placed.state)


def _first(found: Prospect, now: datetime) -> datetime | None:
    """Return the next tick after the deploy; a tick that is due already is not moved (see the register script)."""
    before, placed = found.before, found.placed
    if placed is None or placed.state not in {"active", "finished"}:
        return before.next if placed is None and before and before.state == "active" else None
    if before and before.state == "active" and before.next and before.next <= now:
        return before.next
    if placed.state == "finished":
        return None
    return before.next if placed.next == KEEP and before else clock.found(placed.next)


def _overridden(found: Prospect, kept: Kept, now: datetime) -> Overridden:
    by, schedule = found.before.overridden_by if found.before else "", found.schedule
    ticks = _coming(schedule, schedule.after(now)) if schedule.enabled else ()
    return Overridden(by, kept.overridden_at, _rule(found.ruling), _rule(schedule), ticks)


def _rule(schedule: Schedule) -> str:
    zone = "" if str(schedule.tz) == "UTC" else f" {schedule.tz}"
    return f"{schedule.timing}{zone}"


def _coming(schedule: Schedule | None, first: datetime | None) -> tuple[datetime, ...]:
    """Return `first` and the ticks after it, at most three."""
    if schedule is None or first is None:
        return ()
    try:
        return (first, *itertools.islice(_after(schedule, first), _TICKS - 1))
    except BadInstant:  # beyond the calendar
        return (first,)


def _after(schedule: Schedule, tick: datetime) -> Iterator[datetime]:
    following = schedule.after(tick)
    while following:
        yield following
        following = schedule.after(following)


def _read(definition: str) -> Schedule | None:
    try:
        return serialize.read(definition)
    except DeclarationError:
        return None


class Comparing(Connected):
    """A client that compares the code with Redis."""

    def plan(self, schedules: Registry | Iterable[Schedule]) -> Plan:
        """Compare the schedules of the whole code with those that Redis knows of its application.

        A schedule counts as removed only if this code includes its module. A registry knows which modules it has
        loaded. For any other collection, the modules are those that declare its schedules. If the application has no
        name, a step that removes says where its scheduler must run (`place`).
        """
        declared = {each.id: each for each in schedules}
        modules = schedules.modules if isinstance(schedules, Registry) else None
        known = Known.of(declared.values(), self.settings.app, host="", modules=modules).modules
        with self._asking():
            now = self._store.time()
            steps = [each for page in pages(declared.values()) for each in self._page(page, now)]
            if declared:  # a scheduler without schedules retires nothing
                steps += self._removed(declared, known)
        steps.sort(key=lambda each: KINDS.index(each.kind))
        gone = sum(each.kind == "removed" for each in steps)
        return Plan(self.settings.app, tuple(steps), len(declared) - len(steps) + gone)

    def _page(self, page: Sequence[Schedule], now: datetime) -> Iterator[Step]:
        app, sights = self.settings.app, [Sight(each.id, each.rev, standing(each, now)) for each in page]
        looked = self._store.looking(sights, app=app)()
        found = [foresee(page[n], seen, looked.now, app) for n, seen in looked.others.items()]
        owners = self._owners(found)
        known = self._kept([each.schedule.id for each in found])
        for prospect, kept in zip(found, known, strict=True):
            told = step(prospect, kept, looked.now, app, owners.get(prospect.schedule.id, ""))
            if told:
                yield told

    def _removed(self, declared: Iterable[str], modules: Container[str]) -> Iterator[Step]:
        ids = (_text(each) for each in self._store.client.sscan_iter(self._keys.app(self.settings.app), count=1000))
        strangers = sorted({*ids} - {*declared})
        for found in pages(strangers):
            places = provenance.read(self._store, found)
            page = [each for each in found if not places[each].module or places[each].module in modules]
            for each, state, kept in zip(page, self._store.look(page), self._kept(page), strict=True):
                if state and state.rev and (state.source, state.app) == ("code", self.settings.app):
                    is_named = self.settings.app != UNNAMED or not places[each].file
                    place = "" if is_named else f"{places[each].directory} on {places[each].host}"
                    yield removed(each, state, kept, self.settings.retire_after, place)

    def _kept(self, ids: Sequence[str]) -> list[Kept]:
        with self._store.client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.hmget(self._keys.schedule(each), "definition", "declared", "overridden_at")
            found = pipe.execute(raise_on_error=False)
        read = (list(map(_text, each)) if isinstance(each, list) else ["", "", ""] for each in found)
        return [Kept(definition, declared or definition, clock.found(at)) for definition, declared, at in read]

    def _owners(self, found: Iterable[Prospect]) -> dict[str, str]:
        """Map each id that another live application declared first, and therefore keeps, to that application."""
        theirs: dict[str, list[str]] = {}
        for each in found:
            before, own = each.before, {"", self.settings.app}
            if before and before.rev and before.app not in own and not before.unannounced_at:
                theirs.setdefault(before.app, []).append(each.schedule.id)
        if not theirs:
            return {}
        client, now = self._store.client, clock.to_ms(self._store.time())
        live = list(map(_text, client.zrangebyscore(self._keys.announcements, now, "+inf")))
        owners: dict[str, str] = {}
        for app, ids in theirs.items():
            for digest in (each for each in live if each.startswith(f"{app}.")):
                declared = client.hmget(self._keys.announced(digest), ids)
                owners |= {each: app for each, text in zip(ids, declared, strict=True) if text}
        return owners


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
