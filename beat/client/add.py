"""Add schedules from data, and remove schedules.

A schedule from data is declared like one in code, but it calls a function that an application has exposed. Schedules
that it requires or follows, and the limits of its group, must be in Redis before it is added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

from beat.client.change import Changing
from beat.errors import BadOption, BeatError, DuplicateSchedule, Refused, did_you_mean
from beat.policies.reconcile import place
from beat.schedule import cross_checks, from_options, monitor, overrides
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
    """The result of checking new schedules against other schedules and groups in Redis."""

    refused: dict[str, Refused]
    """The schedules that cannot be added, by id, each with its error."""
    later: set[str]
    """The ids of schedules that must wait until others of the same call are added."""


class _Known(NamedTuple):
    """Whether a schedule is in Redis, and which schedules it depends on."""

    is_there: bool
    bonds: list[Bond]


def look(store: Store, schedules: Iterable[Schedule], added: Container[str]) -> Related:
    """Check new schedules against Redis; the ids in `added` count as present."""
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
    """Return all schedules that `bound` depends on, directly or not, as Redis has them.

    For a schedule in `bound`, its new dependencies count, not those in Redis.
    """
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
        except BadOption:  # not written by beat: the definition is not consulted
            continue
    return _Known(bool(rev), bonds)


def _circles(
    wanted: Container[str], bound: Mapping[str, list[Bond]], found: Mapping[str, _Known]
) -> list[tuple[str, list[str]]]:
    """Return each circular dependency that involves a new schedule: the error message and the ids."""
    there = {each: known.bonds for each, known in found.items() if known.bonds and each not in wanted}
    told = [
        (cross_checks.words(steps), [each for each, _ in steps]) for steps in cross_checks.circles({**bound, **there})
    ]
    return [(words, ids) for words, ids in told if any(each in wanted for each in ids)]


def _unknown(store: Store, schedule_id: str, bond: Bond) -> str:
    """Return the error message for a dependency that does not exist, with the nearest id."""
    begin = f"schedule {schedule_id!r} {bond.word} {bond.to!r}"
    names: Any = store.client.zrange(store.keys.index("all"), 0, _MOST_NAMES)
    hint = did_you_mean(bond.to, (name.decode(errors="replace") for name in names))
    return f"{begin}, and there is no such schedule.{hint or ' Add that one first.'}"


def _crowded(store: Store, wanted: Iterable[Schedule]) -> dict[str, Refused]:
    """Return an error for each schedule whose group has no limit in Redis, or too few slots for its broadcast."""
    grouped = [schedule for schedule in wanted if schedule.group]
    groups = group_limits.known(store) if grouped else {}
    return {each.id: Refused(words) for each in grouped for words in cross_checks.room(each, groups)}


_TRIES = 10
_FROM_DATA = "api"
_MOST_NAMES = 10_000  # names that are searched for the nearest one


class Wanted(NamedTuple):
    """A schedule to add, with the arguments of `Client.add`."""

    id: str
    func: str
    cron: str | None
    options: Options


class Added(NamedTuple):
    """The result of adding one schedule."""

    id: str
    result: Literal["added", "replaced", "same", "refused"]
    error: BeatError | None = None
    """Why the schedule was refused."""


class Adding(Changing):
    """A client that adds and removes schedules."""

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
        """Add a schedule for a function that an application has exposed, with the options of `@periodic`.

        If the id exists, the call is refused unless that schedule also comes from data, and is identical or `replace`
        is given. A replaced schedule keeps its state and its history. Its next tick moves only if its rule changes.
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
        """Add schedules in batches and yield the result of each; with `dry_run`, yield the expected result."""
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
                    tries -= not done  # a round with results is no failed try: dependencies are added first
                    answers |= done
            yield from (answers.get(n) or Added(each.id, "refused", _busy()) for n, each in enumerate(page))

    def remove(self, schedule_id: str, *, expected_version: int | None = None) -> None:
        """Delete a schedule and its history; refuse if a live scheduler declares it, because it would return."""
        version = "" if expected_version is None else str(expected_version)
        with self._asking():
            [reply] = self._operations.remove([(schedule_id, version)], by=self.by)
            self._refuse(schedule_id, reply)

    def remove_retired(self, ids: Sequence[str]) -> list[str]:
        """Delete those of these schedules that are retired, with their histories, and return their ids."""
        removed: list[str] = []
        for page in pages(ids):
            with self._asking():
                replies = self._operations.remove([(each, "") for each in page], by=self.by, state="retired")
            removed += [each for each, reply in zip(page, replies, strict=True) if reply.code == "OK"]
        return removed

    def retired(self) -> list[str]:
        """Return the ids of all retired schedules, sorted."""
        with self._asking():
            found = self._store.client.sscan_iter(self._keys.index("retired"), count=500)
            return sorted({each.decode(errors="replace") for each in found})

    def ledger_lengths(self, ids: Iterable[str]) -> list[int]:
        """Return how many lines each schedule's ledger has; 0 if its key is not a list."""
        with self._asking(), self._store.client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.llen(self._keys.runs(each))
            return [number if isinstance(number, int) else 0 for number in pipe.execute(raise_on_error=False)]

    def _declared(self, wanted: Wanted, known: set[str]) -> Schedule:
        """Declare a schedule and add its id to `known`; raise if it is invalid or its id is there already."""
        refuse_unknown(wanted.options, "The expression is cron=, as in cron='0 9 * * *'.")
        options: Any = {**wanted.options, "id": wanted.id}
        schedule = from_options.declare(wanted.func, wanted.cron, options, self.settings)
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
        """Add the schedules that need not wait for others, and return their results.

        A schedule that another client changed meanwhile has no result, so the caller tries it again.
        """
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
        """Raise if the existing schedule does not come from data, or if a callback is not exposed."""
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
        """Return a hint with the nearest function that an application has exposed."""
        names: Any = self._store.client.zrange(self._keys.functions, 0, _MOST_NAMES)
        return did_you_mean(path, (name.decode(errors="replace") for name in names))

    def _rehearsed(self, items: Collection[Registration]) -> list[Reply]:
        """Predict the replies of the register script for a dry run, as far as reads can tell."""
        exposed = self._store.client.zmscore(self._keys.functions, [item.func for item in items]) if items else []
        codes = (Reply("UPDATED" if item.seen_rev else "NEW") for item in items)
        told = zip(items, exposed, codes, strict=True)
        return [code if there is not None else Reply("HIDDEN", item.func) for item, there, code in told]


