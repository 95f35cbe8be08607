"""What a manual beat has done: ticks that became jobs, and ticks that passed without one."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pkgutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

from beat.history import broadcast
from beat.jobs import job_template
from beat.schedule.run import META_KEY, Run
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta


@dataclass(frozen=True)
class Fired:
    """One tick that became a job; every instant is in UTC."""

    schedule_id: str
    scheduled_for: datetime
    """The tick: its nominal time."""
    enqueued_at: datetime
    """What the clock showed when it fired."""
    job_id: str
    queue: str
    """Where it went; of one that went to all of its queues, the first."""
    func: str
    """The dotted path of the function."""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict, repr=False)
    queues: tuple[str, ...] = ()
    """All of its queues, if it went to all: a job each."""
    after: str | None = None
    """The job whose success it follows."""

    @property
    def jobs(self) -> dict[str, str]:
        """The ids of its jobs, and the queue of each."""
        return dict(zip(broadcast.jobs(self.job_id, len(self.queues)), self.queues, strict=True)) or {
            self.job_id: self.queue
        }

    @property
    def late(self) -> timedelta:
        """By how much it fired after its tick."""
        return self.enqueued_at - self.scheduled_for

    def run(self, shard: int = 0) -> Any:
        """Imports the function, calls it here as a worker would, and returns its result.

        `get_current_run()` knows the tick within it, and a coroutine is run to its end. What it raises comes through.
        Of a tick that went to all of its queues, `shard` says which part is run.
        """
        by, number = "follows" if self.after else "scheduler", len(self.queues) or 1
        run = Run(self.schedule_id, self.scheduled_for, by, shard, number, self.after)
        told = {**self.meta, META_KEY: run.plain()}
        func = pkgutil.resolve_name(self.func)
        try:
            with mock.patch.object(job_template, "current_meta", return_value=told):
                result = func(*copy.deepcopy(self.args), **copy.deepcopy(dict(self.kwargs)))
                return asyncio.run(result) if inspect.iscoroutine(result) else result
        except Exception as e:
            e.add_note(f"in the run of schedule {self.schedule_id!r} for {clock.text(self.scheduled_for)}")
            raise


@dataclass(frozen=True)
class Skipped:
    """A stretch of ticks of one schedule that passed without a job."""

    schedule_id: str
    first: datetime
    """The first of them, in UTC."""
    count: int
    reason: str
