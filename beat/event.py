"""What the engine tells whoever listens: names and plain values. The engine knows none of its listeners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

NAMES = {
    "started": "a beat has begun",
    "stopped": "a beat has ended",
    "advice": "something about Redis or the settings that an operator should know",
    "registered": "the definitions of this beat's code were brought into Redis",
    "updated": "the definition of a schedule was replaced",
    "moved": "the next tick of a schedule moved",
    "renamed": "a schedule has taken over the state and the history of its old id",
    "returned": "a schedule that was held or retired is declared again",
    "overridden": "the code of a schedule has changed, and an operator's rule stays in force",
    "older": "a live beat announces a newer definition, which stays",
    "refused": "a definition could not be brought into Redis",
    "held": "no live beat declares a schedule any more: its ticks are held",
    "retired": "a schedule that no live beat declared for long fires no more",
    "resumed": "a pause has ended",
    "reseeded": "the state of schedules was lost, and they were registered again",
    "fired": "a tick became a job",
    "skipped": "ticks passed without a job",
    "waiting": "a tick waits for an earlier run to end, of its schedule or its group",
    "admitted": "a tick that waited became a job",
    "followed": "a run succeeded, and what follows it became a job",
    "run_succeeded": "a run ended well",
    "run_failed": "a run raised, ran out of time, was killed, or said itself that it failed",
    "run_stopped": "a run was stopped or cancelled",
    "run_lost": "a run vanished, or its worker died with it",
    "run_reopened": "RQ has started a run again that had been closed",
    "run_forgotten": "what was remembered of a run cannot be read",
    "unclosed": "what became of a run cannot be written down",
    "locked": "another beat is at work on a schedule",
    "fenced": "a lock ran out before its tick was decided; somebody else decides",
    "unread": "this beat cannot read a definition that a live beat has: left to it",
    "no_worker": "a tick went to a queue that no live worker reads",
    "worker_back": "a worker reads that queue again",
    "gone": "a schedule is no longer there",
    "passed_on": "a tick was decided or changed meanwhile; nothing was done",
    "enqueue_failed": "Redis refused a job; its tick stays due",
    "broken": "what Redis holds about a schedule cannot be used",
    "misplaced": "a key that all schedules share is not what it should be: nothing is fired",
    "mended": "a schedule that was broken goes on",
    "repaired": "the index did not say what the schedules say",
    "redis_away": "Redis cannot be reached, or refuses to work",
    "redis_back": "it can again",
    "clock_forward": "Redis' clock jumped forward: nothing fires until the new time has lasted a minute",
    "stood_still": "this machine stood still while Redis' clock went on, or a clock was put right again",
    "holding": "another beat saw Redis' clock jump: nothing fires until the new time has lasted a minute",
    "clock_backward": "Redis' clock jumped backward",
    "stuck": "a thread of this beat has been at one step for long",
    "hung": "it still is: the beat ends, for somebody to start another",
    "monitor_failed": "a service that watches over runs does not take what it is told",
    "monitor_back": "it does again",
    "monitor_missed": "monitors were not told of events: gone from the outbox before, or given up",
    "companion_failed": "what works beside the engine failed, and begins again",
    "failed": "a bug: something raised that nobody expected",
}


@dataclass(frozen=True)
class Event:
    """One thing that happened."""

    name: str
    schedule_id: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


Emit = Callable[[Event], None]
