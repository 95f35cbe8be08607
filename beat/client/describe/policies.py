"""Describe the policies of a schedule in words, and what they did to a tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.client.describe import instants
from beat.schedule import exclusions
from beat.timing import durations

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.explain import Explanation
    from beat.client.schedule_info import Bound
    from beat.history.history import Fired, Passed, Waits
    from beat.schedule.schedule import Schedule
    from beat.timing.zones import Zone

_MOST = 5
_MISFIRE = {
    "skip": "skip: ticks that were missed are skipped",
    "all": "all: every tick that was missed fires, oldest first",
}
_OVERLAP = {
    "skip": "skip: while a run goes on, ticks are skipped",
    "wait": "wait: while a run goes on, ticks wait for it to end",
    "replace": "replace: the newest tick takes the place of the run that goes on",
}


def words(schedule: Schedule, ticked: int) -> dict[str, str]:
    """Return a sentence for each policy that is not the default; `ticked` is how many ticks became jobs."""
    more = [f"and {len(schedule.exclude) - _MOST:,} more"] if len(schedule.exclude) > _MOST else []
    rests = ", ".join([exclusions.words(schedule.exclude[:_MOST]), *more])
    late, window = schedule.misfire_after, schedule.catchup_window
    told = {
        "misfire": _MISFIRE.get(schedule.misfire),
        "misfire_after": late and f"a tick counts as missed when it is {durations.short(late)} late",
        "catchup_window": window and f"a tick that is more than {durations.short(window)} late never fires",
        "catchup_limit": schedule.catchup_limit and f"missed ticks fire {schedule.catchup_limit} at a time",
        "overlap": _OVERLAP.get(schedule.overlap),
        "max_running": schedule.max_running and f"{schedule.max_running} may run at a time",
        "max_waiting": schedule.max_waiting and f"{schedule.max_waiting} may wait",
        "max_runs": schedule.max_runs and f"{ticked:,} of {schedule.max_runs:,} ticks have become jobs",
        "exclude": f"it rests on {rests}" if schedule.exclude else "",
        "jitter": schedule.jitter and f"each tick fires up to {durations.short(schedule.jitter)} after its time",
    }
    return {name: sentence for name, sentence in told.items() if sentence}


def skipped(told: Explanation, passed: Passed, where: Zone) -> str:
    """Return why the tick was skipped."""
    reason = passed.reason
    match reason:
        case "misfire":
            return f"{reason}: {_misfire(told, passed, where)}"
        case "too_old":
            return f"{reason}: {_late(told, passed)}, and what is older than {_window(told)} never fires"
        case "overlap":
            return f"{reason}: {_in_the_way(told, passed, where)}, and {_room(told.policies)}"
        case "replaced":
            newer = f"the tick of {_time(told.instead, told, where)}" if told.instead else passed.behind
            return f"{reason}: {newer} took its place{_waited(passed.waited, told, where)} (overlap='replace')"
        case "excluded":
            return f"{reason}: the schedule rests on {_day(told, where)}"
        case "paused" | "instead" | "retired" if not passed.waited:
            return f"{reason}: {_operated(told, passed, where)}"
        case "group" | "dependency":
            return f"{reason}: {_elsewhere(told, passed)}"
        case "finished":
            return f"{reason}: as many ticks had become jobs, or waited, as there are to be (max_runs)"
    if passed.waited:
        return f"{reason}: when its turn came{_waited(passed.waited, told, where)}, the schedule was {reason}"
    return reason


def _elsewhere(told: Explanation, passed: Passed) -> str:
    """Return how a full group or an unmet requirement caused the skip."""
    if passed.reason == "dependency":
        return passed.why or "what it requires had not happened"
    name = (passed.waited and passed.waited.group) or (told.policies and told.policies.group)
    full = f"the group {name} was full" if name else "its group was full"
    return f"{full}: behind {passed.behind}" if passed.behind else full


def _operated(told: Explanation, passed: Passed, where: Zone) -> str:
    """Return how an operator, or the retirement of the schedule, caused the skip."""
    if passed.reason == "retired":
        return f"no running scheduler declared the schedule any more, and {passed.beat} retired it"
    if passed.reason == "instead":
        at, run = _time(passed.at, told, where), f": {passed.behind}" if passed.behind else ""
        return f"{passed.beat} asked for a run in its place, at {at}{run}"
    until = f" until {_time(told.pause.until, told, where)}" if told.pause and told.pause.until else ""
    why = f" ({told.pause.reason})" if told.pause and told.pause.reason else ""
    by = f"{told.pause.by} had paused the schedule" if told.pause else "the schedule was paused"
    return f"{by}{until}{why}"


def waits(told: Explanation, where: Zone, now: datetime) -> str:
    """Return what the tick waits for, and since when."""
    policy = f" (overlap={told.policies.overlap!r})" if told.policies else ""
    if told.waits and told.waits.group:
        policy = f" (the group {told.waits.group} is full)"
    if told.parent and told.waits is None:
        return f"waits for its turn, after a success of {told.parent.id}"
    if told.waits is None:
        return f"waits for an earlier run to end{policy}"
    since = f"{_time(told.waits.at, told, where)}, for {instants.span((now - told.waits.at).total_seconds())}"
    if not told.waits.behind:
        return f"waits since {since}, behind ticks that wait longer{policy}"
    return f"waits since {since}, behind {_job(told.waits.behind, told, where)}{_goes_on(told, where)}{policy}"


def bound(found: Bound, where: Zone) -> str:
    """Return the bound that ended a schedule."""
    return f"end: {instants.both(found.end, where)}" if found.end else f"max_runs: {found.max_runs:,}"


def _misfire(told: Explanation, passed: Passed, where: Zone) -> str:
    policy = "once" if told.instead else told.policies and told.policies.misfire
    late = _late(told, passed)
    if policy == "once":
        fired = f": that of {_time(told.instead, told, where)}" if told.instead else ""
        return f"{late}, and of the ticks that were missed only the latest fires (misfire='once'){fired}"
    return f"{late}, and what is missed stays missed (misfire='skip')" if policy == "skip" else late


def _late(told: Explanation, passed: Passed) -> str:
    late = instants.span((passed.at - told.instant).total_seconds())
    return f"no scheduler decided it in time, the first to do so came {late} later"


def _window(told: Explanation) -> str:
    own = told.policies and told.policies.catchup_window
    return f"catchup_window={durations.short(own)!r}" if own else "the setting catchup_window allows"


def _in_the_way(told: Explanation, passed: Passed, where: Zone) -> str:
    run = told.behind
    if run is None or not run.enqueued_at:
        return f"job {passed.behind} had not ended" if passed.behind else "ticks waited before it"
    begun = run.started_at and run.started_at <= passed.at and run.started_at
    state = f"running since {_time(begun, told, where)}" if begun else _queued(run, told, where)
    return f"{_job(passed.behind, told, where)} was still {state}"


def _room(schedule: Schedule | None) -> str:
    """Return what the overlap policy allows."""
    if schedule is None or schedule.overlap == "allow":
        return "there was no room for another"
    running, waiting = schedule.max_running or 1, schedule.max_waiting or 1
    if schedule.overlap == "wait":
        return f"only {running} may run and {waiting} wait (overlap='wait', max_waiting={waiting})"
    return f"only {running} may run at a time (overlap={schedule.overlap!r})"


def _goes_on(told: Explanation, where: Zone) -> str:
    run = told.behind
    if run is None:
        return ""
    if run.state == "started" and run.started_at:
        return f", which has been running since {_time(run.started_at, told, where)}"
    if run.closed_at:
        return (
            f", which has {run.state}: its turn comes" if run.state == "succeeded" else f", which ended ({run.state})"
        )
    return f", which has been {_queued(run, told, where)}" if run.state == "queued" else ""


def _queued(run: Fired, told: Explanation, where: Zone) -> str:
    return f"in its queue since {_time(run.enqueued_at, told, where)}"


def _job(job_id: str, told: Explanation, where: Zone) -> str:
    tick = told.behind and told.behind.tick
    return f"{job_id} (the run of {_time(tick, told, where)})" if tick else job_id


def _waited(line: Waits | None, told: Explanation, where: Zone) -> str:
    if line is None:
        return ""
    return f", after it had waited since {_time(line.at, told, where)}" + (
        f" behind {line.behind}" if line.behind else ""
    )


def _day(told: Explanation, where: Zone) -> str:
    """Return the day and the option that excludes it.

    If no date of the schedule matches, a function must have excluded the day. It is not called again.
    """
    day = instants.there(told.instant, where).date()
    exclude = told.policies.exclude if told.policies else ()
    paths = exclusions.functions(exclude)
    dates = [one for one in exclude if one not in paths and exclusions.rests((one,), day)]
    named = dates[:1] or paths
    return f"{day:%a %Y-%m-%d} in {where.name}" + (f" (exclude: {exclusions.words(named)})" if named else "")


def _time(instant: datetime | None, told: Explanation, where: Zone) -> str:
    return instants.both(instant.replace(microsecond=0), where, told.instant) if instant else "then"
