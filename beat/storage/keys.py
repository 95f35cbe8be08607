"""The names of beat's keys in Redis; no other module writes one."""

from __future__ import annotations

import functools
from dataclasses import dataclass


class _One:
    """A key of which there is one."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, keys: Keys, _owner: type[Keys]) -> str:
        return f"{keys.prefix}{self._name}"


@dataclass(frozen=True)
class Keys:
    """Every key of one installation, all of which begin with `prefix`."""

    prefix: str = "beat:"

    schedules = _One("schedules")
    """Set: every id."""
    due = _One("due")
    """Sorted set: id → due_at in ms; while claimed, the lock's expiry."""
    meta = _One("meta")
    """Hash: the format of the keys, the highest time that Redis has shown, the clock guard's hold."""
    events = _One("events")
    """Stream: every verdict, outcome and change, for whoever reads it."""
    open = _One("open")
    """Sorted set: the id of each job whose outcome is not known → when to look next, in ms."""
    closed = _One("closed")
    """Sorted set: the jobs that failed, were stopped or lost, and that RQ could run again → since when, in ms."""
    waiting_slots = _One("waiting")
    """Sorted set: each slot for which ticks wait → when to look at it next, in ms."""
    fanout = _One("fanout")
    """Sorted set: `schedule tick job` of each success that is still to be handed on to followers → when, in ms."""
    groups = _One("groups")
    """Hash: the name of each group → its room, as `wait 5 1000`; an operator may change it."""
    unread = _One("unread")
    """Hash: each queue to which ticks go although nobody works at it → since when."""
    records = _One("records")
    """Hash: job id → what a run is, as JSON, for the open and the closed."""
    watching = _One("watching")
    """String: lasts until it is time to look at open runs again."""
    searched = _One("searched")
    """String: lasts until it is time to look for jobs that vanished from their queue."""
    monitoring = _One("monitoring")
    """String: the lock of the beat that tells monitors of runs."""
    instances = _One("instances")
    """Sorted set: the name of each live beat → when its heartbeat lapses, in ms."""
    announcements = _One("announcements")
    """Sorted set: the digest of each live registry → when it lapses, in ms."""
    functions = _One("functions")
    """Sorted set: the path of each function that an application lets be scheduled → when it last said so, in ms."""
    metrics = _One("metrics")
    """Hash: the histograms and counts of all beats, and up to which event they have been filled."""
    repairing = _One("repairing")
    """String: the lock of the beat that repairs."""
    repaired = _One("repaired")
    """String: lasts until it is time to repair again."""

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

    def followers(self, schedule_id: str) -> str:
        """Set: the ids of those that follow a schedule. An index only: their hashes say whom they follow."""
        return f"{self.prefix}followers:{schedule_id}"

    def rest(self, job: str) -> str:
        """Set: the followers of a job's success that are still to have a tick, where they are many."""
        return f"{self.prefix}fanout:{job}"

    def slow(self, schedule_id: str) -> str:
        """Sorted set: the newest slow jobs of a schedule → when each ended, in ms."""
        return f"{self.prefix}slow:{schedule_id}"

    def shards(self, job: str) -> str:
        """Hash: what became of each part of a tick that went to all queues, until the last has ended."""
        return f"{self.prefix}shards:{job}"

    def told(self, job: str) -> str:
        """Text: the worker that was told to stop a job, while it is not to be told again."""
        return f"{self.prefix}told:{job}"

    def index(self, name: str) -> str:
        """Set: the ids of those that are paused, retired, failing …; `all`: sorted. An index only, as `due` is."""
        return f"{self.prefix}in:{name}"

    def app(self, name: str) -> str:
        """Set: the ids that the code of one application has declared."""
        return f"{self.prefix}app:{name}"

    def signatures(self, app: str) -> str:
        """Hash: the path of each function that an application lets be scheduled → its parameters, as JSON."""
        return f"{self.prefix}signatures:{app}"

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

    def alerting(self, app: str) -> str:
        """String: the lock of the beat that decides on the alerts of one application."""
        return f"{self.prefix}alerting:{app}"

    def incidents(self, app: str) -> str:
        """Hash: rule, family and subject → what is remembered of that trouble, as JSON."""
        return f"{self.prefix}incidents:{app}"

    def deliveries(self, place: str) -> str:
        """Sorted set: each message that a channel has yet to take → when to try, in ms. `place`: `app.channel`."""
        return f"{self.prefix}deliveries:{place}"

    def messages(self, place: str) -> str:
        """Hash: those messages, as JSON."""
        return f"{self.prefix}messages:{place}"

    def instance(self, name: str) -> str:
        """Hash: the heartbeat of a beat."""
        return f"{self.prefix}instance:{name}"

    def tally(self, name: str) -> str:
        """Hash: what a beat has added to the counts of all."""
        return f"{self.prefix}tally:{name}"

    def announced(self, digest: str) -> str:
        """Hash: id → rev, what the beats of one registry have registered."""
        return f"{self.prefix}announced:{digest}"
