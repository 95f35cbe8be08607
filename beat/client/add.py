"""Schedules from data: declared as the code would, for functions that an application has exposed; and their end.

What schedules from data say about others and about their groups: it must be true in Redis before they are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

from beat.client.change import Changing
from beat.errors import BadOption, BeatError, DuplicateSchedule, Refused, did_you_mean
from beat.policies.reconcile import place
from beat.schedule import cross_checks, declare, monitor, overrides
from beat.schedule.cross_checks import Bond
from beat.schedule.options import refuse_unknown
from beat.schedule.requires import Requires
from beat.storage import group_limits
from beat.storage.messages import Reply
from beat.storage.registration import Origin, registration
from beat.storage.store import pages

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.schedule.options import Options
    from beat.schedule.schedule import Schedule
    from beat.schedule.state import State
    from beat.storage.messages import Registration
    from beat.storage.store import Store


class Related(NamedTuple):
    """Of some schedules that are to be added."""

    refused: dict[str, Refused]
    """Those that cannot be, by their ids, and why."""
    later: set[str]
    """Those that wait for others of these to be added first."""


class _Known(NamedTuple):
    """What Redis says of a schedule."""

    is_there: bool
    bonds: list[Bond]


def look(store: Store, schedules: Iterable[Schedule], added: Container[str]) -> Related:
    """Compares them with Redis; those that are `added` count as if they were there already."""
    wanted = {schedule.id: schedule for schedule in schedules}
    bound = {each: bonds for each, schedule in wanted.items() if (bonds := cross_checks.bonds(schedule))}
    refused: dict[str, Refused] = {}
    later: set[str] = set()
    if bound:
        found = _reached(store, bound)
        for words, circle in _circles(wanted, bound, found):
            refused |= {each: Refused(words) for each in circle if each in wanted}
        for each, bonds in bound.items():
            missing = [bond for bond in bonds if not (bond.to in added or found[bond.to].is_there)]
            if strangers := [bond for bond in missing if bond.to not in wanted]:
                refused.setdefault(each, Refused(_unknown(store, each, strangers[0])))
            elif missing:
                later.add(each)
    refused |= _crowded(store, wanted.values())
    return Related(refused, later - refused.keys())


def _reached(store: Store, bound: Mapping[str, list[Bond]]) -> dict[str, _Known]:
    """All schedules that can be reached from these, as Redis knows them; what is to be added leads on as it will."""
    found: dict[str, _Known] = {}
    asked = {bond.to for bonds in bound.values() for bond in bonds}
    while asked:
        ids = sorted(asked)
        with store.client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.hmget(store.keys.schedule(each), "rev", "follows", "requires")
            replies: list[Any] = pipe.execute(raise_on_error=False)
        found |= {each: _known(values) for each, values in zip(ids, replies, strict=True)}
        asked = {bond.to for each in ids for bond in bound.get(each, found[each].bonds)} - found.keys()
    return found


def _known(values: Any) -> _Known:
    rev, follows, requires = (
        value.decode(errors="replace") if isinstance(value, bytes) else ""
        for value in (values if isinstance(values, list) else [None] * 3)
    )
    bonds = [Bond("follows", follows)] if follows else []
    for each in requires.split(", ") if requires else ():
        try:
            bonds.append(Bond("requires", Requires.read(each).id))
        except BadOption:  # somebody has garbled it: the definition is not asked
            continue
    return _Known(bool(rev), bonds)


def _circles(
    wanted: Container[str], bound: Mapping[str, list[Bond]], found: Mapping[str, _Known]
) -> list[tuple[str, list[str]]]:
    """Those in which one is that is to be added: in words, and the ids."""
    there = {each: known.bonds for each, known in found.items() if known.bonds and each not in wanted}
    told = [
        (cross_checks.words(steps), [each for each, _ in steps]) for steps in cross_checks.circles({**bound, **there})
    ]
    return [(words, ids) for words, ids in told if any(each in wanted for each in ids)]


def _unknown(store: Store, schedule_id: str, bond: Bond) -> str:
    begin = f"schedule {schedule_id!r} {bond.word} {bond.to!r}"
    names: Any = store.client.zrange(store.keys.index("all"), 0, _MOST_NAMES)
    hint = did_you_mean(bond.to, (name.decode(errors="replace") for name in names))
    return f"{begin}, and there is no such schedule.{hint or ' Add that one first.'}"


def _crowded(store: Store, wanted: Iterable[Schedule]) -> dict[str, Refused]:
    """Those of whose groups Redis knows nothing, or that do not fit in."""
    grouped = [schedule for schedule in wanted if schedule.group]
    groups = group_limits.known(store) if grouped else {}
    return {each.id: Refused(words) for each in grouped for words in cross_checks.room(each, groups)}


_TRIES = 10
_FROM_DATA = "api"
_MOST_NAMES = 10_000  # among which one that was meant is looked for


class Wanted(NamedTuple):
    """A schedule that somebody wants: what `Client.add` takes."""

    id: str
    func: str
    cron: str | None
    options: Options


class Added(NamedTuple):
    """What became of it."""

    id: str
    result: Literal["added", "replaced", "same", "refused"]
    error: BeatError | None = None
    """Why it was refused."""


class Adding(Changing):
    """A client that adds schedules and removes them."""

    def add(
        self,
        schedule_id: str,
        *,
        func: str,
        cron: str | None = None,
        replace: bool = False,
        expected_version: int | None = None,
        **given: Unpack[Options],
    ) -> Standing:
        """Adds a schedule of a function that an application has exposed, with the options of `@periodic`.

        One of this id is refused, unless it is the very same, or was added in the same way and `replace` is given: then
        its state and its history stay, and only a change of what decides its ticks moves the next one.
        """
        wanted = [Wanted(schedule_id, func, cron, given)]
        for done in self.add_all(wanted, replace=replace, expected_version=expected_version):
            if done.error:
                raise done.error
        return self.get(schedule_id)

    def add_all(
        self,
        wanted: Iterable[Wanted],
        *,
        replace: bool = False,
        dry_run: bool = False,
        expected_version: int | None = None,
    ) -> Iterator[Added]:
        """Adds many, a page at a time, and says of each what became of it; with `dry_run`, what would."""
        origin = Origin(_FROM_DATA, version="" if expected_version is None else str(expected_version))
        known: set[str] = set()
        added: set[str] = set()
        for page in pages(wanted):
            schedules: dict[int, Schedule] = {}
            answers: dict[int, Added] = {}
            for n, each in enumerate(page):
                try:
                    schedules[n] = self._declared(each, known)
                except BeatError as e:
                    answers[n] = Added(each.id, "refused", e)
            with self._asking():
                tries = _TRIES
                while tries and (left := {n: each for n, each in schedules.items() if n not in answers}):
                    done = self._bring(left, origin, added, replace=replace, dry_run=dry_run)
                    added |= {answer.id for answer in done.values() if answer.result != "refused"}
                    tries -= not done  # those that others wait for come first, so that some rounds are needed anyway
                    answers |= done
            yield from (answers.get(n) or Added(each.id, "refused", _busy()) for n, each in enumerate(page))

    def remove(self, schedule_id: str, *, expected_version: int | None = None) -> None:
        """Deletes a schedule with its history; one that a live beat declares is refused, for it would come back."""
        version = "" if expected_version is None else str(expected_version)
        with self._asking():
            [reply] = self._operations.remove([(schedule_id, version)], by=self.by)
            self._refuse(schedule_id, reply)

    def remove_retired(self, ids: Sequence[str]) -> list[str]:
        """Deletes those of these that are retired, with their histories; which those were."""
        removed: list[str] = []
        for page in pages(ids):
            with self._asking():
                replies = self._operations.remove([(each, "") for each in page], by=self.by, state="retired")
            removed += [each for each, reply in zip(page, replies, strict=True) if reply.code == "OK"]
        return removed

    def retired(self) -> list[str]:
        """The ids of all that are retired."""
        with self._asking():
            found = self._store.client.sscan_iter(self._keys.index("retired"), count=500)
            return sorted({each.decode(errors="replace") for each in found})

    def ledger_lengths(self, ids: Iterable[str]) -> list[int]:
        """How many lines each ledger holds."""
        with self._asking(), self._store.client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.llen(self._keys.runs(each))
            return [number if isinstance(number, int) else 0 for number in pipe.execute(raise_on_error=False)]

    def _declared(self, wanted: Wanted, known: set[str]) -> Schedule:
        """The schedule, if it can be one, and is none of those that are `known`."""
        refuse_unknown(wanted.options, "The expression is cron=, as in cron='0 9 * * *'.")
        options: Any = {**wanted.options, "id": wanted.id}
        schedule = declare.declare(wanted.func, wanted.cron, options, self.settings)
        if schedule.monitor and not monitor.is_allowed(schedule.monitor, self.settings.monitor_hosts):
            raise BadOption(
                f"schedule {schedule.id!r} comes from data, and its monitor {str(schedule.monitor)!r} is at a host "
                "that the setting monitor_hosts does not allow: add the host there (BEAT_MONITOR_HOSTS), or declare "
                "the schedule in code"
            )
        if schedule.id in known:
            raise DuplicateSchedule(f"{schedule.id!r} is there twice: give one of them another id")
        known.add(schedule.id)
        return schedule

    def _bring(
        self, schedules: Mapping[int, Schedule], origin: Origin, added: Container[str], *, replace: bool, dry_run: bool
    ) -> dict[int, Added]:
        """What became of those that nobody else was at meanwhile, and that wait for no other."""
        others = look(self._store, schedules.values(), added)
        schedules = {n: schedule for n, schedule in schedules.items() if schedule.id not in others.later}
        ids = [schedule.id for schedule in schedules.values()]
        found, sources, now = self._store.look(ids), _sources(self._store, ids), self._store.time()
        hidden = _hidden(self._store, (path for schedule in schedules.values() for path in _callbacks(schedule)))
        answers: dict[int, Added] = {}
        items: dict[int, Registration] = {}
        for (n, schedule), seen, source in zip(schedules.items(), found, sources, strict=True):
            try:
                if error := others.refused.get(schedule.id):
                    raise error
                self._refuse_strangers(schedule, seen, source, hidden)
                item = _added(schedule, seen, now, replace=replace, origin=origin)
            except BeatError as e:
                answers[n] = Added(schedule.id, "refused", e)
                continue
            if item is None:
                answers[n] = Added(schedule.id, "same")
            else:
                items[n] = item
        replies = self._rehearsed(items.values()) if dry_run else self._register(items.values())
        told = zip(items.items(), replies, strict=True)
        return answers | {n: self._answer(item.id, reply) for (n, item), reply in told if reply.code != "RETRY"}

    def _refuse_strangers(self, schedule: Schedule, seen: State | None, source: str, hidden: set[str]) -> None:
        """What is somebody else's, and what a worker would call though nobody exposes it."""
        if seen is not None and source != _FROM_DATA:
            self._refuse(schedule.id, Reply("TAKEN", source or "elsewhere"))
        for path in hidden.intersection(_callbacks(schedule)):
            self._refuse(schedule.id, Reply("HIDDEN", path))

    def _register(self, items: Collection[Registration]) -> list[Reply]:
        return self._store.register(items, beat=self.by) if items else []

    def _answer(self, schedule_id: str, reply: Reply) -> Added:
        try:
            self._refuse(schedule_id, reply)
        except BeatError as e:
            hint = self._exposed(reply.words) if reply.code == "HIDDEN" else ""
            return Added(schedule_id, "refused", Refused(f"{e}.{hint}") if hint else e)
        return Added(schedule_id, "added" if reply.code == "NEW" else "replaced")

    def _exposed(self, path: str) -> str:
        """The nearest function that may be scheduled."""
        names: Any = self._store.client.zrange(self._keys.functions, 0, _MOST_NAMES)
        return did_you_mean(path, (name.decode(errors="replace") for name in names))

    def _rehearsed(self, items: Collection[Registration]) -> list[Reply]:
        """What the script would say, as far as can be told without it."""
        exposed = self._store.client.zmscore(self._keys.functions, [item.func for item in items]) if items else []
        codes = (Reply("UPDATED" if item.seen_rev else "NEW") for item in items)
        told = zip(items, exposed, codes, strict=True)
        return [code if there is not None else Reply("HIDDEN", item.func) for item, there, code in told]


