"""Run a whole scheduler by hand, in this process: it registers, claims, decides and fires as every scheduler does.

The scripts, the store and the ticker are the real ones. Redis is fakeredis, and its clock is a `ManualClock`. Nothing
happens between two calls, because there are no threads and no time passes by itself.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from beat.config import settings
from beat.engine.clock_guard import Guard, Jump, Mark
from beat.engine.definition_cache import Book
from beat.engine.fact_reader import Inquiry
from beat.engine.health import Health
from beat.engine.pacing import Pace, RedisClock
from beat.engine.registrar import Sync
from beat.engine.run_tracker import Watcher
from beat.engine.ticker import Ticker
from beat.engine.waiting import Attendant
from beat.errors import BeatError, ConfigError
from beat.jobs import job_template
from beat.schedule import cross_checks
from beat.schedule import registry as registries
from beat.storage.keys import Keys
from beat.storage.messages import Claimed
from beat.telemetry.tracing import Tracing
from beat.testing.assertions import NO_SCHEDULE, When, compare, find, instants, shown
from beat.testing.fake_redis import ClockedRedis
from beat.testing.immediate_store import ImmediateStore
from beat.testing.manual_clock import ManualClock
from beat.testing.results import Fired, Skipped
from beat.timing import clock, durations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beat.engine.events import Event
    from beat.schedule.registry import Registry
    from beat.schedule.schedule import Schedule
    from beat.storage.connection import Redis
    from beat.timing.durations import Duration

_NAME = "manual-beat"
_TROUBLES = {"refused", "broken", "enqueue_failed", "gone"}


class ManualBeat:
    """A scheduler whose clock shows `start` until a test moves it. Its first ticks are those after `start`.

    `registry` defaults to the one behind `beat.periodic`. Options are settings by name, as for `Scheduler`:
    `misfire_after="5m"`. It raises a BeatError where a real scheduler would log an error.
    """

    clock: ManualClock
    """Move the clock with `clock.advance("1h")` or `clock.set(…)`; nothing fires before the next `tick()`."""
    redis: Redis
    """A client of the fake server. RQ can run the jobs that it holds, and a test may read its keys."""
    fired: list[Fired]
    """Every tick that became a job, in order."""
    skipped: list[Skipped]
    """The ranges of ticks that were skipped, in order."""

    def __init__(self, start: datetime | ManualClock, *, registry: Registry | None = None, **options: Any) -> None:
        self.clock = start if isinstance(start, ManualClock) else ManualClock(start)
        self.redis = ClockedRedis(self.clock)
        self.fired, self.skipped = [], []
        self._registry = registries.default_registry if registry is None else registry
        self._schedules = {schedule.id: schedule for schedule in self._registry}
        if not self._schedules:
            raise ConfigError(f"there is no schedule to test: {NO_SCHEDULE}")
        self._started, self._watched = self.clock.now, _watched(self._schedules.values())
        self._taken = 0
        self._troubles: list[str] = []
        chosen = settings.load(options).settings
        # Claim nothing before it is due, so that no schedule is locked between two calls, wherever the clock goes.
        pace = replace(Pace.of(chosen), lookahead=0)
        self._desk = _Desk(self.redis, Keys(chosen.prefix), history_limit=chosen.history_limit, **pace.waits)
        self._desk.tracer = Tracing(at_once=True) if chosen.traces == "on" else self._desk.tracer
        self._groups = cross_checks.agreed(self._registry, chosen.groups)
        self._register()
        book = Book(self._desk, ((schedule, schedule.rev) for schedule in self._schedules.values()))
        self._ticker = Ticker(self._desk, book, pace, token=_NAME, emit=self._hear, health=Health(self._hear))
        self._ticker.clock, self._ticker.timekeeper.guard = _ByHand(self.clock), _Trusting()
        watcher = Watcher(self._desk, name=_NAME, emit=self._hear)
        self._attendant = Attendant(self._desk, book, watcher, token=_NAME, emit=self._hear)
        self._ticker.attendant, self._ticker.holding.inquiry = self._attendant, Inquiry(self._desk)

    def tick(self) -> list[Fired]:
        """Run one cycle and return the ticks that it fired. The misfire policy decides about late ticks."""
        before = len(self.fired)
        self._attend()
        self._ticker.turn(threading.Event())
        self._complain()
        return self.fired[before:]

    def tick_until(self, until: datetime | Duration) -> list[Fired]:
        """Move the clock from one due instant to the next up to `until`, and return the ticks fired on the way.

        `until` is an aware datetime or a duration from now. A tick at exactly that instant fires too.
        """
        before, aim = len(self.fired), ManualClock(self.clock.now)
        end = aim.set(until) if isinstance(until, datetime) else aim.advance(durations.parse(until, "until"))
        self.tick()
        while (due := self._desk.next_due()) and self.clock.now < due <= end:
            self.clock.set(due)
            self.tick()
        self.clock.set(end)
        return self.fired[before:]

    def run_jobs(self) -> list[Any]:
        """Take the queued jobs in the order in which they were fired, call them here, and return their results.

        An exception of a job propagates, and the jobs after it stay in their queues. When a run ends, the ticks that
        wait for it and the schedules that follow it are processed at once, and their jobs are called too.
        """
        results = []
        while self._taken < len(self.fired):
            fired = self.fired[self._taken]
            self._taken += 1
            for shard, (job, queue) in enumerate(fired.jobs.items()):
                if self.redis.lrem(job_template.queue_key(queue), 1, job):  # otherwise a worker has taken it
                    started = self.clock.now
                    results.append(fired.run(shard))
                    if fired.schedule_id in self._watched:
                        self._close(job, started)
                    self.redis.delete(job_template.job_key(job))
        return results

    def assert_fired(self, schedule_id: str, *, at: When | Iterable[When]) -> None:
        """Fail unless this scheduler has fired exactly these ticks of the schedule; text is read in its zone."""
        __tracebackhide__ = True
        schedule = find(schedule_id, self._registry)
        found = [fired.scheduled_for for fired in self.fired if fired.schedule_id == schedule.id]
        span = f"after {shown(schedule, self._started)} and up to {shown(schedule, self.clock.now)}"
        compare(schedule, instants(schedule, at), found, f"was not fired as expected {span}")

    def _attend(self) -> None:
        """Process every waiting tick now. A real scheduler does so every second, but this clock may stand still."""
        key = self._desk.keys.waiting_slots
        slots: Any = self.redis.zrange(key, 0, -1)
        if slots:
            self.redis.zadd(key, dict.fromkeys(slots, 0), xx=True)
        if slots or self.redis.exists(self._desk.keys.fanout):
            self._attendant.turn()

    def _close(self, job: str, started: datetime) -> None:
        """Record that a job has finished, as a worker and a run tracker would, because another tick may wait for it."""
        times = {"started_at": clock.text(started), "ended_at": clock.text(self.clock.now)}
        ended: Any = {"status": "finished", **times}
        self.redis.hset(job_template.job_key(job), mapping=ended)
        self.redis.zadd(self._desk.keys.open, {job: 0}, xx=True)
        self._attendant.clear(1)

    def _register(self) -> None:
        sync = Sync(self._desk, self._schedules.values(), beat=_NAME, emit=self._hear, groups=self._groups)
        sync.announce()
        sync.register()
        self._complain()

    def _hear(self, event: Event) -> None:
        about = event.fields
        if event.name in {"fired", "admitted", "followed"}:
            schedule = self._schedules[event.schedule_id]
            self.fired.append(
                Fired(
                    schedule_id=schedule.id,
                    scheduled_for=clock.read(about["tick"]),
                    enqueued_at=self.clock.now,
                    job_id=about["job_id"],
                    queue=about["queues"][0],
                    queues=tuple(about["queues"]) if len(about["queues"]) > 1 else (),
                    after=about.get("after"),
                    func=schedule.func,
                    args=tuple(schedule.args),
                    kwargs=dict(schedule.kwargs),
                    meta=dict(schedule.meta),
                )
            )
        elif event.name == "skipped":
            first = clock.read(about["tick"])
            self.skipped.append(Skipped(event.schedule_id, first, about["count"], about["reason"]))
        elif event.name in _TROUBLES:
            why = about.get("error") or about.get("words")
            self._troubles.append(f"schedule {event.schedule_id!r}: {event.name.replace('_', ' ')}: {why}")

    def _complain(self) -> None:
        if self._troubles:
            troubles, self._troubles = self._troubles, []
            raise BeatError("\n".join(troubles))


def _watched(schedules: Iterable[Schedule]) -> set[str]:
    """Return the ids of schedules whose own next ticks, or other schedules, depend on the end of their runs."""
    own = {each.id for each in schedules if each.overlap != "allow" or each.group or each.slow_queue}
    return own | {bond.to for each in schedules for bond in cross_checks.bonds(each)}


class _Desk(ImmediateStore):
    """A store that runs no script just to find that nothing is due, because fakeredis is slow at each script."""

    def claim(self, unread: Iterable[str] = (), **asked: Any) -> Claimed:
        due, now = self.next_due(), self.time()
        if due is None or due > now:
            return Claimed("OK", clock.to_ms(now))
        return super().claim(unread, **asked)

    def next_due(self) -> datetime | None:
        """Return the earliest due instant in the index, or None if the index is empty."""
        first = self.client.zrange(self.keys.due, 0, 0, withscores=True)
        return clock.from_ms(int(first[0][1])) if first else None


class _ByHand(RedisClock):
    """A Redis clock that needs no estimate, because it stands still between two replies."""

    def __init__(self, manual: ManualClock) -> None:
        super().__init__()
        self._manual = manual

    def now_ms(self) -> float:
        return clock.to_ms(self._manual.now)


class _Trusting(Guard):
    """A guard that accepts every jump of the clock, because a manual clock jumps on purpose."""

    def judge(self, now: Mark) -> Jump:  # noqa: ARG002 (the signature of Guard)
        return Jump.NONE
