"""Write each event as one log line to Python's logger `beat`."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from beat.config import shell_quoting
from beat.engine.events import COMPONENTS
from beat.telemetry import log_formats

if TYPE_CHECKING:
    from beat.engine.events import Event

_log = logging.getLogger("beat")
_D, _I, _W, _E = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR

LINES = {
    "started": (_I, "{name} has started on {server}, with {schedules:schedule} of its own code"),
    "stopped": (_I, "{name} has stopped; {fired:tick} fired"),
    "advice": (_W, "{words}"),
    "modules": (_I, "{words}"),
    "registered": (_I, "{schedules:schedule} registered, {new} new"),
    "updated": (_I, "{schedule_id}: the definition was replaced{changes}"),
    "moved": (_W, "{schedule_id}: the next tick moved from {from} to {to}{changes}"),
    "returned": (_I, "{schedule_id}: it was {was}, and is declared again: it goes on"),
    "overridden": (
        _W,
        (
            "{schedule_id}: its code is new, but the rule of {by} stays in force: {rule}, not {code}; "
            "to return to the code: beat reschedule {schedule_id} --reset"
        ),
    ),
    "older": (_W, "{schedule_id}: a live beat has a newer definition, which stays; this beat fires that one"),
    "taken_over": (
        _W,
        (
            "{count:schedule} of the application {was}, of which no scheduler runs, now belong to {app}: {ids}; "
            "if they are two programs, give each its own ids, or a BEAT_PREFIX"
        ),
    ),
    "conflict": (_W, "{words}; {remedy}"),
    "unrelated": (_W, "{words}; {remedy}"),
    "refused": (_E, "{schedule_id}: not registered: {code}: {error}"),
    "nameless": (
        _W,
        (
            "no running scheduler declares {count:schedule} of this application, which has no name: {ids}; declared in "
            "{place}, they may be another program's and fire on; give each program a BEAT_APP, or delete them with "
            "beat remove"
        ),
    ),
    "held": (_W, "{schedule_id}: no running scheduler declares it any more; its ticks are held, to be retired {when}"),
    "retired": (_W, "{schedule_id}: retired: no live beat has declared it for long"),
    "resumed": (_I, "{schedule_id}: the pause has ended, {count:tick} passed meanwhile; next {next_run}"),
    "reseeded": (
        _E,
        "state was lost: {count:schedule} had vanished from Redis, with pauses and overrides; registered again: {ids}",
    ),
    "fired": (_I, "fired {schedule_id} for {tick}, {late_ms} ms after it was due: {job_id} in {queue}"),
    "skipped": (_W, "skipped {count:tick} of {schedule_id} from {tick} on: {reason}{why}"),
    "waiting": (_I, "{schedule_id} waits with its tick {tick}: {behind} has not ended"),
    "admitted": (_I, "fired {schedule_id} for {tick}, which had waited: {job_id} in {queue}"),
    "followed": (_I, "fired {schedule_id}, for {after} has succeeded: {job_id} in {queue}"),
    "unfollowed": (_E, "followers get no tick: {error}"),
    "run_succeeded": (_D, "{schedule_id}: the run for {tick} succeeded after {seconds} s: {job_id}"),
    "run_failed": (_W, "{schedule_id}: the run for {tick} failed after {seconds} s: {error}: {job_id}"),
    "run_stopped": (_W, "{schedule_id}: the run for {tick} ended early: {error}: {job_id}"),
    "run_lost": (_E, "{schedule_id}: the run for {tick} is lost: {error}: {job_id}"),
    "run_reopened": (_I, "{schedule_id}: the run for {tick}, which had {was}, goes on: {job_id}"),
    "run_forgotten": (_E, "what was remembered of {job_id} cannot be read: nobody will know what became of it"),
    "unclosed": (_E, "what became of runs cannot be written down: {error}: rename that key, or delete it"),
    "locked": (_D, "{schedule_id}: another beat is at work on it"),
    "fenced": (_D, "{schedule_id}: the lock ran out; somebody else decides"),
    "unread": (
        _E,
        "{schedule_id}: left to other beats, for this one cannot follow it: {words} (are beat and tzdata as new?)",
    ),
    "no_worker": (_W, "ticks go to the queue {queue}, and no live worker reads it: rq worker {queue:shell}"),
    "worker_back": (_I, "a worker reads the queue {queue} again: none had since {since}"),
    "gone": (_D, "{schedule_id}: is no longer there"),
    "passed_on": (_D, "{schedule_id}: {code} {words}"),
    "enqueue_failed": (_E, "{schedule_id}: {func} is not enqueued yet, the tick stays due: {error}"),
    "broken": (_E, "{schedule_id}: cannot be used: {code}: {error}"),
    "recovered": (_I, "{schedule_id} works again after {seconds} s: {count:tick} fired late{why}"),
    "misplaced": (_E, "nothing can be fired: {error}"),
    "mended": (_I, "{schedule_id}: can be used again"),
    "repaired": (_W, "the index did not say what the schedules say: {count:place} put right"),
    "redis_away": (_E, "Redis does not work for us, trying again until it does: {error}"),
    "redis_back": (_I, "Redis works again, after {seconds} s"),
    "clock_forward": (
        _E,
        "Redis' clock jumped forward by {seconds} s: nothing fires until that time has lasted {hold_seconds} s",
    ),
    "stood_still": (
        _W,
        "Redis' clock went forward by {seconds} s, to a time that a beat has found sound (this machine stood still?)",
    ),
    "holding": (_W, "another beat saw Redis' clock jump: nothing fires until that time has lasted a minute"),
    "clock_backward": (_W, "Redis' clock went back by {seconds} s: {words}"),
    "stuck": (_E, "the {thread} has been at one step for {seconds} s: it seems to hang"),
    "hung": (_E, "the {thread} hangs, for {seconds} s now: this beat ends, and its supervisor should start another"),
    "monitor_failed": (_W, "{schedule_id}: its monitor at {service} cannot be told: {error}"),
    "monitor_back": (_I, "the monitors at {service} can be told again, after {seconds} s"),
    "monitor_missed": (_W, "monitors were not told of {count:event}{why}: runs may be missing there"),
    "serving": (_I, "metrics are served at {address}"),
    "page_served": (_I, "the web UI is served at {address}"),
    "companion_failed": (_E, "{companion} failed, and begins again; ticks go on: {error}"),
    "alerted": (_I, "the channel {channel} was told of {incident}"),
    "alert_failed": (_E, "the channel {channel} does not take alerts, trying again for a day: {error}: {incident}"),
    "alert_back": (_I, "the channel {channel} takes alerts again"),
    "alert_dropped": (_E, "the channel {channel} was not told of {incident}, given up after a day: {error}"),
    "alerts_missed": (_E, "{count} events were gone before alerts could be decided: raise events_limit"),
    "alerts_given_up": (_E, "too many incidents: {count:alert} given up"),
    "alerts_refused": (_E, "alerts do not work: {error}"),
    "failed": (_E, "this is a bug in beat, please report it: {error}"),
}
"""The level and the text of each event."""
_WANTED = {"overlap", "excluded", "group", "dependency"}
"""Reasons to skip a tick that a policy of the schedule asks for. They log no warning, because they can recur often."""


def listen(event: Event) -> None:
    """Log an event; its fields become attributes of the record, for the application's own handlers."""
    level, words = LINES[event.name]
    if not event.fields.get("tick"):
        words = words.replace("the run for {tick}", "the manual run")
    if event.fields.get("reason") in _WANTED:
        level = _I
    if not _log.isEnabledFor(level):
        return
    values = {name: log_formats.plain(value) for name, value in event.fields.items() if name != "exception"}
    told = {
        "event": event.name,
        "component": COMPONENTS[event.name],
        "schedule_id": log_formats.printable(event.schedule_id),
    }
    shown = {name: _shown(value) for name, value in (told | values).items()}
    shown["why"] = f" ({values['why']})" if values.get("why") else ""
    shown["changes"] = f": {values['changes']}" if values.get("changes") else ""
    extra, error = log_formats.attributes(told | values), event.fields.get("exception")
    _log.log(level, "%s", words.format_map(shown), extra=extra, exc_info=error)


def configure(level: str, form: str) -> None:
    """Send log lines to stderr, as `text` for people or as `json` for machines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(log_formats.form(form, sys.stderr))
    _log.handlers[:] = [handler]
    _log.setLevel(level.upper())
    _log.propagate = False


class _Number(int):
    """A number that can be formatted with a noun: `{:tick}` gives `1 tick` or `3 ticks`."""

    def __format__(self, noun: str) -> str:
        return f"{int(self):,} {noun}{'s' * (self != 1)}" if noun else str(int(self))


class _Text(str):
    """A text that can be formatted for a command line: `{:shell}` gives one quoted word."""

    __slots__ = ()

    def __format__(self, form: str) -> str:
        return shell_quoting.arguments(self) if form == "shell" else str(self)


def _shown(value: object) -> object:
    if type(value) is int:
        return _Number(value)
    return ", ".join(map(str, value)) if isinstance(value, list) else _Text(value)
