"""The stage: one schedule, a real beat with a clock set by hand, workers that go by a plan, and the model beside them.

After every pass Redis must say of every tick what the model says of it.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock
from zoneinfo import ZoneInfo

from beat.engine.listening import Hearing
from beat.engine.run_tracker import Watcher
from beat.jobs import job_template
from beat.policies import jitter_and_capacity, routing
from beat.schedule import exclusions
from beat.schedule.registry import Registry
from beat.storage.keys import Keys
from beat.storage.store import Store
from beat.testing import ManualBeat, manual_scheduler
from beat.testing.fake_redis import ClockedRedis
from beat.timing import clock
from tests.resilience.policies import parents
from tests.resilience.policies.model import SECOND, Model, Policy, Tick
from tests.resilience.policies.workers import Plan, Workers, text
from tests.support.job_functions import anything

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beat.config.groups import Group
    from beat.schedule.schedule import Schedule
    from tests.resilience.policies.clients import Connect

BEGINS = datetime(2026, 11, 16, 9, tzinfo=UTC)
SURELY_DEAD_S = 280
"""Longer than RQ's default time limit of 180 s and the 90 s for which RQ would let a run outlive it."""
KNOWN = {
    *("meta", "announcements", "schedules", "events", "due", "open", "closed", "records", "waiting"),
    *("schedule:x", "template:x", "runs:x", "running:x", "waiting:x", "watching", "searched"),
    *("groups", "unread", "followers:x", "slow:x"),
    *(f"{kind}:@{name}" for kind in ("running", "waiting") for name in ("reports", "alerts")),
    *(f"{kind}:{parent}" for kind in ("schedule", "template", "runs", "followers") for parent in parents.NAMES),
    *("functions", "app:default", "in:all", "in:finished", "in:failing"),
}


@dataclass(frozen=True)
class Pass:
    """When a beat passes: so many seconds after the last one, or when the next tick is due."""

    gap: float | None = None
    housekeeping: bool = True
    """Whether the housekeeper has looked at the runs before."""


@dataclass(frozen=True)
class History:
    """What happens to one schedule, `x`."""

    options: dict[str, Any]
    passes: list[Pass]
    plans: list[Plan] = field(default_factory=lambda: [Plan()])
    begins: datetime = BEGINS
    settings: dict[str, Any] = field(default_factory=dict)
    successes: dict[str, list[datetime]] = field(default_factory=dict)
    """Of the schedules that it requires or follows, `y` and `z`: when they succeed."""


