"""Schedules that share a group: no model knows who comes first, but what must hold of all of them is known.

Never more runs at once than may be, in line the oldest tick first, nobody overtakes who waits, and every tick of every
schedule has one verdict, or waits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock

from beat.engine.run_tracker import Watcher
from beat.jobs import job_template
from beat.schedule.registry import Registry
from beat.storage.keys import Keys
from beat.storage.store import Store
from beat.testing import ManualBeat, manual_scheduler
from beat.testing.fake_redis import ClockedRedis
from beat.timing import clock
from tests.resilience.policies.stage import SURELY_DEAD_S, Pass, keep_house
from tests.resilience.policies.workers import QUEUE, Plan, Workers, text
from tests.support.job_functions import anything

if TYPE_CHECKING:
    from tests.resilience.policies.clients import Connect

_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Shared:
    """What happens to the schedules of a group."""

    limits: dict[str, Any]
    members: list[dict[str, Any]]
    """What each of them says."""
    passes: list[Pass]
    plans: list[Plan]
    begins: datetime


class Company:
    """Plays it."""

    def __init__(self, shared: Shared, connect: Connect | None = None) -> None:
        registry, self._shared = Registry(), shared
        self.group = registry.group("g", **shared.limits)
        self.members = [
            registry.register(anything, id=f"x{n}", group="g", **said) for n, said in enumerate(shared.members)
        ]
        with mock.patch.object(manual_scheduler, "ClockedRedis", connect or ClockedRedis):
            self.beat = ManualBeat(shared.begins, registry=registry)
        self.redis = self.beat.redis
        self.workers = Workers(self.redis, shared.plans, [QUEUE], _tick_of)
        self._watcher = Watcher(Store(self.redis, Keys()), name="housekeeper", emit=lambda _: None)

    def goes_on_to_the_end(self) -> None:
        """All passes, and then until nobody waits any more."""
        for each in self._shared.passes:
            self._pass(each)
        self.workers.hurry(self.beat.clock.now)
        for gap in (1, 1, 5, 75, SURELY_DEAD_S, *[1] * (3 + 2 * len(self._shared.members))):
            self._pass(Pass(gap))
        now, stood = self.beat.clock.now, [each for each in self.line if _tick(each) < self.beat.clock.now]
        for _ in range(60):  # what is caught up with is older, and comes first
            if {*stood} & {*self.line}:
                self._pass(Pass(1))
        assert not {*stood} & {*self.line}, f"somebody waits for nothing since {now}"

    # --- what Redis says ---------------------------------------------------------------------------------------------

    @property
    def line(self) -> list[str]:
        """Who waits for the group, the first one first."""
        return self._waiting("@g")

    def _waiting(self, slot: str) -> list[str]:
        return [text(each) for each in self.redis.zrange(f"beat:waiting:{slot}", 0, -1)]

    def _ledger(self, schedule_id: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.redis.lrange(f"beat:runs:{schedule_id}", 0, -1)]

    @property
    def lost(self) -> set[str]:
        """Runs that beat has given up."""
        return {line["job"] for each in self.members for line in self._ledger(each.id) if line["type"] == "lost"}

    # --- what must hold ----------------------------------------------------------------------------------------------

    def _is_sound(self, stood: list[str], before: set[str]) -> None:
        lost = self.lost
        going = [run for run in self.workers.runs.values() if run.stage != "ended" and run.job not in lost]
        assert len(going) <= self.group.max_running, "too many at once"
        line = self.line
        assert len(line) <= (self.group.max_waiting if self.group.when_full == "wait" else 0)
        assert line == sorted(line, key=_tick)
        came = [run for run in self.workers.runs.values() if run.job not in before]
        first = min((_tick(each) for each in line if each in stood), default=None)
        assert first is None or all(run.tick <= first for run in came), "somebody has overtaken"
        for each in self.members:
            self._has_one_verdict_for_each(each.id)

    def _has_one_verdict_for_each(self, schedule_id: str) -> None:
        schedule = next(each for each in self.members if each.id == schedule_id)
        waiting = [_tick(each) for each in self._waiting(schedule_id)]
        found = list(waiting)
        for line in self._ledger(schedule_id):
            if line["type"] == "enqueued":
                found.append(clock.read(line["tick"]))
            elif line["type"] == "skipped":
                found += schedule.ticks(clock.read(line["tick"]), clock.read(line["last"]) + _INSTANT)
        state = self.redis.hgetall(f"beat:schedule:{schedule_id}")
        decided = clock.read(text(state[b"next_run"])) if b"next_run" in state else max(found) + _INSTANT
        assert sorted(found) == [*schedule.ticks(self._shared.begins + _INSTANT, decided)], "not one verdict for each"
        assert {*self._waiting(schedule_id)} >= {each for each in self.line if each.split()[0] == schedule_id}

    # --- what happens ------------------------------------------------------------------------------------------------

    def _pass(self, each: Pass) -> None:
        before, stood, known = self.beat.clock.now, self.line, {*self.workers.runs}
        to = before + timedelta(seconds=each.gap or 1)
        self.workers.work(to)
        self.beat.clock.set(to)
        if each.housekeeping:
            lost = self.lost
            dead = any(run.stage == "dead" and run.job not in lost for run in self.workers.runs.values())
            keep_house(self.beat, self._watcher, before, to, dead=dead)
        with mock.patch.object(job_template, "stop", self.workers.stop):
            self.beat.tick()
        self.workers.notice(to)
        self._is_sound(stood, known)


def _tick(member: str) -> datetime:
    """Of one who waits."""
    return clock.read(member.split()[1])


def _tick_of(job: str) -> datetime:
    return clock.at(int(job.rpartition("_")[2]))
