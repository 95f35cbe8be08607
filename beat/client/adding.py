"""Schedules from data: declared as the code would, for functions that an application has exposed; and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

from beat import declaring, monitor, overrides
from beat.client import related
from beat.client.changing import Changing
from beat.errors import BadOption, BeatError, DuplicateSchedule, Refused, did_you_mean
from beat.options import refuse_unknown
from beat.placement import place
from beat.protocol import Reply
from beat.registrations import Origin, registration
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from beat.client.standing import Standing
    from beat.options import Options
    from beat.protocol import Registration
    from beat.schedule import Schedule
    from beat.state import State
    from beat.store import Store

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
        schedule = declaring.declare(wanted.func, wanted.cron, options, self.settings)
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
        others = related.look(self._store, schedules.values(), added)
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
