"""Ledgers made by hand: the lines of one schedule, and the keys that Redis has with them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from beat.history import ledger
from beat.storage.keys import Keys
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redis import Redis

MINUTELY: Mapping[str, Any] = {"cron": "* * * * *", "tz": "UTC"}
MINUTE, SECOND, MS = timedelta(minutes=1), timedelta(seconds=1), timedelta(milliseconds=1)
NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)


NOT_IMPORTED = ledger.Error(
    "ValueError",
    "Invalid attribute name: app.report",
    """Traceback (most recent call last):
  File "/lib/rq/utils.py", line 199, in import_attribute
    return __builtins__[name]
KeyError: 'app.report'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/lib/rq/worker/base.py", line 1552, in perform_job
    return_value = job.perform()
  File "/lib/rq/job.py", line 1368, in perform
    self._result = self._execute()
  File "/lib/rq/job.py", line 1426, in _execute
    if not self.func:
  File "/lib/rq/job.py", line 523, in func
    return import_attribute(func_name)
  File "/lib/rq/utils.py", line 201, in import_attribute
    raise ValueError(f'Invalid attribute name: {name}')
ValueError: Invalid attribute name: app.report
""",
)
"""As RQ writes it of a function that the worker could not import."""


class Ledger:
    """Written as beats write it, from the first line on; the counters follow."""

    def __init__(self, schedule_id: str = "report", rule: Mapping[str, Any] = MINUTELY, beat: str = "web-2") -> None:
        self.id, self.rule, self.beat = schedule_id, rule, beat
        self.entries: list[ledger.Entry] = []
        self.next: datetime | None = None
        self.counts = dict.fromkeys(("run_count", "skip_count", "success_count", "failure_count", "stopped_count"), 0)

    @property
    def newest_first(self) -> list[ledger.Entry]:
        return self.entries[::-1]

    def registered(self, at: datetime, following: datetime | None) -> Ledger:
        self.entries.append(ledger.Changed("registered", "r1", self.rule, None, None, following, at, self.beat))
        self.next = following
        return self

    def changed(self, at: datetime, rule: Mapping[str, Any], following: datetime | None, kind: str = "moved") -> Ledger:
        self.entries.append(ledger.Changed(kind, "r2", rule, self.rule, self.next, following, at, self.beat))
        self.rule, self.next = rule, following
        return self

    def fired(self, tick: datetime | None, following: datetime | None = None, **other: Any) -> Ledger:
        self.counts["run_count"] += 1
        at = (tick or NINE) + 4 * MS
        made = ledger.Enqueued(tick, self.job(tick), "scheduler", 4, self.counts["run_count"], at, self.beat)
        self.entries.append(replace(made, **other))
        self.next = following or (tick + MINUTE if tick else self.next)
        return self

    def skipped(self, first: datetime, last: datetime, count: int, **other: Any) -> Ledger:
        self.counts["skip_count"] += count
        number, at = self.counts["skip_count"], last + MINUTE
        self.entries.append(
            replace(ledger.Skipped(first, last, count, "misfire", number, at, self.beat), **other),
        )
        self.next = last + MINUTE
        return self

    def ended(self, tick: datetime | None, kind: str = "succeeded", **other: Any) -> Ledger:
        begun = (tick or NINE) + 2 * SECOND + 4 * MS
        end = begun + 3.1 * SECOND
        made = ledger.Outcome(
            type=kind, tick=tick, job=self.job(tick), started=begun, ended=end, duration=3.1, worker="x", attempts=1,
            at=end + 100 * MS, beat=self.beat,
        )  # fmt: skip
        self.entries.append(replace(made, **other))
        counter = {"succeeded": "success_count", "stopped": "stopped_count"}.get(kind, "failure_count")
        self.counts[counter] += 1
        return self

    def acted(self, kind: str, at: datetime, **other: Any) -> Ledger:
        """Somebody did something to the schedule."""
        self.entries.append(ledger.Acted(kind, at, **{"beat": "ann@ops", "tick": self.next, **other}))
        return self

    def asked(self, at: datetime, job: str, tick: datetime | None = None, by: str = "manual") -> Ledger:
        """Somebody asked for a run, at once."""
        return self.fired(tick, self.next, job=job, by=by, late_ms=0, at=at, beat="ann@ops")

    def job(self, tick: datetime | None) -> str:
        return Keys().job(self.id, clock.floor(tick)) if tick else f"beat_{self.id}_m1"

    def keep(self, redis: Redis, prefix: str = "beat:", **fields: str) -> Ledger:
        """Puts all of it into Redis; `fields` of the hash may say something else."""
        keys, first = Keys(prefix), self.entries[0] if self.entries else None
        following = clock.text(self.next) if self.next else ""
        state: dict[Any, Any] = {
            "state": "active",
            "rule": json.dumps(self.rule),
            "definition": json.dumps({**self.rule, "id": self.id, "func": "app.tasks.report", "queue": "default"}),
            "tz": str(self.rule["tz"]),
            "rev": "r1",
            "created_at": clock.text(first.at) if isinstance(first, ledger.Changed) else "2020-01-01T00:00:00Z",
            **({"next_run": following, "due_at": following} if following else {}),
            **{name: str(count) for name, count in self.counts.items()},
            **fields,
        }
        redis.hset(keys.schedule(self.id), mapping=state)
        redis.sadd(keys.schedules, self.id)
        redis.delete(keys.runs(self.id))
        if self.entries:
            redis.lpush(keys.runs(self.id), *(json.dumps(ledger.plain(entry)) for entry in self.entries))
        return self
