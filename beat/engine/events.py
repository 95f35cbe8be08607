"""Define the events that a scheduler emits for its listeners, with names and plain values.

The engine knows none of its listeners.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

NAMES = {
    "started": "a beat has begun",
    "stopped": "a beat has ended",
    "modules": "which modules are loaded that the command line does not name, and why",
    "advice": "something about Redis or the settings that an operator should know",
    "registered": "the definitions of this beat's code were brought into Redis",
    "updated": "the definition of a schedule was replaced",
    "moved": "the next tick of a schedule moved",
    "returned": "a schedule that was held or retired is declared again",
    "overridden": "the code of a schedule has changed, and an operator's rule stays in force",
    "older": "a live beat announces a newer definition, which stays",
    "taken_over": "schedules of another application, of which no scheduler runs, belong to this one now",
    "conflict": "another live scheduler declares the same schedules differently, and not as a newer version",
    "unrelated": "a live scheduler of the same application has no schedule in common with this one",
    "refused": "a definition could not be brought into Redis",
    "nameless": "schedules that no running scheduler declares go on, because their application has no name",
    "held": "no running scheduler declares a schedule any more: its ticks are held",
    "retired": "a schedule that no running scheduler declared for long fires no more",
    "resumed": "a pause has ended",
    "reseeded": "the state of schedules was lost, and they were registered again",
    "fired": "a tick became a job",
    "skipped": "ticks passed without a job",
    "waiting": "a tick waits for an earlier run to end, of its schedule or its group",
    "admitted": "a tick that waited became a job",
    "followed": "a run succeeded, and what follows it became a job",
    "unfollowed": "a run succeeded, and not all that follows it gets a tick",
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
    "recovered": "Redis accepts the ticks of a schedule again that it rejected",
    "misplaced": "a key that all schedules share is not what it should be: nothing is fired",
    "mended": "a schedule that was broken goes on",
    "repaired": "the index did not say what the schedules say",
    "redis_away": "Redis cannot be reached, or refuses to work",
    "redis_back": "it can again",
    "clock_forward": "Redis' clock jumped forward: nothing fires until the new time has lasted a minute",
    "stood_still": "this machine stood still while Redis' clock went on, or a clock was put right again",
    "holding": "another beat saw Redis' clock jump: nothing fires until the new time has lasted a minute",
    "clock_backward": "Redis' clock went back, or was behind when this scheduler started",
    "stuck": "a thread of this beat has been at one step for long",
    "hung": "it still is: the beat ends, for somebody to start another",
    "monitor_failed": "a service that watches over runs does not take what it is told",
    "monitor_back": "it does again",
    "monitor_missed": "monitors were not told of events: gone from the outbox before, or given up",
    "serving": "metrics are served, and where",
    "page_served": "the web UI is served, and where",
    "companion_failed": "what works beside the engine failed, and begins again",
    "alerted": "a channel has taken an alert",
    "alert_failed": "a channel does not take alerts; they are tried again, for a day",
    "alert_back": "it takes them again",
    "alert_dropped": "an alert was given up: its channel has not taken it for a day",
    "alerts_missed": "events were gone before it could be decided whether they are worth an alert",
    "alerts_given_up": "there were too many incidents or alerts to remember all",
    "alerts_refused": "what Redis keeps of alerts is not what it should be",
    "failed": "a bug: something raised that nobody expected",
}
_TOLD_BY = {
    "service": "started stopped advice modules",
    "registrar": "registered updated moved returned overridden older taken_over refused reseeded",
    "ticker": (
        "fired skipped waiting resumed locked fenced unread gone passed_on enqueue_failed broken recovered misplaced"
    ),
    "attendant": "admitted followed unfollowed",
    "clock": "clock_forward clock_backward stood_still holding",
    "watcher": "run_succeeded run_failed run_stopped run_lost run_reopened run_forgotten unclosed",
    "lookout": "no_worker worker_back",
    "housekeeper": "conflict unrelated nameless held retired mended repaired",
    "connection": "redis_away redis_back",
    "watchdog": "stuck hung",
    "monitors": "monitor_failed monitor_back monitor_missed",
    "metrics": "serving",
    "web": "page_served",
    "alerts": "alerted alert_failed alert_back alert_dropped alerts_missed alerts_given_up alerts_refused",
    "companions": "companion_failed",
    "engine": "failed",
}
COMPONENTS = {name: component for component, names in _TOLD_BY.items() for name in names.split()}
"""The component that emits each event; of several, the one that mostly does."""


@dataclass(frozen=True)
class Event:
    """Something that happened in a scheduler."""

    name: str
    schedule_id: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


Emit = Callable[[Event], None]
