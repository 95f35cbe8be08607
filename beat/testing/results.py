"""Describe the results of a manual scheduler: ticks that became jobs, and ticks that were skipped."""

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
from beat.jobs.run import META_KEY, Run
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta


@dataclass(frozen=True)
class Fired:
    """One tick that became a job. All instants are in UTC."""

    schedule_id: str
    scheduled_for: datetime
    """The time of the tick."""
    enqueued_at: datetime
    """The time on the clock when the tick fired."""
    job_id: str
    queue: str
    """The queue of the job; for a broadcast tick, the first of its queues."""
    func: str
    """The dotted path of the function."""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict, repr=False)
    queues: tuple[str, ...] = ()
    """All queues of a broadcast tick, which has one job in each; empty for any other tick."""
    after: str | None = None
    """The id of the job whose success this tick follows."""

    @property
    def jobs(self) -> dict[str, str]:
        """Return the ids of the tick's jobs, each with its queue."""
        return dict(zip(broadcast.jobs(self.job_id, len(self.queues)), self.queues, strict=True)) or {
            self.job_id: self.queue
        }

    @property
    def late(self) -> timedelta:
        """Return how long after its scheduled time the tick fired."""
        return self.enqueued_at - self.scheduled_for

    def run(self, shard: int = 0) -> Any:
        """Import the function, call it here as a worker would, and return its result.

        Within the call, `get_current_run()` returns the run of this tick. A coroutine runs to its end. An exception
        propagates with a note that names the tick. `shard` selects the part of a broadcast tick.
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
    """A range of ticks of one schedule that were skipped for one reason."""

    schedule_id: str
    first: datetime
    """The first skipped tick, in UTC."""
    count: int
    reason: str