class Stage:
    """Plays a history. `connect` makes another Redis than the fake one, for a manual clock."""

    def __init__(self, history: History, connect: Connect | None = None) -> None:
        self._passes = history.passes
        registry = declared(history.options)
        self.schedule = registry.get("x")
        with mock.patch.object(manual_scheduler, "ClockedRedis", connect or ClockedRedis):
            self.beat = ManualBeat(history.begins, registry=registry, **history.settings)
        self.redis = self.beat.redis
        self.model = Model(_policy(self.schedule, registry.groups), _ticks(self.schedule, history.begins))
        self.workers = Workers(self.redis, history.plans, routing.all_queues(self.schedule), self._tick_of)
        self.ledger: list[dict[str, Any]] = []
        """Oldest first, as it was when it was last read."""
        store, self._successes = Store(self.redis, Keys()), history.successes
        self._watcher = Watcher(store, name="housekeeper", emit=lambda _: None)
        self._parents = parents.Parents(store, registry, self._successes)

    @property
    def now(self) -> datetime:
        return self.beat.clock.now

    def goes_on_to_the_end(self) -> None:
        """The whole history, and then until all is well again."""
        self.plays(*self._passes)
        self.recovers()

    def plays(self, *passes: Pass) -> None:
        """Each pass, and a look at what became of the ticks."""
        for each in passes:
            self._pass(each)
            self.agrees()

    def recovers(self) -> None:
        """All runs end, passes go on, and all is as if nothing had been: who waits gets in, and ticks become jobs."""
        waited, before = self.waiting, len(self.model.enqueued)
        self.workers.hurry(self.now)
        for times in self._successes.values():  # and what it waits for goes well
            times += [self.now + n * timedelta(minutes=10) for n in range(1, 100)]
        self.plays(Pass(1), Pass(1))
        if any(run.stage == "dead" for run in self._runs):
            self.plays(Pass(5), Pass(75), Pass(SURELY_DEAD_S))
        if self.schedule.follows:
            self.plays(Pass(600), Pass(1), Pass(600))
            assert len(self.model.enqueued) > before or self.state["state"] == "finished"
        while (when := self._wanted()) and len(self.model.enqueued) == before:
            self.plays(Pass(max(0, (when - self.now).total_seconds())))
        self.plays(*[Pass(1)] * (2 + max(self.model.policy.max_waiting, len(self.waiting))))
        assert {*waited} <= {*self.verdicts}, "a tick waits for nothing"
        assert {run.job for run in self._runs if run.stage == "dead"} == self.lost
        keys = {text(key).removeprefix("beat:") for key in self.redis.keys("beat:*")}
        for_a_while = ("announced:", "request:", *(("shards:", "told:") if self.schedule.overlap == "replace" else ()))
        assert {key for key in keys - KNOWN if not key.startswith(for_a_while)} == set(), "left behind"
        if self.model.policy.overlap != "allow":
            assert self.redis.zcard("beat:running:x") <= self.model.policy.max_running * self.model.policy.parts

    def _wanted(self) -> datetime | None:
        """When the next tick may fire that lies on no day of rest; one before it may have more jitter."""
        if not (self.model.next and self.model.wakes):
            return None
        ticks = _ticks(self.schedule, self.model.next.at - SECOND)
        return next((max(tick.due, self.model.wakes) for tick in ticks if not tick.excluded), None)

    # --- what Redis says ---------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Reads what the ledger has got since, which is never cut short here."""
        new = self.redis.lrange("beat:runs:x", 0, -1 - len(self.ledger))
        self.ledger += [json.loads(line) for line in reversed(new)]

    @property
    def lost(self) -> set[str]:
        """Runs that beat has given up."""
        return {line["job"] for line in self.ledger if line["type"] == "lost"}

    @property
    def state(self) -> dict[str, str]:
        return {text(name): text(value) for name, value in self.redis.hgetall("beat:schedule:x").items()}

    @property
    def verdicts(self) -> dict[datetime, str]:
        """Of every tick its only one, in the order in which they were given."""
        found: dict[datetime, str] = {}
        for line in self.ledger:
            for tick in self._ticks_of(line):
                assert tick not in found, f"{tick} has two verdicts"
                by = "catchup" if line.get("by") == "catchup" else "enqueued"
                found[tick] = by if line["type"] == "enqueued" else line["reason"]
        return found

    def _ticks_of(self, line: dict[str, Any]) -> list[datetime]:
        if line["type"] == "enqueued" or (line["type"] == "skipped" and self.schedule.follows):
            return [clock.read(line["tick"])]
        if line["type"] != "skipped":
            return []
        ticks = [*self.schedule.ticks(clock.read(line["tick"]), clock.read(line["last"]) + timedelta(microseconds=1))]
        assert len(ticks) == line["count"], line
        return ticks

    @property
    def waiting(self) -> list[datetime]:
        return [clock.read(text(member).split()[1]) for member in self.redis.zrange("beat:waiting:x", 0, -1)]

    def _tick_of(self, job: str) -> datetime:
        """Of a job, or of a part of one."""
        lines = {line["job"]: line["tick"] for line in self.ledger if line["type"] == "enqueued"}
        return clock.read(lines[job if job in lines else job.rpartition("_s")[0]])

    # --- what must hold ----------------------------------------------------------------------------------------------

    def agrees(self) -> None:
        """Redis says what the model says, and what must hold whatever the model says."""
        model, state, verdicts = self.model, self.state, self.verdicts
        assert verdicts == model.verdicts, (verdicts, model.verdicts)
        assert self.waiting == [tick.at for tick in model.waiting]
        assert state.get("next_run", "") == (clock.text(model.next.at) if model.next else "")
        expected = "disabled" if not self.schedule.enabled else "active" if model.goes_on else "finished"
        assert state["state"] == expected
        ticks = list(dict.fromkeys(run.tick for run in self._runs))
        assert ticks == model.enqueued == sorted(model.enqueued), "in the order of their ticks"
        assert len(self._runs) == len(ticks) * model.policy.parts
        assert int(state["run_count"]) == len(ticks)
        assert int(state["skip_count"]) == len(verdicts) - len(ticks)
        self._is_sound()

    def _is_sound(self) -> None:
        policy, runs, ledger, lost = self.model.policy, self._runs, self.ledger, self.lost
        going = [run for run in runs if run.stage != "ended" and run.job not in lost]
        assert policy.overlap == "allow" or len({run.tick for run in going}) <= policy.max_running, "too many at once"
        assert policy.group is None or len(going) <= policy.group.max_running, "too many of the group at once"
        assert len(self.waiting) <= policy.max_waiting + (policy.group.max_waiting if policy.group else 0)
        assert policy.max_runs is None or len({run.tick for run in runs}) <= policy.max_runs
        waited = {line["tick"] for line in ledger if line["type"] == "waiting"}
        begun = [
            line
            for line in ledger
            if line["type"] == "waiting" or (line["type"] == "enqueued" and line["tick"] not in waited)
        ]
        for line in begun:
            tick, at = clock.read(line["tick"]), clock.read(line["at"])
            assert tick <= jitter_and_capacity.due(self.schedule, tick) <= min(at, tick + policy.jitter), "too early"
            assert at - tick <= policy.catchup_window + policy.jitter, "too old"
            assert not _rests(self.schedule, tick), "on a day of rest"
        caught_up = Counter(line["at"] for line in begun if line.get("by") == "catchup")
        assert max(caught_up.values(), default=0) <= policy.catchup_limit, "too many at once"

    @property
    def _runs(self) -> list[Any]:
        return list(self.workers.runs.values())

    # --- what happens ------------------------------------------------------------------------------------------------

    def _pass(self, each: Pass) -> None:
        before = self.now
        wakes = self.model.wakes or before + SECOND
        to = max(before, wakes) if each.gap is None else before + timedelta(seconds=each.gap)
        self.workers.work(to)
        succeeded = self._parents.succeed(self.beat.clock, before, to)
        self.beat.clock.set(to)
        if each.housekeeping:
            dead = any(run.stage == "dead" and run.job not in self.lost for run in self._runs)
            keep_house(self.beat, self._watcher, before, to, dead=dead)
            self.read()
        lost = self.lost
        ended = {run.tick for run in self._runs if run.stage == "ended" or run.job in lost}
        queued = {run.tick for run in self._runs if run.stage == "queued"}
        arrivals = [Tick(to, to, _rests(self.schedule, to))] if self.schedule.follows in succeeded else []
        required = [self._parents.last.get(each.id) for each in self.schedule.requires]
        if self.schedule.enabled or self.schedule.follows:
            self.model.passes(
                to, ended=ended, queued=queued, succeeded=required[0] if required else None, arrivals=arrivals
            )
        with mock.patch.object(job_template, "stop", self.workers.stop):
            self.beat.tick()
        self.read()
        self.workers.notice(to)


