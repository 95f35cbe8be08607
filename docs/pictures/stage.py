"""A manual beat and workers that take their time, and what became of each tick: all of it from the real scripts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from beat import Registry, clock, jobs
from beat.testing import ManualBeat

if TYPE_CHECKING:
    from collections.abc import Mapping

_QUEUE = jobs.queue_key("default")


@dataclass(frozen=True)
class Scene:
    """What is to be shown."""

    name: str
    """Of the file."""
    schedules: Mapping[str, Mapping[str, Any]]
    """By id: what is declared."""
    start: datetime = datetime(2026, 11, 16, 9, tzinfo=UTC)
    lasts: timedelta = timedelta(minutes=10)
    takes: timedelta = timedelta(seconds=20)
    """How long a run takes."""
    workers: int = 3
    away: tuple[datetime, datetime] | None = None
    """When no beat runs."""
    spans: Mapping[str, tuple[datetime, datetime]] = field(default_factory=dict)
    """Stretches of time that have a name."""
    every: timedelta = timedelta(minutes=1)
    """Between two times that are written."""
    says: str = "%H:%M"
    step: timedelta = timedelta(seconds=5)
    """How often the beat looks, and how often a worker."""

    @property
    def end(self) -> datetime:
        """The last instant that is shown."""
        return self.start + self.lasts


@dataclass(frozen=True)
class Tick:
    """What became of one."""

    at: datetime
    became: str
    """Enqueued, caught up, waited, waits, skipped, or none at all."""
    fired: datetime | None = None
    reason: str = ""


@dataclass
class Run:
    """What a worker did."""

    job: str
    start: datetime
    end: datetime
    stopped: bool = False


@dataclass(frozen=True)
class Row:
    """One schedule."""

    id: str
    ticks: list[Tick]
    runs: list[tuple[Tick, Run]]


def play(scene: Scene) -> list[Row]:
    """The scene, from its start to its end."""
    registry = Registry()
    for name, declared in scene.schedules.items():
        options: Any = {option: value for option, value in declared.items() if option != "cron"}
        registry.register(work, declared.get("cron"), id=name, **options)
    beat = ManualBeat(scene.start - scene.step, registry=registry)
    workers = [_Worker(beat, f"worker-{n}", scene) for n in range(scene.workers)]
    while beat.clock.now < scene.end:
        was_away, is_away = (_is_away(scene, at) for at in (beat.clock.now, beat.clock.now + scene.step))
        if was_away or is_away:
            beat.clock.advance(scene.step)
        else:
            beat.tick_until(scene.step)
        for worker in workers:
            worker.turn()
        if not is_away:
            beat.tick()  # the beat is back, or a run has ended
        for worker in workers:  # and who is free takes what has just come
            worker.turn()
    runs = {run.job: run for worker in workers for run in worker.runs}
    return [_row(beat, scene, registry, name, runs) for name in scene.schedules]


def _is_away(scene: Scene, at: datetime) -> bool:
    return scene.away is not None and scene.away[0] <= at < scene.away[1]


def work() -> None:
    """Never called: the workers only take their time."""


class _Worker:
    """Does what RQ's worker does to a job's hash, and hears when it is told to stop."""

    def __init__(self, beat: ManualBeat, name: str, scene: Scene) -> None:
        self._redis = cast("Any", beat.redis)
        self._clock, self._name, self._takes = beat.clock, name, scene.takes
        self._commands = self._redis.pubsub(ignore_subscribe_messages=True)
        self._commands.subscribe(f"rq:pubsub:{name}")
        self._commands.get_message()
        self._busy = False
        self.runs: list[Run] = []

    def turn(self) -> None:
        now, told = self._clock.now, self._commands.get_message()
        if self._busy:
            run = self.runs[-1]
            run.stopped = bool(told) and json.loads(told["data"])["job_id"] == run.job
            if not run.stopped and now < run.start + self._takes:
                run.end = now
                return
            run.end, self._busy = now, False
            self._write(run, status="stopped" if run.stopped else "finished", ended_at=clock.text(now))
        if job := self._redis.lpop(_QUEUE):
            self.runs.append(Run(job.decode(), now, now))
            self._busy = True
            self._write(self.runs[-1], status="started", started_at=clock.text(now), worker_name=self._name)

    def _write(self, run: Run, **fields: str) -> None:
        self._redis.hset(jobs.job_key(run.job), mapping=fields)


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
            if line["job"] in runs:
                ran.append((found[at], runs[line["job"]]))
        elif line["type"] == "skipped":
            last = clock.read(line["last"])
            skipped = [at, *schedule.timing.ticks(at, last), last]
            found |= {each: Tick(each, "skipped", reason=line["reason"]) for each in skipped}
    for at in schedule.timing.ticks(scene.start, scene.end):
        found.setdefault(at, Tick(at, "none"))
    return Row(name, [found[at] for at in sorted(found)], ran)
