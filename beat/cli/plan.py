"""`beat plan`: show what a deploy of this code would change, and write nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from beat.cli import common_options, modules, output
from beat.client.client import Client
from beat.client.describe import decisions, instants
from beat.client.plan import KINDS
from beat.config import settings
from beat.policies.definition_diff import masked, shown
from beat.schedule.registry import default_registry
from beat.timing import clock, durations
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from beat.client.plan import Plan, Step

_CHANGES = 1
_MARKS = {
    "added": ("+", "green"),
    "changed": ("~", "yellow"),
    "returning": ("+", "green"),
    "overridden": ("!", "magenta"),
    "taken": ("x", "red"),
    "removed": ("-", "red"),
}


@click.command("plan")
@click.argument("names", metavar="[MODULES]...", nargs=-1)
@click.option("--app", metavar="NAME", help="Compare as this application.  [default: the setting app]")
@click.option("--setup", metavar="MODULE:CALLABLE", help="Call this before importing, to prepare the application.")
@click.option("--exit-code", is_flag=True, help="End with 1 if there are changes.")
@common_options.reveal
@common_options.the_url
@common_options.as_json
def command(
    *,
    names: tuple[str, ...],
    app: str | None,
    setup: str | None,
    exit_code: bool,
    reveal: bool,
    url: str | None,
    as_json: bool,
) -> int:
    """Compare the schedules of the code with those in Redis: what would a deploy change? Nothing is written.

    \b
    beat plan app.tasks                 name all the modules that your schedulers load
    beat plan                           the modules of BEAT_MODULES or [tool.beat], else ./tasks.py
    beat plan app.tasks --exit-code     for CI: ends with 1 if there are changes
    beat plan --json | jq -r '.removed[].id'

    \b
    + added       Redis does not know it
    ~ changed     old → new, option by option, with the next ticks before and after
    + returning   it was held or retired, and goes on from now
    ! overridden  an operator's rule stays in force, whatever the code says
    x taken       another live application declares this id, or it was added from data: the code's is refused
    - removed     its ticks are held when no running scheduler declares it, and it is retired after retire_after

    What is removed is found among the schedules that modules of this code have declared, for this application.
    Starting a scheduler applies the plan. Values whose names look secret, and passwords in URLs, are masked.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    loaded = settings.load({"setup": setup, "app": app, "modules": names or None, "redis_url": url})
    chosen = modules.choose(names, loaded)
    if not chosen.names:
        raise click.UsageError(f"name the modules of the code, as in 'beat plan app.tasks', {modules.REMEDY}")
    if chosen.why:
        output.say(chosen.why, err=True)
    with output.kept_for_the_report():
        _load(chosen.names, loaded.settings.setup)
    found = Client(common_options.where(url), app=loaded.settings.app).plan(default_registry)
    if not reveal:
        steps = (replace(each, differences=tuple(map(masked, each.differences))) for each in found.steps)
        found = replace(found, steps=tuple(steps))
    if as_json:
        told: dict[str, Any] = {kind: [_plain(each) for each in found.of(kind)] for kind in KINDS}
        other_ids = [each._asdict() for each in found.other_ids()]
        output.document(app=found.app, changes=found.changes, **told, same=found.same, other_ids=other_ids)
    else:
        _show(found)
    return _CHANGES if exit_code and found.changes else 0


def _load(names: Sequence[str], setup: str | None) -> None:
    done = default_registry.load(*names, setup=setup)
    for name in done.silent:
        output.complaint("warning", f"{name} declares no schedule with beat.periodic", err=True)
    for name in done.unseen:
        output.complaint("warning", f"{name} holds schedules but no __init__.py, and was not imported", err=True)
    if not len(default_registry):
        output.complaint("warning", "the code declares no schedule: a beat with none retires nothing", err=True)


def _show(found: Plan) -> None:
    for each in found.steps:
        mark, colour = _MARKS[each.kind]
        output.entry(_head(each), list(_facts(each)), mark=mark, colour=colour)
    for func, old, new in found.other_ids():
        words = f"{old} goes and {new} comes with the same function {func}: "
        output.say(f'{words}pass id="{old}" to keep its history')
    if found.steps:
        output.echo()
    counts = [f"{len(found.of(kind)):,} {kind}" for kind in KINDS if found.of(kind)]
    same = f"{found.same:,} the same"
    output.say(f"{', '.join(counts)}; {same}" if counts else f"no changes: {same}")