def _sources(store: Store, ids: Sequence[str]) -> list[str]:
    """Where each comes from; nothing for what is not there."""
    with store.client.pipeline(transaction=False) as pipe:
        for each in ids:
            pipe.hget(store.keys.schedule(each), "source")
        found: list[Any] = pipe.execute(raise_on_error=False)
    return [value.decode(errors="replace") if isinstance(value, bytes) else "" for value in found]


def _added(
    schedule: Schedule, seen: State | None, now: datetime, *, replace: bool, origin: Origin
) -> Registration | None:
    """As the register script takes it; None when Redis has it all."""
    ruling, rev = overrides.in_force(schedule, seen.override if seen else "")
    placed = place(ruling, seen, now, rev)
    if placed and seen is not None and not replace:
        raise DuplicateSchedule(f"there is another schedule {schedule.id!r}: give this one another id, or replace it")
    return placed and registration(schedule, seen, placed, origin)


def _callbacks(schedule: Schedule) -> list[str]:
    """The functions that a worker calls when a run has ended."""
    given = (schedule.on_success, schedule.on_failure, schedule.on_stopped)
    return [callback.func for callback in given if callback is not None]


def _hidden(store: Store, paths: Iterable[str]) -> set[str]:
    """Those of these functions that no application exposes."""
    asked = sorted(set(paths))
    scores: Sequence[Any] = store.client.zmscore(store.keys.functions, asked) if asked else ()
    return {path for path, score in zip(asked, scores, strict=True) if score is None}


def _busy() -> Refused:
    return Refused("it changes faster than it can be looked at: try again")
