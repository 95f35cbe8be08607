"""Describe what became of one tick, or why there is none, in a sentence and as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client.describe import changes, decisions, export, instants, policies, relations, workers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from beat.client.explain import Explanation
    from beat.history.history import Action, Fired
    from beat.timing.zones import Zone

_STATES = {
    "paused": "the schedule is paused",
    "disabled": "the schedule is disabled",
    "finished": "the schedule has finished: no tick is left",
    "retired": "the schedule is retired: no running scheduler declares it",
    "broken": "the schedule is broken: see `beat show`",
}


def sentence(told: Explanation, where: Zone, now: datetime) -> str:
    """Return the answer, to follow a time and a colon."""
    return _SENTENCES[told.answer](told, where, now)


def _enqueued(told: Explanation, where: Zone, now: datetime) -> str:
    before = f"{_skipped(told, where, now)}; made up for later: " if told.passed else ""
    became = "; and again ".join(_became(told, run, where, now) for run in told.runs)
    moved = f"; {_moved(told.deferred, where)}" if told.deferred and not told.passed else ""
    more = "".join(f"; and once more: {decisions.story(run, where, now)}" for run in told.backfills)
    alone = "".join(f"; {workers.nobody(each, where)}" for each in told.unread)
    return f"{before}{became}{moved}{more}{alone}"


def _became(told: Explanation, run: Fired, where: Zone, now: datetime) -> str:
    parent = told.policies.follows if told.policies else None
    after = f"{relations.followed(run, parent, where)}; " if run.after else ""
    return f"{after}{decisions.story(run, where, now)}"


def _no_success(told: Explanation, where: Zone, now: datetime) -> str:
    near = [instants.both(tick.replace(microsecond=0), where) for tick in (told.before, told.after) if tick]
    nearest = f"; its nearest {'ticks were' if len(near) > 1 else 'tick was'} {' and '.join(near)}" if near else ""
    return f"{relations.missing(told.parent, where, now)}{nearest}" if told.parent else "no tick"


def _moved(line: Action, where: Zone) -> str:
    to = f" to {instants.both(line.until.replace(microsecond=0), where, line.tick)}" if line.until else ""
    return f"{line.beat} had moved it{to}"


def _skipped(told: Explanation, where: Zone, _now: datetime) -> str:
    return (
        decisions.skipped(told.passed, where, policies.skipped(told, told.passed, where)) if told.passed else "skipped"
    )


def _not_due(told: Explanation, where: Zone, now: datetime) -> str:
    due = told.due_at or told.instant
    soon = f"in {instants.span((due - now).total_seconds())}"
    if told.moved_by:
        moved = instants.both(due.replace(microsecond=0), where, told.instant)
        return f"not due yet: {told.moved_by} has moved it to {moved}, {soon}"
    jitter = f", {instants.span((due - told.instant).total_seconds())} after its time (jitter)"
    paused = f"; {changes.paused(told.pause, where)}" if told.pause else ""
    next_one = f"the next tick is {_tick(told.next_run, where)}{paused}"
    return f"not due yet: {soon}{jitter if due > told.instant else ''}; {next_one}"


def _held(told: Explanation, where: Zone, _now: datetime) -> str:
    if told.pause:
        return f"not decided: {changes.paused(told.pause, where)}; when that ends, the tick passes without a job"
    if since := told.unannounced_at:
        declares = f"no running scheduler declares the schedule since {_tick(since.replace(microsecond=0), where)}"
        return f"not decided: {declares}; it fires when one does, and passes when the schedule is retired"
    return f"not decided: {_STATES.get(told.state, f'the state of the schedule is {told.state!r}')}"


def _not_registered(told: Explanation, where: Zone, _now: datetime) -> str:
    return f"the schedule was not there yet: it was registered at {_tick(told.begins, where)}"


def _trimmed(told: Explanation, where: Zone, _now: datetime) -> str:
    reach = f"it begins with the tick of {_tick(told.begins, where)}" if told.begins else "it is empty"
    return f"not known: the ledger no longer goes back so far; {reach}"


def _no_tick(told: Explanation, where: Zone, _now: datetime) -> str:
    if told.finished:
        ended = f"{_tick(told.before, where)} ({policies.bound(told.finished, where)})"
        went_on = f", and went on with {_tick(told.after, where)}" if told.after else ""
        return f"no tick: the schedule had finished with {ended}{went_on}"
    near = [instants.both(tick, where, told.instant) for tick in (told.before, told.after) if tick]
    nearest = f"the nearest {'are' if len(near) > 1 else 'is'} {' and '.join(near)}" if near else "it has none at all"
    moved = ""
    if told.change:
        at = instants.local(told.change.at.replace(microsecond=0), where)
        moved = f"; the definition changed at {at}, and went on with {_tick(told.change.next, where)}"
    return f"not a tick of this schedule: {nearest}{moved}"


def _due(told: Explanation, *_: object) -> str:
    late = f"due for {instants.span(told.late or 0)}, and not decided yet"
    if told.holder:
        return f"{late}: {told.holder} is at work on it"
    if not told.beats:
        return f"{late}: no scheduler is running"
    return f"{late}: {told.beats} scheduler{'s are' if told.beats > 1 else ' is'} running, none is at work on it"


def _catching_up(told: Explanation, *_: object) -> str:
    limit = told.policies and told.policies.catchup_limit
    few = f"{limit} at a time" if limit else "a few at a time"
    turn = f"{told.ahead:,} of them go before it" if told.ahead else "it is the next of them"
    alive = "" if told.beats else "; no scheduler is running"
    late = instants.span(told.late or 0)
    return f"due for {late}: missed ticks are caught up with, {few} (catchup_limit); {turn}{alive}"


def _tick(instant: datetime | None, where: Zone) -> str:
    return instants.both(instant, where) if instant else "none"


_SENTENCES: Mapping[str, Callable[[Explanation, Zone, datetime], str]] = {
    "enqueued": _enqueued,
    "skipped": _skipped,
    "waiting": policies.waits,
    "due": _due,
    "catching_up": _catching_up,
    "not_due": _not_due,
    "held": _held,
    "not_a_tick": _no_tick,
    "no_success": _no_success,
    "not_registered": _not_registered,
    "trimmed": _trimmed,
    "missing": lambda *_: "no verdict, though it is a tick and later ones were decided: see `beat verify`",
    "unreadable": lambda *_: "not known: the rule that decided then cannot be read",
}


def plain(told: Explanation) -> dict[str, Any]:
    """Return the answer as `--json` prints it."""
    return decisions.times({
        "schedule": told.schedule_id,
        "instant": told.instant,
        "tz": told.tz,
        "answer": told.answer,
        "state": told.state,
        "next_run": told.next_run,
        "runs": [decisions.plain(run) for run in told.runs],
        "skipped": told.passed and decisions.plain(told.passed),
        "waiting": told.waits and decisions.plain(told.waits),
        "behind": told.behind and decisions.plain(told.behind),
        "instead": told.instead,
        "pause": export.pause(told.pause),
        "unread": workers.plain(told.unread),
        "backfills": [decisions.plain(run) for run in told.backfills],
        "deferred": told.deferred and decisions.plain(told.deferred),
        "unannounced_at": told.unannounced_at,
        "before": told.before,
        "after": told.after,
        "parent": told.parent and relations.parent(told.parent),
        "change": told.change and decisions.plain(told.change),
        "finished": told.finished and decisions.times(told.finished._asdict()),
        "begins": told.begins,
        "due_at": told.due_at,
        "moved_by": told.moved_by or None,
        "late": told.late,
        "ahead": told.ahead,
        "holder": told.holder or None, "beats": told.beats,
    })  # fmt: skip
