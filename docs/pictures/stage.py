"""A manual beat and workers that take their time, and what became of each tick: all of it from the real scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from beat import Registry, clock, jobs
from beat.testing import ManualBeat

_QUEUE = jobs.queue_key("default")
STEP = timedelta(seconds=5)
"""How often the beat looks, and how often a worker."""


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
    marks: Mapping[str, datetime] = field(default_factory=dict)
    """Instants that have a name."""
    every: timedelta = timedelta(minutes=1)
    """Between two times that are written."""
    says: str = "%H:%M"

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
    for name, options in scene.schedules.items():
        registry.register(work, id=name, **options)
    beat = ManualBeat(scene.start - STEP, registry=registry)
    workers = [_Worker(beat, f"worker-{n}", scene) for n in range(scene.workers)]
    while beat.clock.now < scene.end:
        beat.clock.advance(STEP)
        for _ in range(2):  # who is free takes what has just come
            for worker in workers:
                worker.turn()
            if not scene.away or not scene.away[0] <= beat.clock.now < scene.away[1]:
                beat.tick()
    runs = {run.job: run for worker in workers for run in worker.runs}
    return [_row(beat, scene, registry, name, runs) for name in scene.schedules]


def work() -> None:
    """Never called: the workers only take their time."""


class _Worker:
    """Does what RQ's worker does to a job's hash, and hears when it is told to stop."""

    def __init__(self, beat: ManualBeat, name: str, scene: Scene) -> None:
        self._redis, self._clock, self._name, self._takes = beat.redis, beat.clock, name, scene.takes
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
            while at is not None and at <= last:
                found[at] = Tick(at, "skipped", reason=line["reason"])
                at = schedule.after(at)
    at = schedule.timing.after(scene.start - STEP)
    while at is not None and at <= scene.end:
        found.setdefault(at, Tick(at, "none"))
        at = schedule.timing.after(at)
    return Row(name, [found[at] for at in sorted(found)], ran)
