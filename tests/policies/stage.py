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

from beat import clock, exclusions, jobs, policies
from beat.keys import Keys
from beat.registry import Registry
from beat.store import Store
from beat.testing import ManualBeat, manual_beat
from beat.testing.fake_redis import ClockedRedis
from beat.watcher import Watcher
from tests.policies.model import SECOND, Model, Policy, Tick
from tests.policies.workers import Plan, Workers, text
from tests.redis.job_functions import anything

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.schedule import Schedule
    from tests.policies.clients import Connect

BEGINS = datetime(2026, 11, 16, 9, tzinfo=UTC)
DEAD_FOR = timedelta(seconds=60)
"""How long a run must be missing before it counts as lost."""
KNOWN = {
    *("meta", "announcements", "schedules", "events", "due", "open", "closed", "records", "waiting"),
    *("schedule:x", "template:x", "runs:x", "running:x", "waiting:x", "watching", "searched"),
    *("groups", "unread", "followers:x", "slow:x"),
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
    """What happens to one schedule."""

    options: dict[str, Any]
    passes: list[Pass]
    plans: list[Plan] = field(default_factory=lambda: [Plan()])
    begins: datetime = BEGINS
    settings: dict[str, Any] = field(default_factory=dict)


class Stage:
    """Plays a history. `connect` makes another Redis than the fake one, for a manual clock."""

    def __init__(self, history: History, connect: Connect | None = None) -> None:
        self._passes = history.passes
        registry, options = Registry(), {"id": "x", **history.options}
        self.schedule = registry.register(anything, options.pop("cron", None), **options)
        with mock.patch.object(manual_beat, "ClockedRedis", connect or ClockedRedis):
            self.beat = ManualBeat(history.begins, registry=registry, **history.settings)
        self.redis = self.beat.redis
        self.model = Model(_policy(self.schedule), _ticks(self.schedule, history.begins))
        self.workers = Workers(self.redis, history.plans)
        self.ledger: list[dict[str, Any]] = []
        """Oldest first, as it was when it was last read."""
        self._watcher = Watcher(Store(self.redis, Keys()), name="housekeeper", emit=lambda _: None)

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
        self.plays(Pass(1), Pass(1))
        if any(run.stage == "dead" for run in self._runs):
            self.plays(Pass(5), Pass(75), Pass(75))
        while (when := self._wanted()) and len(self.model.enqueued) == before:
            self.plays(Pass(max(0, (when - self.now).total_seconds())))
        self.plays(*[Pass(1)] * (2 + self.model.policy.max_waiting))
        assert {*waited} <= {*self.verdicts}, "a tick waits for nothing"
        assert {run.job for run in self._runs if run.stage == "dead"} == self.lost
        keys = {text(key).removeprefix("beat:") for key in self.redis.keys("beat:*")}
        assert {key for key in keys - KNOWN if not key.startswith("announced:")} == set(), "left behind"
        if self.model.policy.overlap != "allow":
            assert self.redis.zcard("beat:running:x") <= self.model.policy.max_running

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
        if line["type"] == "enqueued":
            return [clock.read(line["tick"])]
        if line["type"] != "skipped":
            return []
        ticks = [*self.schedule.ticks(clock.read(line["tick"]), clock.read(line["last"]) + timedelta(microseconds=1))]
        assert len(ticks) == line["count"], line
        return ticks

    @property
    def waiting(self) -> list[datetime]:
        return [clock.read(text(member).split()[1]) for member in self.redis.zrange("beat:waiting:x", 0, -1)]

    # --- what must hold ----------------------------------------------------------------------------------------------

    def agrees(self) -> None:
        """Redis says what the model says, and what must hold whatever the model says."""
        model, state, verdicts = self.model, self.state, self.verdicts
        assert verdicts == model.verdicts, (verdicts, model.verdicts)
        assert self.waiting == [tick.at for tick in model.waiting]
        assert state.get("next_run", "") == (clock.text(model.next.at) if model.next else "")
        expected = "disabled" if not self.schedule.enabled else "active" if model.next else "finished"
        assert state["state"] == expected
        assert [run.tick for run in self._runs] == model.enqueued == sorted(model.enqueued), (
            "in the order of their ticks"
        )
        assert int(state["run_count"]) == len(self._runs)
        assert int(state["skip_count"]) == len(verdicts) - len(self._runs)
        self._is_sound()

    def _is_sound(self) -> None:
        policy, runs, ledger, lost = self.model.policy, self._runs, self.ledger, self.lost
        going = [run for run in runs if run.stage != "ended" and run.job not in lost]
        assert policy.overlap == "allow" or len(going) <= policy.max_running, "too many at once"
        assert len(self.waiting) <= policy.max_waiting
        assert policy.max_runs is None or len(runs) <= policy.max_runs
        waited = {line["tick"] for line in ledger if line["type"] == "waiting"}
        begun = [
            line
            for line in ledger
            if line["type"] == "waiting" or (line["type"] == "enqueued" and line["tick"] not in waited)
        ]
        for line in begun:
            tick, at = clock.read(line["tick"]), clock.read(line["at"])
            assert tick <= policies.due(self.schedule, tick) <= min(at, tick + policy.jitter), "too early"
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
        self.beat.clock.set(to)
        if each.housekeeping:
            self._keep_house(before, to)
            self.read()
        lost = self.lost
        ended = {run.tick for run in self._runs if run.stage == "ended" or run.job in lost}
        queued = {run.tick for run in self._runs if run.stage == "queued"}
        if self.schedule.enabled:
            self.model.passes(to, ended=ended, queued=queued)
        with mock.patch.object(jobs, "stop", self.workers.stop):
            self.beat.tick()
        self.workers.notice(to)
        self.read()

    def _keep_house(self, before: datetime, to: datetime) -> None:
        """As the housekeeper does twice a second. Of dead runs it makes sure in one second of five."""
        dead = any(run.stage == "dead" and run.job not in self.lost for run in self._runs)
        for seconds in range(4 if dead else 0, -1, -1):
            self.beat.clock.set(max(before, to - seconds * SECOND), backwards=True)
            self.redis.delete("beat:watching", "beat:searched")
            self._watcher.turn()
            if dead:
                self._watcher.search()


def _policy(schedule: Schedule) -> Policy:
    said = {name: getattr(schedule, name) for name in Policy.__dataclass_fields__}
    return Policy(**{name: value for name, value in said.items() if value is not None})


def _ticks(schedule: Schedule, begins: datetime) -> Iterator[Tick]:
    for at in schedule.ticks(begins + timedelta(microseconds=1)):
        yield Tick(at, policies.due(schedule, at), _rests(schedule, at))


def _rests(schedule: Schedule, tick: datetime) -> bool:
    day = tick.astimezone(ZoneInfo(schedule.tz or "UTC")).date()
    return any(_covers(one, day) for one in schedule.exclude)


def _covers(one: str, day: date) -> bool:
    if not one[0].isdigit():
        return exclusions.rests([one], day)
    first, _, last = one.partition("..")
    return date.fromisoformat(first) <= day <= date.fromisoformat(last or first)
