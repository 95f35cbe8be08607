"""The names of beat's keys in Redis; no other module writes one."""

from __future__ import annotations

import functools
from dataclasses import dataclass


@dataclass(frozen=True)
class Keys:
    """Every key of one installation, all of which begin with `prefix`."""

    prefix: str = "beat:"

    @property
    def schedules(self) -> str:
        """Set: every id."""
        return f"{self.prefix}schedules"

    @property
    def due(self) -> str:
        """Sorted set: id → due_at in ms; while claimed, the lock's expiry."""
        return f"{self.prefix}due"

    @property
    def meta(self) -> str:
        """Hash: the format of the keys, the highest time that Redis has shown, the clock guard's hold."""
        return f"{self.prefix}meta"

    @property
    def events(self) -> str:
        """Stream: every verdict, outcome and change, for whoever reads it."""
        return f"{self.prefix}events"

    @property
    def open(self) -> str:
        """Sorted set: the id of each job whose outcome is not known → when to look next, in ms."""
        return f"{self.prefix}open"

    @property
    def closed(self) -> str:
        """Sorted set: the jobs that failed, were stopped or lost, and that RQ could run again → since when, in ms."""
        return f"{self.prefix}closed"

    @property
    def waiting_slots(self) -> str:
        """Sorted set: each slot for which ticks wait → when to look at it next, in ms."""
        return f"{self.prefix}waiting"

    @property
    def records(self) -> str:
        """Hash: job id → what a run is, as JSON, for the open and the closed."""
        return f"{self.prefix}records"

    @property
    def watching(self) -> str:
        """String: lasts until it is time to look at open runs again."""
        return f"{self.prefix}watching"

    @property
    def searched(self) -> str:
        """String: lasts until it is time to look for jobs that vanished from their queue."""
        return f"{self.prefix}searched"

    @property
    def instances(self) -> str:
        """Sorted set: the name of each live beat → when its heartbeat lapses, in ms."""
        return f"{self.prefix}instances"

    @property
    def announcements(self) -> str:
        """Sorted set: the digest of each live registry → when it lapses, in ms."""
        return f"{self.prefix}announcements"

    @property
    def functions(self) -> str:
        """Sorted set: the path of each function that an application lets be scheduled → when it last said so, in ms."""
        return f"{self.prefix}functions"

    @property
    def repairing(self) -> str:
        """String: the lock of the beat that repairs."""
        return f"{self.prefix}repairing"

    @property
    def repaired(self) -> str:
        """String: lasts until it is time to repair again."""
        return f"{self.prefix}repaired"

    @property
    def unread(self) -> str:
        """Hash: queue → since when ticks go there although no worker reads it."""
        return f"{self.prefix}unread"

    def schedule(self, schedule_id: str) -> str:
        """Hash: the state and the definition of a schedule."""
        return f"{self.prefix}schedule:{schedule_id}"

    def template(self, schedule_id: str) -> str:
        """Hash: the fields of a schedule's jobs, as RQ writes them."""
        return f"{self.prefix}template:{schedule_id}"

    def runs(self, schedule_id: str) -> str:
        """List: the ledger of a schedule, newest first."""
        return f"{self.prefix}runs:{schedule_id}"

    def running(self, slot: str) -> str:
        """Sorted set: the jobs that take up the room of a slot → since when, in ms."""
        return f"{self.prefix}running:{slot}"

    def waiting(self, slot: str) -> str:
        """Sorted set: the ticks that wait for room in a slot, as `id tick by` → when they were due, in ms."""
        return f"{self.prefix}waiting:{slot}"

    def index(self, name: str) -> str:
        """Set: the ids of those that are paused, retired, failing …; `all`: sorted. An index only, as `due` is."""
        return f"{self.prefix}in:{name}"

    def app(self, name: str) -> str:
        """Set: the ids that the code of one application has declared."""
        return f"{self.prefix}app:{name}"

    def request(self, job: str) -> str:
        """String: somebody asked for this job, and it was enqueued; lasts until nobody can ask again by mistake."""
        return f"{self.prefix}request:{job}"

    def lock(self, schedule_id: str) -> str:
        """String: the token of the beat that has claimed a schedule."""
        return f"{self.prefix}lock:{schedule_id}"

    def job(self, schedule_id: str, second: int) -> str:
        """The id of the job of one tick; RQ keeps the jobs of all installations in one place."""
        return f"{self._jobs}_{schedule_id}_{second}"

    def asked(self, schedule_id: str, word: str) -> str:
        """The id of a job that somebody asked for: `m` and something by chance, or `b`, a backfill and its tick."""
        return f"{self._jobs}_{schedule_id}_{word}"

    @functools.cached_property
    def _jobs(self) -> str:
        return self.prefix.rstrip(":").replace(":", "_")

    def instance(self, name: str) -> str:
        """Hash: the heartbeat of a beat."""
        return f"{self.prefix}instance:{name}"

    def announced(self, digest: str) -> str:
        """Hash: id → rev, what the beats of one registry have registered."""
        return f"{self.prefix}announced:{digest}"
