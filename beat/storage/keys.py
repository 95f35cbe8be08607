"""Name all of beat's keys in Redis; no other module spells one out."""

from __future__ import annotations

import functools
from dataclasses import dataclass


class _One:
    """A descriptor for a key without a variable part."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, keys: Keys, _owner: type[Keys]) -> str:
        return f"{keys.prefix}{self._name}"


@dataclass(frozen=True)
class Keys:
    """Every key of one installation; all begin with `prefix`."""

    prefix: str = "beat:"

    schedules = _One("schedules")
    """Set: every id."""
    due = _One("due")
    """Sorted set: id → due_at in ms, or the expiry of the lock while it is claimed."""
    meta = _One("meta")
    """Hash: the format of the keys, the highest time that Redis has shown, the hold of the clock guard."""
    events = _One("events")
    """Stream: every decision, outcome and change, for other programs."""
    open = _One("open")
    """Sorted set: the id of each job without a known outcome → when to check it next, in ms."""
    closed = _One("closed")
    """Sorted set: each job that failed, was stopped or lost, and that RQ could run again → since when, in ms."""
    waiting_slots = _One("waiting")
    """Sorted set: each schedule or group for whose slots ticks wait → when to check it next, in ms."""
    fanout = _One("fanout")
    """Sorted set: `schedule tick job` of each success still to be passed on to followers → when, in ms."""
    groups = _One("groups")
    """Hash: the name of each group → its capacity, as `wait 5 1000`; an operator may change it."""
    unread = _One("unread")
    """Hash: each queue that gets ticks although no worker listens to it → since when."""
    records = _One("records")
    """Hash: job id → the record of an open or closed run, as JSON."""
    watching = _One("watching")
    """String: expires when it is time to check open runs again."""
    searched = _One("searched")
    """String: expires when it is time to search for jobs that vanished from their queue."""
    monitoring = _One("monitoring")
    """String: the lock of the scheduler that reports runs to monitors."""
    instances = _One("instances")
    """Sorted set: the name of each live scheduler → when its heartbeat expires, in ms."""
    announcements = _One("announcements")
    """Sorted set: the digest of each live registry → when it expires, in ms."""
    functions = _One("functions")
    """Sorted set: the path of each function that an application exposes → when it last did, in ms."""
    metrics = _One("metrics")
    """Hash: the histograms and counts of all schedulers, and the last event that they include."""
    repairing = _One("repairing")
    """String: the lock of the scheduler that repairs the indexes."""
    repaired = _One("repaired")
    """String: expires when it is time to repair the indexes again."""

    def schedule(self, schedule_id: str) -> str:
        """Return the key of a hash: the state and the definition of a schedule."""
        return f"{self.prefix}schedule:{schedule_id}"

    def template(self, schedule_id: str) -> str:
        """Return the key of a hash: the fields of a schedule's jobs, as RQ writes them."""
        return f"{self.prefix}template:{schedule_id}"

    def runs(self, schedule_id: str) -> str:
        """Return the key of a list: the ledger of a schedule, newest first."""
        return f"{self.prefix}runs:{schedule_id}"

    def running(self, slot: str) -> str:
        """Return the key of a sorted set: the jobs in the slots of a schedule or group → since when, in ms."""
        return f"{self.prefix}running:{slot}"

    def waiting(self, slot: str) -> str:
        """Return the key of a sorted set: the waiting list of a schedule or group, `id tick by` → the tick, in ms."""
        return f"{self.prefix}waiting:{slot}"

    def followers(self, schedule_id: str) -> str:
        """Return the key of a set: the ids of a schedule's followers. An index only: their hashes name the schedule."""
        return f"{self.prefix}followers:{schedule_id}"

    def rest(self, job: str) -> str:
        """Return the key of a set: the followers that still get a tick for a job's success, if there are many."""
        return f"{self.prefix}fanout:{job}"

    def slow(self, schedule_id: str) -> str:
        """Return the key of a sorted set: the newest slow jobs of a schedule → when each ended, in ms."""
        return f"{self.prefix}slow:{schedule_id}"

    def shards(self, job: str) -> str:
        """Return the key of a hash: how each part of a broadcast tick ended, until the last has."""
        return f"{self.prefix}shards:{job}"

    def told(self, job: str) -> str:
        """Return the key of a string: the worker that got a stop command for a job, until it may get another."""
        return f"{self.prefix}told:{job}"

    def index(self, name: str) -> str:
        """Return the key of a set: the ids in a state such as `paused`; `all` is sorted. An index only, as `due` is."""
        return f"{self.prefix}in:{name}"

    def app(self, name: str) -> str:
        """Return the key of a set: the ids that the code of one application has declared."""
        return f"{self.prefix}app:{name}"

    def signatures(self, app: str) -> str:
        """Return the key of a hash: the path of each function that an application exposes → its parameters, as JSON."""
        return f"{self.prefix}signatures:{app}"

    def request(self, job: str) -> str:
        """Return the key of a string: a requested job was enqueued; it expires when no client repeats the request."""
        return f"{self.prefix}request:{job}"

    def lock(self, schedule_id: str) -> str:
        """Return the key of a string: the name of the scheduler that has claimed a schedule."""
        return f"{self.prefix}lock:{schedule_id}"

    def job(self, schedule_id: str, second: int) -> str:
        """Return the id of the job of one tick; the prefix in it keeps the jobs of several installations apart."""
        return f"{self._jobs}_{schedule_id}_{second}"

    def asked(self, schedule_id: str, word: str) -> str:
        """Return the id of a job that an operator or another job caused; `word` says how.

        It is `m` and a request for `beat trigger`, `b`, a name and the tick for a backfill, or `f` and a digest of the
        followed job.
        """
        return f"{self._jobs}_{schedule_id}_{word}"

    @functools.cached_property
    def _jobs(self) -> str:
        return self.prefix.rstrip(":").replace(":", "_")

    def alerting(self, app: str) -> str:
        """Return the key of a string: the lock of the scheduler that evaluates the alerts of one application."""
        return f"{self.prefix}alerting:{app}"

    def incidents(self, app: str) -> str:
        """Return the key of a hash: rule, family and subject of an incident → what is remembered of it, as JSON."""
        return f"{self.prefix}incidents:{app}"

    def deliveries(self, place: str) -> str:
        """Return the key of a sorted set: each undelivered message of a channel → when to try, in ms.

        `place` is `app.channel`.
        """
        return f"{self.prefix}deliveries:{place}"

    def messages(self, place: str) -> str:
        """Return the key of a hash: the undelivered messages of a channel, as JSON."""
        return f"{self.prefix}messages:{place}"

    def instance(self, name: str) -> str:
        """Return the key of a hash: the heartbeat of a scheduler."""
        return f"{self.prefix}instance:{name}"

    def tally(self, name: str) -> str:
        """Return the key of a hash: what a scheduler has added to the shared counts."""
        return f"{self.prefix}tally:{name}"

    def announced(self, digest: str) -> str:
        """Return the key of a hash: id → declaration, as the schedulers of one registry announce it."""
        return f"{self.prefix}announced:{digest}"
