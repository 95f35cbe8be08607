"""Play a scene with a `ManualBeat` and simulated workers. The real scripts make every decision."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from beat import Registry
from beat.engine.run_tracker import Watcher
from beat.jobs import job_template
from beat.storage.keys import Keys
from beat.storage.store import Store
from beat.testing import ManualBeat
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True)
class Scene:
    """The schedules and conditions that a picture shows."""

    name: str
    """The name of the file."""
    schedules: Mapping[str, Mapping[str, Any]]
    """The options of each schedule, by id."""
    start: datetime = datetime(2026, 11, 16, 9, tzinfo=UTC)
    lasts: timedelta = timedelta(minutes=10)
    takes: timedelta = timedelta(seconds=20)
    """How long a run takes."""
    workers: int = 3
    away: tuple[datetime, datetime] | None = None
    """When no scheduler runs."""
    spans: Mapping[str, tuple[datetime, datetime]] = field(default_factory=dict)
    """Periods of time to mark, by name."""
    every: timedelta = timedelta(minutes=1)
    """The time between two labels of the axis."""
    says: str = "%H:%M"
    step: timedelta = timedelta(seconds=5)
    """How often the scheduler and the workers look."""
    page: str = "policies"
    """The guide that shows the picture."""
    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    queues: tuple[str, ...] = ()
    """The queues to show instead of schedules. Each has one worker."""
    off: Mapping[str, tuple[datetime, datetime]] = field(default_factory=dict)
    """When a queue has no worker, by queue."""
    longer: tuple[datetime, datetime, timedelta] | None = None
    """The start and end of a period with longer runs, and how long these take."""
    fails: tuple[datetime, ...] = ()
    """The ticks whose runs fail."""

    @property
    def end(self) -> datetime:
        """Return the last instant that is shown."""
        return self.start + self.lasts

    @property
    def alone(self) -> bool:
        """Return whether the picture has only one row, which needs no name."""
        return len(self.queues or self.schedules) == 1

    @property
    def shows_runs(self) -> bool:
        """Return whether the picture shows runs as well as ticks."""
        return self.alone or self.page == "places"


@dataclass(frozen=True)
class Tick:
    """A tick, and the decision on it."""

    at: datetime
    became: str
    """The decision: enqueued, caught up, waited, waits, skipped or none."""
    fired: datetime | None = None
    reason: str = ""


@dataclass
class Run:
    """A run of a job by a worker."""

    job: str
    start: datetime
    end: datetime
    stopped: bool = False
    failed: bool = False


@dataclass(frozen=True)
class Row:
    """A row of the picture: one schedule or one queue."""

    id: str
    ticks: list[Tick]
    runs: list[tuple[Tick, Run]]


def play(scene: Scene) -> list[Row]:
    """Play the scene from start to end, and return its rows."""
    registry = Registry()
    for name, limits in scene.groups.items():
        registry.group(name, **cast("Any", limits))
    for name, declared in scene.schedules.items():
        options: Any = {option: value for option, value in declared.items() if option != "cron"}
        registry.register(work, declared.get("cron"), id=name, **options)
    beat = ManualBeat(scene.start - scene.step, registry=registry)
    places = scene.queues or ("default",) * scene.workers
    workers = [_Worker(beat, f"worker-{n}", queue, scene) for n, queue in enumerate(places)]
    watcher = Watcher(Store(beat.redis, Keys()), name="housekeeper", emit=lambda _: None)
    while beat.clock.now < scene.end:
        was_away, is_away = (_is_away(scene, at) for at in (beat.clock.now, beat.clock.now + scene.step))
        if was_away or is_away:
            beat.clock.advance(scene.step)
        else:
            beat.tick_until(scene.step)
        for worker in workers:
            worker.turn()
        if scene.page == "places":  # it matters there how a run has ended
            beat.redis.delete("beat:watching")
            watcher.turn()
        if not is_away:
            beat.tick()  # the beat is back, or a run has ended
        for worker in workers:  # and who is free takes what has just come
            worker.turn()
    runs = {run.job: run for worker in workers for run in worker.runs}
    rows = [_row(beat, scene, registry, name, runs) for name in scene.schedules]
    return [_queue(beat, rows, name) for name in scene.queues] or rows


def _is_away(scene: Scene, at: datetime) -> bool:
    return scene.away is not None and scene.away[0] <= at < scene.away[1]


def work() -> None:
    """Stand in for the function of the schedules; the simulated workers never call it."""


class _Worker:
    """A simulated worker: it writes to a job's hash as an RQ worker does, and obeys the command to stop."""

    def __init__(self, beat: ManualBeat, name: str, queue: str, scene: Scene) -> None:
        self._redis = cast("Any", beat.redis)
        self._clock, self._name, self._queue, self._scene = beat.clock, name, queue, scene
        self._seen = ("", False)
        self._appear()
        self._commands = self._redis.pubsub(ignore_subscribe_messages=True)
        self._commands.subscribe(f"rq:pubsub:{name}")
        self._commands.get_message()
        self._busy = False
        self.runs: list[Run] = []

    def turn(self) -> None:
        now, told = self._clock.now, self._commands.get_message()
        self._appear()
        if self._busy:
            run = self.runs[-1]
            run.stopped = bool(told) and json.loads(told["data"])["job_id"] == run.job
            if not run.stopped and now < run.start + self._takes(run):
                run.end = now
                self._show_life(run)
                return
            run.end, self._busy = now, False
            run.failed = any(run.job.endswith(f"_{at.timestamp():.0f}") for at in self._scene.fails)
            status = "stopped" if run.stopped else "failed" if run.failed else "finished"
            self._write(run, status=status, ended_at=clock.text(now))
            self._redis.hset(f"rq:worker:{self._name}", mapping={"state": "idle", "current_job": ""})
        if not self._is_off and (job := self._redis.lpop(job_template.queue_key(self._queue))):
            self.runs.append(Run(job.decode(), now, now))
            self._busy = True
            self._redis.hset(f"rq:worker:{self._name}", mapping={"state": "busy", "current_job": job})
            self._write(self.runs[-1], status="started", started_at=clock.text(now), worker_name=self._name)

    def _show_life(self, run: Run) -> None:
        """Write the heartbeat of a run, as RQ does. A run without one for a minute counts as lost."""
        self._redis.zadd(job_template.EXECUTIONS_PREFIX + run.job, {"1": 0})
        self._redis.hset(f"{job_template.EXECUTION_PREFIX}{run.job}:1", "last_heartbeat", self._clock.now.timestamp())

    def _takes(self, run: Run) -> timedelta:
        begin, end, longer = self._scene.longer or (run.end, run.start, self._scene.takes)
        return longer if begin <= run.start < end else self._scene.takes

    @property
    def _is_off(self) -> bool:
        begin, end = self._scene.off.get(self._queue, (self._scene.end, self._scene.start))
        return begin <= self._clock.now < end

    def _appear(self) -> None:
        """Register the worker with a heartbeat once a minute, or remove it while it is off."""
        worker, seen = f"rq:worker:{self._name}", (f"{self._clock.now:%H:%M}", self._is_off)
        if seen == self._seen:
            return
        self._seen = seen
        if self._is_off:
            self._redis.delete(worker)
            self._redis.srem(f"rq:workers:{self._queue}", worker)
        else:
            now = clock.text(self._clock.now)
            self._redis.hset(worker, mapping={"birth": now, "last_heartbeat": now})
            self._redis.hsetnx(worker, "state", "idle")
            self._redis.sadd(f"rq:workers:{self._queue}", worker)

    def _write(self, run: Run, **fields: str) -> None:
        self._redis.hset(job_template.job_key(run.job), mapping=fields)


