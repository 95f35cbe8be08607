"""Enqueue runs for past ticks (a backfill), oldest first, a few at a time, at most one for each tick.

A backfill is identified by its schedule, its start and its end. Each of its ticks has its own job id, which Redis
remembers for 30 days. The same call therefore continues a backfill after Ctrl-C or a crash.
"""

from __future__ import annotations

import itertools
from collections import deque
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.client.change import MEANWHILE, definition_of, timed
from beat.client.rule_periods import begin
from beat.client.trigger import Triggering, asked
from beat.errors import BadInstant, BadOption
from beat.history import broadcast
from beat.history.history import Change, Fired, assemble
from beat.policies import jitter_and_capacity
from beat.schedule import digests
from beat.schedule.routing_options import MOST_QUEUES
from beat.storage.messages import Reply
from beat.storage.store import pages
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from beat.client.reader import Snapshot
    from beat.client.schedule_info import Standing
    from beat.history.history import Line

KEPT_S = 30 * 86_400
"""How many seconds Redis remembers which ticks a backfill has enqueued."""
LARGEST = 1_000_000
"""How many ticks a backfill may have."""
_MOST_PARALLEL = 100
_TRIES = 10
_INSTANT = timedelta(microseconds=1)
_DECIDING = {"active", "paused"}
"""States in which the schedule itself decides its ticks from the next one on."""


class Backfill(NamedTuple):
    """The plan of a backfill."""

    schedule_id: str
    name: str
    """A digest of schedule, start, end and `again`, by which a repeated call finds its jobs."""
    ticks: tuple[datetime, ...]
    """The ticks to enqueue, oldest first."""
    done: tuple[datetime, ...]
    """The ticks that an earlier call of the same backfill enqueued."""
    ran: int
    """How many ticks are left out because they have a run, or wait for one."""
    excluded: int
    """How many ticks are left out because the schedule excludes their days."""
    undecided: int
    """How many ticks are left out because they are due and the schedule itself will decide them."""
    untold: int
    """How many of `ticks` are older than the ledger, so that they may have had a run."""


class Step(NamedTuple):
    """A run of a backfill that was just enqueued, or has just ended."""

    tick: datetime
    job_id: str
    run: Fired | None
    """The run as it is now; None if nothing is known about it any more."""
    ended: int
    """How many runs of the backfill have ended since this call began."""
    total: int
    """How many runs this call waits for."""


