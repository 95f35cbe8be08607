"""What the ledgers say about runs, and time that is made to pass where waiting for it would take minutes."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from redis import Redis

from beat.engine.run_tracker import Watcher
from beat.storage.keys import Keys
from beat.storage.store import Store

OUTCOMES = {"succeeded", "failed", "stopped", "lost"}
LONG_AGO = "2020-01-01T00:00:00Z"
DAY_MS = 86_400_000
"""Longer than the time limit of any job here."""

SWAP = """
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""


class Ledgers:
    """The ledgers in one Redis, and RQ's records beside them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.redis: Any = Redis.from_url(url, decode_responses=True)
        self._raw = Redis.from_url(url)
        self._watcher = Watcher(Store(self._raw, Keys()), name="tests", emit=lambda _: None)

    def close(self) -> None:
        self.redis.close()
        self._raw.close()

    # --- facts -------------------------------------------------------------------------------------------------------

    def state(self, schedule_id: str) -> dict[str, str]:
        """The schedule's hash."""
        return dict(self.redis.hgetall(f"beat:schedule:{schedule_id}"))

    def lines(self, job: str) -> list[dict[str, Any]]:
        """The lines of the ledger about one run after its verdict, oldest first."""
        return [line for line in self.book(schedule_of(job)) if line.get("job") == job and line["type"] != "enqueued"]

    def book(self, schedule_id: str) -> list[dict[str, Any]]:
        """The ledger of a schedule, oldest first."""
        return [json.loads(line) for line in reversed(self.redis.lrange(f"beat:runs:{schedule_id}", 0, -1))]

    def types(self, job: str) -> list[str]:
        """What was written about one run, in words, oldest first."""
        return [line["type"] for line in self.lines(job)]

    def open(self) -> list[str]:
        """The runs whose outcome beat does not know."""
        return list(self.redis.zrange("beat:open", 0, -1))

    def record(self, job: str) -> Any:
        """What beat remembers of a run."""
        return json.loads(self.redis.hget("beat:records", job) or "null")

    def status(self, job: str) -> Any:
        """RQ's word."""
        return self.redis.hget(f"rq:job:{job}", "status")

    def count(self, schedule_id: str, *names: str) -> int:
        """The sum of these counters of a schedule."""
        state = self.state(schedule_id)
        return sum(int(state.get(f"{name}_count", 0)) for name in names)

    def agree(self, schedule_id: str) -> None:
        """The counters fit together: every run has ended one way, or is open."""
        still = sum(schedule_of(job) == schedule_id for job in self.open())
        ends = self.count(schedule_id, "success", "failure", "stopped")
        assert self.count(schedule_id, "run") == ends + still, self.state(schedule_id)

    # --- time --------------------------------------------------------------------------------------------------------

    def let_life_lapse(self, job: str, queue: str) -> None:
        """As if a worker had shown no life for so long that RQ no longer believes in it."""
        for execution in self.redis.zrange(f"rq:executions:{job}", 0, -1):
            self.redis.delete(f"rq:execution:{job}:{execution}")
            self.redis.zadd(f"rq:wip:{queue}", {f"{job}:{execution}": time.time() - 1}, xx=True)

    def look(self, job: str) -> None:
        """Beat looks at an open run at once; if it waits, it is searched for in its queue, as an old one."""
        self.redis.zadd("beat:open", {job: 0}, xx=True)
        if self.status(job) in {"queued", "scheduled"}:
            self._remember(job, enqueued=LONG_AGO)
            self.redis.delete("beat:searched")
            self._watcher.search()

    def age(self, job: str, ms: int = DAY_MS) -> bool:
        """If beat misses a run, let it have missed it for so long; return whether it does."""
        self.look(job)
        missing = (self.record(job) or {}).get("missing")
        if not missing or not self._remember(job, missing=missing - ms):
            return False
        self.look(job)
        return True

    def _remember(self, job: str, **changes: Any) -> bool:
        """Whether it could be changed: what beat writes meanwhile stays, or it would close a run that it has closed."""
        seen = self.redis.hget("beat:records", job)
        if not seen:
            return False
        made = json.dumps({**json.loads(seen), **changes}, separators=(",", ":"))
        return bool(self.redis.eval(SWAP, 1, "beat:records", job, seen, made))


def schedule_of(job: str) -> str:
    """The id of the schedule, from that of a job as these tests have them."""
    return re.sub(r"_s\d+$", "", job).removeprefix("beat_").rpartition("_")[0]
