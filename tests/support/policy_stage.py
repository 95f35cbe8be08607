"""Schedules with policies, fired by hand: what ManualBeat made of them is asked for as people do, at the same time."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from unittest import mock

from click.testing import CliRunner

from beat import Client, Registry
from beat.cli import common_options, history, show, verify, why
from beat.client.reader import Archive
from beat.engine.registrar import Sync
from beat.jobs.job_template import job_key
from beat.storage.keys import Keys
from beat.storage.store import Store
from beat.testing import ManualBeat
from beat.timing import clock
from tests.support.job_functions import anything

if TYPE_CHECKING:
    from beat.client.explain import Explanation
    from beat.history.verify import Verification

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)  # a Monday
RUNS = "beat:runs:report"


class Policed:
    """A schedule `report`, every minute from 09:01 on unless it says otherwise, and whoever asks about it."""

    def __init__(self, *, history_limit: int = 1000, **options: Any) -> None:
        self.beat = ManualBeat(NINE, registry=_registry(options), history_limit=history_limit)
        self.redis: Any = self.beat.redis
        self.redis.set_response_callback("TIME", lambda *_, **__: self.redis.time())  # in a transaction, too
        self.client = Client(self.redis)
        here = Store(self.redis, Keys()), Archive(self.redis, Keys())
        self.client._store, self.client._archive = here  # noqa: SLF001 (it would open a connection with another clock)

    def until(self, minutes: float) -> Policed:
        """A beat is there all the time."""
        self.beat.tick_until(f"{int(minutes * 60)}s")
        return self

    def away(self, minutes: float) -> Policed:
        """No beat is there, and then one."""
        self.beat.clock.advance(f"{int(minutes * 60)}s")
        self.beat.tick()
        return self

    def work(self) -> Policed:
        """The jobs in the queue are run one after the other, and a beat takes note."""
        self.beat.run_jobs()
        self.beat.clock.advance("1s")
        self.beat.tick()
        return self

    def begin(self, minute: int) -> str:
        """A worker takes the job of that minute, and is at it."""
        job = self.job(minute)
        self.redis.lrem("rq:queue:default", 1, job)
        began = {"status": "started", "started_at": clock.text(self.beat.clock.now), "worker_name": "w1"}
        self.redis.hset(job_key(job), mapping=began)
        return job

    def end(self, minute: int) -> Policed:
        """The run of that minute ends well, and a beat takes note a second later."""
        job = self.job(minute)
        self.redis.lrem("rq:queue:default", 1, job)
        ended = {"status": "finished", "ended_at": clock.text(self.beat.clock.now)}
        self.redis.hset(job_key(job), mapping=ended)
        self.beat.clock.advance("1s")
        self.beat.tick()
        return self

    def change(self, **options: Any) -> Policed:
        """The code declares something else."""
        sync = Sync(Store(self.redis, Keys()), _registry(options), beat="another", emit=lambda _: None)
        sync.announce()
        sync.register()
        return self

    def job(self, minute: int) -> str:
        return Keys().job("report", clock.floor(NINE) + 60 * minute)

    def why(self, minute: float) -> Explanation:
        return self.client.why("report", clock.at(clock.floor(NINE) + int(60 * minute)))

    def verify(self) -> Verification:
        [found] = self.client.verify("report")
        return found

    def sound(self) -> Verification:
        found = self.verify()
        assert (found.problems, found.missing, found.double) == ((), (), ())
        return found

    def says(self, command: str, *words: str) -> str:
        """What the command prints about the schedule."""
        with mock.patch.object(common_options, "client", return_value=self.client):
            done = CliRunner().invoke(_COMMANDS[command].command, ["report", *words], standalone_mode=False)
        if done.exception:
            raise done.exception
        return done.stdout

    def document(self, command: str, *words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.says(command, *words, "--json"))
        return found


_COMMANDS: dict[str, Any] = {"why": why, "show": show, "history": history, "verify": verify}


def _registry(options: dict[str, Any]) -> Registry:
    registry = Registry()
    registry.register(anything, id="report", **({"every": "1m"} | options))
    return registry