class Backfilling(Triggering):
    """A client that backfills past ticks."""

    def plan_backfill(self, schedule_id: str, start: datetime, end: datetime, *, again: bool = False) -> Backfill:
        """Return what `backfill` would do."""
        first, last = clock.utc(start, "start"), clock.utc(end, "end")
        if first > last:
            raise BadInstant(f"start {clock.text(first)} must not lie after end {clock.text(last)}")
        with self._asking():
            snapshot = self._snapshot(schedule_id)
            if first > snapshot.now:
                raise BadInstant(f"start {clock.text(first)} lies ahead: a backfill is for the past")
            found = self._read(snapshot, schedule_id)
            ticks, undecided = _ticks(found, first, min(last, snapshot.now))
            awake = [tick for tick in ticks if not jitter_and_capacity.is_excluded(definition_of(found), tick)]
            name = digests.digest(f"{schedule_id} {clock.text(first)} {clock.text(last)} {again}")[:12]
            done = self._done({self._job(schedule_id, name, tick): tick for tick in awake})
        lines = assemble(schedule_id, snapshot.entries)
        fresh = [tick for tick in awake if tick not in done]
        left = fresh if again else _without_run(fresh, lines, snapshot)
        excluded, untold = len(ticks) - len(awake), _untold(left, lines, found)
        return Backfill(
            schedule_id, name, tuple(left), tuple(sorted(done)), len(fresh) - len(left), excluded, undecided, untold
        )

    def backfill(
        self, schedule_id: str, start: datetime, end: datetime, *, max_parallel: int = 2, again: bool = False
    ) -> Generator[Step, None, None]:
        """Enqueue a run for each tick from `start` to `end` that has none, or with `again` for all, and wait for them.

        At most `max_parallel` of the runs are open at a time, and no more than the overlap policy allows. A step is
        yielded when a run is enqueued and when it ends. If the caller stops iterating, the backfill stops; the same
        call continues it.
        """
        if type(max_parallel) is not int or not 1 <= max_parallel <= _MOST_PARALLEL:
            raise BadOption(f"max_parallel must be a whole number from 1 to {_MOST_PARALLEL}, not {max_parallel!r:.60}")
        plan = self.plan_backfill(schedule_id, start, end, again=again)
        before = {self._job(schedule_id, plan.name, tick): tick for tick in plan.done}
        going = {job: before[job] for job in before if job not in self._closed(before)}
        left, watcher, ended, total = deque(plan.ticks), self._watcher(), 0, len(plan.ticks) + len(going)
        while left or going:
            while left and len(going) < max_parallel:
                job = self._job(schedule_id, plan.name, left[0])
                if not self._enqueued(schedule_id, left[0], job):
                    break  # no free slot until a run ends
                going[job] = left.popleft()
                yield Step(going[job], job, self.get_run(job), ended, total)
            self._wait(watcher)
            for job in self._closed(going):
                ended += 1
                yield Step(going.pop(job), job, self.get_run(job), ended, total)

    def _enqueued(self, schedule_id: str, tick: datetime, job: str) -> bool:
        """Enqueue the run unless an earlier call did; return False if it has no free slot."""
        reply = Reply("GONE")
        with self._asking():
            for _ in range(_TRIES):
                found = self.get(schedule_id)
                named: dict[str, Any] = {"tick": tick, "by": "backfill", "kept_s": KEPT_S, "operator": self.by}
                now = self._store.time()
                reply = asked(self._store, found.rev, definition_of(found), job, now=now, **named)
                if reply.code not in MEANWHILE:
                    break
            if reply.code != "FULL":
                self._refuse(schedule_id, reply)
        return reply.code != "FULL"

    def _job(self, schedule_id: str, name: str, tick: datetime) -> str:
        return self._keys.asked(schedule_id, f"b{name}_{clock.floor(tick)}")

    def _done(self, asked: Mapping[str, datetime]) -> set[datetime]:
        """Return the ticks whose jobs were enqueued before."""
        done: set[datetime] = set()
        for page in pages(asked.items()):
            with self._store.client.pipeline(transaction=False) as pipe:
                for job, _ in page:
                    pipe.exists(self._keys.request(job))
                found = pipe.execute()
            done |= {tick for (_, tick), there in zip(page, found, strict=True) if there}
        return done

    def _closed(self, jobs: Iterable[str]) -> list[str]:
        """Return the jobs whose outcome is known, including that of every part of a broadcast."""
        closed = []
        with self._asking():
            for page in pages(jobs):
                asked = [[job, *broadcast.jobs(job, MOST_QUEUES)] for job in page]
                scores: Sequence[Any] = self._store.client.zmscore(self._keys.open, [*itertools.chain(*asked)])
                left = iter(scores)
                closed += [job for job, *parts in asked if {next(left) for _ in (job, *parts)} == {None}]
        return closed


def _ticks(found: Standing, start: datetime, end: datetime) -> tuple[list[datetime], int]:
    """Return the ticks from `start` to `end` by the rule in force, and the number of undecided ones.

    Undecided ticks are due, and the schedule itself will decide them; they are only counted.
    """
    schedule, undecided = timed(found), 0
    if found.state in _DECIDING and found.next_run and found.next_run <= end:
        undecided = schedule.count(max(start, found.next_run), end + _INSTANT)
        end = found.next_run - _INSTANT
    number = schedule.count(start, end + _INSTANT) if start <= end else 0
    if number > LARGEST:
        raise BadOption(f"there are {number:,} ticks from start to end, and {LARGEST:,} are the most at once")
    return list(schedule.ticks(start, end + _INSTANT)) if number else [], undecided


def _without_run(ticks: Iterable[datetime], lines: Iterable[Line], snapshot: Snapshot) -> list[datetime]:
    """Return the ticks that have no run in the ledger and do not wait for one."""
    ran = {line.tick for line in lines if isinstance(line, Fired)} | set(snapshot.waiting)
    return [tick for tick in ticks if tick not in ran]


def _untold(ticks: Sequence[datetime], lines: Sequence[Line], found: Standing) -> int:
    """Count the ticks that are older than the ledger, but not older than the schedule."""
    oldest = lines[-1] if lines else None
    if isinstance(oldest, Change) and oldest.type == "registered":
        return 0
    begins, created = begin(lines) or clock.at(clock.floor(ticks[-1]) + 1) if ticks else None, found.created_at
    return sum(1 for tick in ticks if begins and tick < begins and (created is None or tick >= created))