def _row(beat: ManualBeat, scene: Scene, registry: Registry, name: str, runs: Mapping[str, Run]) -> Row:
    schedule = registry.get(name)
    found: dict[datetime, Tick] = {}
    ran: list[tuple[Tick, Run]] = []
    for line in map(json.loads, reversed(beat.redis.lrange(f"beat:runs:{name}", 0, -1))):
        at = clock.read(line["tick"]) if line.get("tick") else scene.start
        if line["type"] == "waiting":
            found[at] = Tick(at, "waits")
        elif line["type"] == "enqueued":
            became = "waited" if at in found else {"catchup": "caught up"}.get(line["by"], "enqueued")
            found[at] = Tick(at, became, clock.read(line["at"]))
            ran += [(found[at], runs[job]) for job in _jobs(line) if job in runs]
        elif line["type"] == "skipped":
            last = clock.read(line["last"])
            skipped = [at, *schedule.timing.ticks(at, last), last]
            found |= {each: Tick(each, "skipped", reason=line["reason"]) for each in skipped}
    for at in schedule.timing.ticks(scene.start, scene.end) if scene.page == "policies" else ():
        found.setdefault(at, Tick(at, "none"))
    return Row(name, [found[at] for at in sorted(found)], ran)


def _jobs(line: dict[str, Any]) -> Iterator[str]:
    """Yield the job ids of a tick."""
    if "shards" in line:
        yield from (f"{line['job']}_s{n}" for n in range(line["shards"]))
    else:
        yield line["job"]


def _queue(beat: ManualBeat, rows: list[Row], name: str) -> Row:
    """Return the row of a queue, with the ticks and runs that went to it."""
    here = [(tick, run) for row in rows for tick, run in row.runs if _origin(beat, run.job) == name]
    return Row(name, [tick for tick, _ in here], here)


def _origin(beat: ManualBeat, job: str) -> str:
    return str(cast("Any", beat.redis).hget(job_template.job_key(job), "origin").decode())
