"""What can be asked: what became of every tick, where a schedule stands. Nothing is written, and no beat needs to live.

Times are those of Redis' clock.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from beat.client import explain, history, relations, rule_periods, schedule_info, schedulers, timeline, workers
from beat.client.connected import Connected
from beat.client.history import Wanted
from beat.client.lines_of_tick import Near
from beat.client.relations import Places
from beat.client.verify import Audit, jobs_begin
from beat.errors import BadInstant, BadOption, BeatError, UnknownSchedule, did_you_mean
from beat.history.history import OPEN, Fired, assemble, parts, together
from beat.history.ledger import OUTCOMES
from beat.history.statistics import summarise
from beat.timing import clock, durations
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from beat.client.explain import Explanation
    from beat.client.reader import Snapshot
    from beat.client.schedule_info import Standing
    from beat.client.schedulers import Instance
    from beat.client.timeline import Timeline
    from beat.client.workers import Queue
    from beat.history.history import Line
    from beat.history.statistics import Statistics
    from beat.history.verify import Verification
    from beat.jobs.observation import Record
    from beat.storage.keys import Keys

L = TypeVar("L", bound="Line")
When = datetime | timedelta | str
"""An aware instant, or a length of time before now, such as `"24h"`."""
_INSTANT = timedelta(microseconds=1)
_LONGEST_ID = 100
_NEWEST = 500  # lines of a ledger, among which the newest tick is looked for
_MOST_NAMES = 10_000  # among which a name that was meant is looked for


class Overview(NamedTuple):
    """All that there is to say about one schedule."""

    standing: Standing
    statistics: Statistics
    """Of all that its ledger holds."""
    open_runs: tuple[Fired, ...]
    """Newest first."""
    waiting: tuple[datetime, ...]
    """The ticks that wait for an earlier run to end, oldest first."""
    now: datetime
    queues: tuple[Queue, ...] = ()
    """Those to which its ticks may go, and who works at them."""
    places: Places = Places()
    """How it stands with others."""
    lines: tuple[Line, ...] = ()
    """All that its ledger tells, newest first."""


class Questions(Connected):
    """The questions of a client, to one installation."""

    def get(self, schedule_id: str) -> Standing:
        """Where a schedule stands; raises UnknownSchedule."""
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
        """The lines of one ledger, or of all of them, newest first, at most `limit`.

        Those are left out whose last word is older than `since`, and those written from `until` on; each is an aware
        datetime, or a length of time before now such as `"24h"`. With an `outcome`, or several of them, only runs that
        ended so, `open` ones, or what was `skipped`.
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
        """The run that is this RQ job, or of which it is a part; None when no ledger and no record tells of it."""
        with self._asking():
            record = _noted(job_id, self._archive.record(job_id))
            candidates = [record.schedule_id] if record else self._archive.known(_could_be_of(job_id, self._keys))
            lines = (line for each in candidates for line in history.lines(self._archive, each))
            run = next((line for line in lines if isinstance(line, Fired) and _is(line, job_id)), record)
            return next(iter(self._up_to_date([run] if run else [])), None)

    def why(self, schedule_id: str, instant: datetime) -> Explanation:
        """What became of the tick at `instant`, or why there is none; raises UnknownSchedule."""
        at = clock.utc(instant)
        zone("UTC").at(clock.floor(at))  # refuses what lies before all ticks or after them
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
        """Return the newest tick that is past, decided or not; None if there is none. Raises UnknownSchedule."""
        with self._asking():
            snapshot = self._snapshot(schedule_id, lines=_NEWEST)
            found = self._read(snapshot, schedule_id)
            if found.next_run and found.next_run <= snapshot.now:
                rule = found.schedule
                return max(found.next_run, (rule and rule.before(snapshot.now + _INSTANT)) or found.next_run)
            lines = assemble(schedule_id, snapshot.entries)
            return rule_periods.newest([line for line in lines if line.at <= snapshot.now]) or found.last_run

    def verify(self, schedule_id: str | None = None, *, since: When | None = None) -> list[Verification]:
        """Every tick that was to come, of one schedule or of all, against ledger, counters and jobs."""
        with self._asking():
            after = self._instant(since, "since")
            if schedule_id is not None:
                self._read(self._snapshot(schedule_id, whole=False), schedule_id)
            audit = Audit(self._archive, self._keys, schedule_id)
            ids = sorted(set(self._ids())) if schedule_id is None else [schedule_id]
            return [found for each in ids if (found := audit.verify(each, after))]

    def show(self, schedule_id: str, *, lines: int | None = None) -> Overview:
        """Where a schedule stands, and how it has been doing; raises UnknownSchedule.

        With `lines`, no more than so many of the newest entries of its ledger are read, and summed up.
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
        """Who works at these queues, and how many jobs wait there."""
        with self._asking():
            return list(workers.look(self._store, queues))

    def beats(self) -> list[Instance]:
        """The beats that are alive, by name."""
        with self._asking():
            return schedulers.alive(self._store, self._store.time())

    def timeline(self, hours: int = 24, *, slices: int = 100, tz: str | None = None) -> Timeline:
        """The load of the last and the next hours, in at most so many slices, cut at full hours of the zone `tz`."""
        with self._asking():
            where = zone(self.settings.tz if tz is None else tz)
            return timeline.read_timeline(
                self._archive, self._ids(), self._store.time(), hours=hours, slices=slices, where=where
            )

    def _snapshot(self, schedule_id: str, *, whole: bool = True, lines: int | None = None) -> Snapshot:
        """A schedule with its ledger, or with the newest line of it; raises UnknownSchedule if there is neither."""
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
        """The same, where what is on its way says how far it is."""
        found = list(lines)
        waiting = [job for line in found if isinstance(line, Fired) and line.state == OPEN for job in line.job_ids]
        progress = dict(zip(waiting, self._archive.progress(waiting), strict=True))
        moved: list[Any] = [history.moved_on(line, progress) for line in found]
        return moved


def _is(run: Fired, job_id: str) -> bool:
    return job_id in (run.job_id, *run.job_ids)


def _could_be_of(job_id: str, keys: Keys) -> list[str]:
    """The ids of schedules that could have such a job: all beginnings of what follows the prefix."""
    parts = job_id.removeprefix(jobs_begin(keys)).split("_")
    beginnings = ("_".join(parts[:n]) for n in range(1, min(len(parts), _LONGEST_ID)))
    return [each for each in beginnings if each and job_id.startswith(jobs_begin(keys, each))]


def _noted(job_id: str, record: Record | None) -> Fired | None:
    """A run whose verdict may have been trimmed, as far as its record tells."""
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
