"""Answer questions about an installation: the state of schedules, and what became of their ticks.

Nothing is written, and no scheduler needs to run. Times are by Redis' clock.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from beat.client import explain, history, relations, rule_periods, schedule_info, timeline, workers
from beat.client.connected import Connected
from beat.client.history import Wanted
from beat.client.lines_of_tick import Near
from beat.client.relations import Places
from beat.client.verify import Audit, jobs_begin
from beat.errors import BadInstant, BadOption, BeatError, UnknownSchedule, did_you_mean
from beat.history.history import OPEN, Fired, assemble, parts, together
from beat.history.ledger import OUTCOMES
from beat.history.statistics import summarise
from beat.storage import announcements
from beat.timing import clock, durations
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from beat.client.explain import Explanation
    from beat.client.reader import Snapshot
    from beat.client.schedule_info import Standing
    from beat.client.timeline import Timeline
    from beat.client.workers import Queue
    from beat.history.history import Line
    from beat.history.statistics import Statistics
    from beat.history.verify import Verification
    from beat.jobs.observation import Record
    from beat.storage.heartbeat import Instance
    from beat.storage.keys import Keys

L = TypeVar("L", bound="Line")
When = datetime | timedelta | str
"""An aware datetime, or a duration before now, such as `"24h"`."""
_INSTANT = timedelta(microseconds=1)
_LONGEST_ID = 100
_NEWEST = 500  # lines of a ledger that are searched for the newest tick
_MOST_NAMES = 10_000  # names that are searched for the nearest one


class Overview(NamedTuple):
    """All facts about one schedule."""

    standing: Standing
    statistics: Statistics
    """Statistics of the ledger, as far as it was read."""
    open_runs: tuple[Fired, ...]
    """The runs that have not ended, newest first."""
    waiting: tuple[datetime, ...]
    """The ticks on the waiting list, oldest first."""
    now: datetime
    queues: tuple[Queue, ...] = ()
    """The queues to which its ticks may go, with their workers."""
    places: Places = Places()
    """How it relates to other schedules and to its group."""
    lines: tuple[Line, ...] = ()
    """The history, newest first, as far as the ledger was read."""


class Questions(Connected):
    """A client that answers questions about one installation."""

    def get(self, schedule_id: str) -> Standing:
        """Return a schedule with its state; raise UnknownSchedule if there is none."""
        with self._asking():
            return self._read(self._snapshot(schedule_id, whole=False), schedule_id)

    def history(
        self,
        schedule_id: str | None = None,
        *,
        since: When | None = None,
        until: When | None = None,
        outcome: str | Collection[str] | None = None,
        limit: int | None = None,
    ) -> list[Line]:
        """Return the history of one schedule, or of all of them, newest first, at most `limit` lines.

        Lines whose last change is older than `since` are left out, and so are lines written at `until` or later. Each
        is an aware datetime, or a duration before now such as `"24h"`. With `outcome`, one or several, only runs that
        ended so, `open` runs, `skipped` ticks or `waiting` ticks are returned.
        """
        words = history.outcomes(outcome)
        if limit is not None and (type(limit) is not int or limit < 0):
            raise BadOption(f"limit {limit!r:.60} must be a whole number, as in limit=20")
        with self._asking():
            wanted = Wanted(self._instant(since, "since"), self._instant(until, "until"), words)
            if schedule_id is None:
                found = history.merged(self._archive, self._ids(), wanted)
            else:
                self._snapshot(schedule_id, whole=False)
                found = history.lines(self._archive, schedule_id, wanted.since)
            return self._up_to_date(itertools.islice(filter(wanted.takes, found), limit))

    def get_run(self, job_id: str) -> Fired | None:
        """Return the run of this RQ job, also of a part of a broadcast; None if no ledger or record has it."""
        with self._asking():
            record = _noted(job_id, self._archive.record(job_id))
            candidates = [record.schedule_id] if record else self._archive.known(_could_be_of(job_id, self._keys))
            lines = (line for each in candidates for line in history.lines(self._archive, each))
            run = next((line for line in lines if isinstance(line, Fired) and _is(line, job_id)), record)
            return next(iter(self._up_to_date([run] if run else [])), None)

    def why(self, schedule_id: str, instant: datetime) -> Explanation:
        """Explain what became of the tick at `instant`, or why there is none; raise UnknownSchedule."""
        at = clock.utc(instant)
        zone("UTC").at(clock.floor(at))  # raises if no tick can be that early or that late
        with self._asking():
            snapshot = self._snapshot(schedule_id)
            found = self._read(snapshot, schedule_id)
            follows = found.policies and found.policies.follows
            near = Near(at, explain.end_of(at) if follows else at + _INSTANT, snapshot.waiting)
            told = explain.Question(
                found,
                assemble(schedule_id, near.pick(snapshot.lines)),
                at,
                snapshot.now,
                snapshot.holder,
                self._archive.beats(snapshot.now),
                snapshot.waiting,
                relations.parents(self._store, [follows])[0] if follows else None,
            ).answer()
            behind = next(iter(self._up_to_date([told.behind] if told.behind else [])), None)
            runs, backfills = (tuple(self._up_to_date(each)) for each in (told.runs, told.backfills))
            unread = workers.unread(self._store, self._archive, (*runs, *backfills))
            return replace(told, runs=runs, backfills=backfills, behind=behind, unread=unread)

    def latest_tick(self, schedule_id: str) -> datetime | None:
        """Return the newest past tick, decided or not; None if there is none. Raise UnknownSchedule."""
        with self._asking():
            snapshot = self._snapshot(schedule_id, lines=_NEWEST)
            found = self._read(snapshot, schedule_id)
            if found.next_run and found.next_run <= snapshot.now:
                rule = found.schedule
                return max(found.next_run, (rule and rule.before(snapshot.now + _INSTANT)) or found.next_run)
            lines = assemble(schedule_id, snapshot.entries)
            return rule_periods.newest([line for line in lines if line.at <= snapshot.now]) or found.last_run

    def verify(self, schedule_id: str | None = None, *, since: When | None = None) -> list[Verification]:
        """Compare each expected tick of one schedule, or of all, with ledgers, counters and jobs."""
        with self._asking():
            after = self._instant(since, "since")
            if schedule_id is not None:
                self._read(self._snapshot(schedule_id, whole=False), schedule_id)
            audit = Audit(self._archive, self._keys, schedule_id)
            ids = sorted(set(self._ids())) if schedule_id is None else [schedule_id]
            return [found for each in ids if (found := audit.verify(each, after))]

    def show(self, schedule_id: str, *, lines: int | None = None) -> Overview:
        """Return the state and the statistics of a schedule; raise UnknownSchedule if there is none.

        With `lines`, only that many of the newest entries of its ledger are read.
        """
        if lines is not None and (type(lines) is not int or lines < 1):
            raise BadOption(f"lines {lines!r:.60} must be a whole number from 1 on, as in lines=1000")
        with self._asking():
            snapshot = self._snapshot(schedule_id, lines=lines)
            found = self._read(snapshot, schedule_id)
            told = assemble(schedule_id, snapshot.entries)
            known = tuple(self._up_to_date(told))
            going = tuple(line for line in known if isinstance(line, Fired) and line.state not in OUTCOMES)
            queues = workers.of(self._store, found)
            places = relations.look(self._store, found, snapshot.now)
            return Overview(found, summarise(told), going, snapshot.waiting, snapshot.now, queues, places, known)

    def staff(self, queues: Iterable[str]) -> list[Queue]:
        """Return these queues with their workers and how many jobs wait in each."""
        with self._asking():
            return list(workers.look(self._store, queues))

    def beats(self) -> list[Instance]:
        """Return the running schedulers, by name."""
        with self._asking():
            return announcements.alive(self._store, self._store.time())

    def timeline(self, hours: int = 24, *, slices: int = 100, tz: str | None = None) -> Timeline:
        """Return the load of the last and the next `hours`, in at most `slices` slices.

        The slices are cut at full hours of the zone `tz`, or at parts of them.
        """
        with self._asking():
            where = zone(self.settings.tz if tz is None else tz)
            return timeline.read_timeline(
                self._archive, self._ids(), self._store.time(), hours=hours, slices=slices, where=where
            )

    def _snapshot(self, schedule_id: str, *, whole: bool = True, lines: int | None = None) -> Snapshot:
        """Return a schedule with its ledger, or a part of it; raise UnknownSchedule if there is neither."""
        found = self._archive.snapshot(schedule_id, whole=whole, lines=lines)
        if not (found.state or found.lines or found.problems):
            raise self._unknown(schedule_id)
        return found

    def _read(self, snapshot: Snapshot, schedule_id: str) -> Standing:
        if snapshot.state:
            return schedule_info.read(schedule_id, snapshot.state)
        raise BeatError("; ".join(snapshot.problems)) if snapshot.problems else self._unknown(schedule_id)

    def _unknown(self, schedule_id: str) -> UnknownSchedule:
        names = itertools.islice(self._ids(), _MOST_NAMES)
        return UnknownSchedule(f"there is no schedule {schedule_id!r:.110}.{did_you_mean(schedule_id, names)}")

    def _ids(self) -> Iterator[str]:
        return itertools.chain.from_iterable(self._store.ids())

    def _instant(self, given: When | None, name: str) -> datetime | None:
        if given is None or isinstance(given, datetime):
            return given and clock.utc(given, name)
        try:
            return self._store.time() - durations.parse(given, name)
        except OverflowError as e:
            raise BadInstant(f"{name} {given!r:.60} lies before the calendar begins: write '24h'") from e

    def _up_to_date(self, lines: Iterable[L]) -> list[L]:
        """Return the lines with the progress that RQ reports for runs that have not ended."""
        found = list(lines)
        waiting = [job for line in found if isinstance(line, Fired) and line.state == OPEN for job in line.job_ids]
        progress = dict(zip(waiting, self._archive.progress(waiting), strict=True))
        moved: list[Any] = [history.moved_on(line, progress) for line in found]
        return moved


def _is(run: Fired, job_id: str) -> bool:
    return job_id in (run.job_id, *run.job_ids)


def _could_be_of(job_id: str, keys: Keys) -> list[str]:
    """Return the ids of schedules that could have this job: every beginning of the job id after the prefix."""
    parts = job_id.removeprefix(jobs_begin(keys)).split("_")
    beginnings = ("_".join(parts[:n]) for n in range(1, min(len(parts), _LONGEST_ID)))
    return [each for each in beginnings if each and job_id.startswith(jobs_begin(keys, each))]


def _noted(job_id: str, record: Record | None) -> Fired | None:
    """Return a run from its record, because its decision may have been trimmed; None without a record."""
    enqueued = clock.found(record.enqueued) if record else None
    if record is None or enqueued is None:
        return None
    made = Fired(
        schedule_id=record.schedule,
        tick=clock.found(record.tick),
        job_id=record.of or job_id,
        at=enqueued,
        triggered_by=record.by,
        enqueued_at=enqueued,
        number=record.n,
        shards=record.shards if record.of else 0,
        beat="",
    )
    return together(made, parts(made.job_id, made.shards, ())) if record.of else made