def _sources(store: Store, ids: Sequence[str]) -> list[str]:
    """Return where each schedule comes from; empty if there is none."""
    with store.client.pipeline(transaction=False) as pipe:
        for each in ids:
            pipe.hget(store.keys.schedule(each), "source")
        found: list[Any] = pipe.execute(raise_on_error=False)
    return [value.decode(errors="replace") if isinstance(value, bytes) else "" for value in found]


def _added(
    schedule: Schedule, seen: State | None, now: datetime, *, replace: bool, origin: Origin
) -> Registration | None:
    """Return the item for the register script, or None if Redis already has this schedule.

    Raise DuplicateSchedule if Redis has another definition and `replace` is not given.
    """
    ruling, rev = overrides.in_force(schedule, seen.override if seen else "")
    placed = place(ruling, seen, now, rev)
    if placed and seen is not None and not replace:
        raise DuplicateSchedule(f"there is another schedule {schedule.id!r}: give this one another id, or replace it")
    return placed and registration(schedule, seen, placed, origin)


def _callbacks(schedule: Schedule) -> list[str]:
    """Return the functions that a worker calls when a run has ended."""
    given = (schedule.on_success, schedule.on_failure, schedule.on_stopped)
    return [callback.func for callback in given if callback is not None]


def _hidden(store: Store, paths: Iterable[str]) -> set[str]:
    """Return those of these functions that no application exposes."""
    asked = sorted(set(paths))
    scores: Sequence[Any] = store.client.zmscore(store.keys.functions, asked) if asked else ()
    return {path for path, score in zip(asked, scores, strict=True) if score is None}


def _busy() -> Refused:
    return Refused("it changes faster than it can be looked at: try again")