def keep_house(beat: ManualBeat, watcher: Watcher, before: datetime, to: datetime, *, dead: bool) -> None:
    """As the housekeeper does twice a second. Of dead runs it makes sure in one second of five."""
    for seconds in range(4 if dead else 0, -1, -1):
        beat.clock.set(max(before, to - seconds * SECOND), backwards=True)
        beat.redis.delete("beat:watching", "beat:searched")
        with mock.patch.object(Hearing, "since", return_value=0):  # the clock leaps, but workers were heard all along
            watcher.turn()
        if dead:
            watcher.search()


def declared(options: dict[str, Any]) -> Registry:
    """The schedule, with groups that it may be of and schedules that it may wait for."""
    registry, said = Registry(), {"id": "x", **options}
    registry.register(anything, said.pop("cron", None), **said)
    if said.get("group"):
        registry.group("reports", max_running=1)
        registry.group("alerts", max_running=1, when_full="skip")
    if said.get("requires") or said.get("follows"):
        parents.declare(registry)
    return registry


def _policy(schedule: Schedule, groups: Mapping[str, Group]) -> Policy:
    said = {name: getattr(schedule, name, None) for name in Policy.__dataclass_fields__}
    said["group"] = groups[schedule.group] if schedule.group else None
    said["within"] = schedule.requires[0].within if schedule.requires else None
    said["parts"] = len(schedule.queues) if schedule.route == "broadcast" else None
    return Policy(**{name: value for name, value in said.items() if value is not None})


def _ticks(schedule: Schedule, begins: datetime) -> Iterator[Tick]:
    for at in schedule.ticks(begins + timedelta(microseconds=1)):
        yield Tick(at, jitter_and_capacity.due(schedule, at), _rests(schedule, at))


def _rests(schedule: Schedule, tick: datetime) -> bool:
    day = tick.astimezone(ZoneInfo(schedule.tz or "UTC")).date()
    return any(_covers(one, day) for one in schedule.exclude)


def _covers(one: str, day: date) -> bool:
    if not one[0].isdigit():
        return exclusions.rests([one], day)
    first, _, last = one.partition("..")
    return date.fromisoformat(first) <= day <= date.fromisoformat(last or first)