def _head(each: Step) -> str:
    match each.kind:
        case "returning":
            return f"{each.schedule_id}  returning: it was {'retired' if each.state == 'retired' else 'held'}"
        case "overridden":
            return f"{each.schedule_id}  overridden{'' if each.changes else ': as before'}"
        case "taken":
            if each.owner:
                return f"{each.schedule_id}  taken: the application {each.owner!r}, which is running, declares this id"
            return f"{each.schedule_id}  taken: an operator added a schedule of this id from data"
    return f"{each.schedule_id}  {each.kind}"


def _facts(each: Step) -> Iterator[tuple[str, str]]:
    """Yield the facts about a step, each as a name and a value."""
    if each.kind == "taken" and each.owner:
        yield "then", "the code's is refused while that one runs: give it another id, or a BEAT_PREFIX to each program"
        return
    if each.kind == "taken":
        yield "then", f"the code's is refused: remove the other (beat remove {each.schedule_id}), or rename this one"
        return
    if each.kind in {"added", "removed"}:
        yield "when", each.when
    for option, was, becomes in each.differences:
        yield option, f"{shown(was)} → {shown(becomes)}"
    yield from _overridden(each)
    yield from _ticks(each)
    if each.kind == "removed":
        yield "then", _retirement(each)
        if each.place:
            yield "if", f"the scheduler runs in {each.place}: the application has no name (BEAT_APP)"


def _overridden(each: Step) -> Iterator[tuple[str, str]]:
    told = each.overridden
    if told is None:
        return
    since = f" since {_at(told.at, each.tz)}" if told.at else ""
    yield "in force", f"{told.rule}, by {told.by or 'somebody'}{since}"
    yield "the code", told.code + (f": {_listed(told.ticks, each.tz)}" if told.ticks else "")
    yield "to reset", f"beat reschedule {each.schedule_id} --reset"


def _ticks(each: Step) -> Iterator[tuple[str, str]]:
    """Yield the next ticks of a step: once if they stay the same, else before and after the deploy."""
    before = _listed(each.before, each.tz)
    after = _listed(each.after, each.tz) or (f"after {each.follows}" if each.follows else "")
    if each.kind == "removed":
        yield from [("next", before)] if before else []
    elif each.before == each.after or not each.before:
        yield "next", after or "none"
    else:
        yield "before", before
        yield "after", after or "none"


def _retirement(each: Step) -> str:
    after = durations.short(each.retire_after) if each.retire_after else "a while"
    if each.held_since:
        return f"held since {_at(each.held_since, each.tz)}; retired after {after}"
    if each.state == "paused":
        return f"held when no running scheduler declares it; retired after {after}, when its pause has ended"
    return f"held when no running scheduler declares it; retired after {after}"


def _listed(ticks: Sequence[datetime], tz: str) -> str:
    where, fine = zone(tz), any(tick.second for tick in ticks)
    told = ", ".join(instants.local(tick, where, fine=fine) for tick in ticks)
    return f"{told} {where.name}" if told else ""


def _at(instant: datetime, tz: str) -> str:
    return instants.both(instant.replace(microsecond=0), zone(tz))


def _plain(each: Step) -> dict[str, Any]:
    overridden = each.overridden
    return decisions.times({
        "id": each.schedule_id,
        "changes": each.changes,
        "when": each.when,
        "tz": each.tz,
        "declared": each.declared or None,
        "state": each.state or None,
        "func": each.func or None,
        "follows": each.follows or None,
        "owner": each.owner or None,
        "place": each.place or None,
        "options": [option._asdict() for option in each.differences],
        "before": [clock.text(tick) for tick in each.before],
        "after": [clock.text(tick) for tick in each.after],
        "overridden": overridden
        and decisions.times({**overridden._asdict(), "ticks": [clock.text(tick) for tick in overridden.ticks]}),
        "held_since": each.held_since,
        "retire_after": each.retire_after.total_seconds() if each.retire_after else None,
    })  # fmt: skip
