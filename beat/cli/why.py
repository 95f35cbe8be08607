"""`beat why`: what became of one tick, or why there is none, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beat.cli import asking, instants, output, telling
from beat.zones import zone

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.explanation import Explanation
    from beat.zones import Zone

_STATES = {
    "paused": "the schedule is paused",
    "disabled": "the schedule is disabled",
    "finished": "the schedule has finished: no tick is left",
    "retired": "the schedule is retired: no live beat declares it",
    "broken": "the schedule is broken: see `beat show`",
}


@click.command("why")
@click.argument("schedule_id", metavar="ID")
@click.argument("time", nargs=-1, required=True, metavar="TIME")
@asking.the_url
@asking.as_json
def command(*, schedule_id: str, time: tuple[str, ...], url: str | None, as_json: bool) -> None:
    """Say what became of one tick, or why there is none.

    \b
    beat why report 03:00              the latest that is past, in its zone
    beat why report 2026-11-16 03:00   another day, in its zone
    beat why report 2026-11-16T02:00Z  any time with its offset

    A tick was enqueued (when, by which beat, and how its run ended) or skipped (with the reason), or it is still to
    come, or there is no tick at that time: then the nearest ones are named. Of what the ledger no longer holds,
    nothing is claimed.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    client = asking.client(url)
    where, now = zone(client.get_schedule(schedule_id).tz), client.now()
    meant = instants.when(" ".join(time), where, now)
    if meant.note:
        output.say(meant.note, err=True)
    told = client.why(schedule_id, meant.instant)
    if as_json:
        output.document(**_plain(told))
        return
    output.say(output.printable(f"{instants.both(told.instant, where)}: {sentence(told, where, now)}"))
    for run in told.runs:
        output.echo()
        telling.at_length(run)


def sentence(told: Explanation, where: Zone, now: datetime) -> str:
    """The answer, as what follows the time and a colon."""
    match told.answer:
        case "enqueued":
            first, *others = (telling.story(run, where, now) for run in told.runs)
            return "; and again ".join([first, *others])
        case "skipped" if told.passed:
            return telling.skipped(told.passed, where)
        case "due":
            return _due(told)
        case "not_due":
            return f"not due yet: {_in(told.instant, now)}; the next tick is {_tick(told.next_run, where)}"
        case "held":
            return f"not decided: {_STATES.get(told.state, f'the state of the schedule is {told.state!r}')}"
        case "not_registered":
            return f"the schedule was not there yet: it was registered at {_tick(told.begins, where)}"
        case "trimmed":
            reach = f"it begins with the tick of {_tick(told.begins, where)}" if told.begins else "it is empty"
            return f"not known: the ledger no longer goes back so far; {reach}"
        case "missing":
            return "no verdict, though it is a tick and later ones were decided: see `beat verify`"
        case "unreadable":
            return "not known: the rule that decided then cannot be read"
    return _no_tick(told, where)


def _no_tick(told: Explanation, where: Zone) -> str:
    near = [instants.both(tick, where, told.instant) for tick in (told.before, told.after) if tick]
    nearest = f"the nearest {'are' if len(near) > 1 else 'is'} {' and '.join(near)}" if near else "it has none at all"
    moved = ""
    if told.change:
        at = instants.local(told.change.at.replace(microsecond=0), where)
        moved = f"; the definition changed at {at}, and went on with {_tick(told.change.next, where)}"
    return f"not a tick of this schedule: {nearest}{moved}"


def _due(told: Explanation) -> str:
    late = f"due for {instants.span(told.late or 0)}, and not decided yet"
    if told.holder:
        return f"{late}: {told.holder} is at work on it"
    if not told.beats:
        return f"{late}: no beat is alive"
    return f"{late}: {told.beats} beat{'s are' if told.beats > 1 else ' is'} alive, none is at work on it"


def _in(instant: datetime, now: datetime) -> str:
    return f"in {instants.span((instant - now).total_seconds())}"


def _tick(instant: datetime | None, where: Zone) -> str:
    return instants.both(instant, where) if instant else "none"


def _plain(told: Explanation) -> dict[str, Any]:
    return telling.times({
        "schedule": told.schedule_id,
        "instant": told.instant,
        "tz": told.tz,
        "answer": told.answer,
        "state": told.state,
        "next_run": told.next_run,
        "runs": [telling.plain(run) for run in told.runs],
        "skipped": told.passed and telling.plain(told.passed),
        "before": told.before,
        "after": told.after,
        "change": told.change and telling.plain(told.change),
        "begins": told.begins,
        "late": told.late,
        "holder": told.holder or None,
        "beats": told.beats,
    })  # fmt: skip
