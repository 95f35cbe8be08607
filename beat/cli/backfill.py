"""`beat backfill`: run ticks of the past, oldest first and a few at a time. Repeating a command runs no tick twice."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from beat.cli import common_options, output, schedule_ids
from beat.cli.render.progress import Progress
from beat.client.describe import changes, decisions, instants
from beat.errors import NoRedis
from beat.timing import clock
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from beat.client.backfill import Backfill, Step
    from beat.client.schedule_info import Override, Standing
    from beat.timing.zones import Zone

_MOST = 10_000
_LISTED = 20
_INTERRUPTED = 130
_QUESTION = "Backfill the ticks of that rule?"
_GOES_ON = "those that were enqueued go on; the same command goes on with the others"


@click.command("backfill")
@click.argument("schedule_id", metavar="ID", shell_complete=schedule_ids.complete)
@click.option(
    "--from", "start", metavar="TIME", required=True, help="Begin with this tick: yesterday, '2026-11-01 03:00', 7d."
)
@click.option("--to", "end", metavar="TIME", required=True, help="End with this tick; with a day, its last one.")
@click.option(
    "--max-parallel",
    metavar="N",
    type=click.IntRange(1, 100),
    default=2,
    show_default=True,
    help="Run at most so many at once.",
)
@click.option("--again", is_flag=True, help="Include ticks that have a run.")
@click.option("--yes", is_flag=True, help=f"Do not ask, and allow more than {_MOST:,} ticks.")
@common_options.rehearse
@common_options.the_author
@common_options.the_url
@common_options.as_json
def command(
    *,
    schedule_id: str,
    start: str,
    end: str,
    max_parallel: int,
    again: bool,
    yes: bool,
    dry_run: bool,
    by: str | None,
    url: str | None,
    as_json: bool,
) -> int:
    """Make up for ticks of the past: a run for each that has none, oldest first, a few at a time.

    \b
    beat backfill report --from 2026-11-01 --to 2026-11-14 --dry-run
    beat backfill report --from 2026-11-01 --to 2026-11-14
    beat backfill report --from "2026-11-12 03:00" --to "2026-11-12 03:00" --again

    The ticks are those of the rule in force. If an operator has overridden the rule of the code, the command says so,
    and asks on a terminal. Each job knows its own tick (get_current_run().scheduled_for). The command waits for runs to
    end before it enqueues more. Interrupt it as you like: the same command goes on where it was, and no tick is run
    twice by it. Ticks that have a run are left out, unless you say --again; so are days of rest, and ticks that are not
    decided yet. Ends with 1 if a run failed.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    client = common_options.client(url, by)
    before, now = client.get(schedule_id), client.now()
    where = zone(before.tz)
    ends = _ends(start, end, where, now)
    plan = client.plan_backfill(schedule_id, *ends, again=again)
    if len(plan.ticks) > _MOST and not (yes or dry_run):
        many = f"that is {len(plan.ticks):,} ticks, more than {_MOST:,}"
        raise click.UsageError(f"{many}: take a shorter time, or say --yes; --dry-run shows them")
    if not as_json:
        _tell(plan, where, max_parallel)
    override = before.override if plan.ticks and not as_json else None
    if override:
        output.say(output.printable(_overridden(before, override)), err=True)
    if dry_run:
        _document(plan, [], dry_run=True) if as_json else _list(plan, where)
        return 0
    if override and not yes and _is_answered() and not common_options.agreed(_QUESTION, yes=False):
        return common_options.NOT_DONE
    with closing(client.backfill(schedule_id, *ends, max_parallel=max_parallel, again=again)) as steps:
        ended = _followed(steps, where, plan, quiet=as_json)
    if as_json:
        _document(plan, ended, dry_run=False)
    return 0 if all(step.run and step.run.state == "succeeded" for step in ended) else 1


def _overridden(known: Standing, override: Override) -> str:
    """Return a sentence with the operator's rule, whose ticks are run, and the rule of the code."""
    return (
        f"these are ticks of the rule that {override.by or 'an operator'} has put in the place of the code's: "
        f"{changes.rule(known.rule)}, not {changes.rule(override.declared)}"
    )


def _is_answered() -> bool:
    """Return whether a person at a terminal can answer a question."""
    return sys.stdin is not None and sys.stdin.isatty() and output.is_terminal(err=True)


def _ends(start: str, end: str, where: Zone, now: datetime) -> tuple[datetime, datetime]:
    first, last = instants.since(start, where, now, "--from"), instants.until(end, where, now)
    if first > min(last, now):
        late = "lies ahead: a backfill is for the past" if first > now else f"lies after --to {end!r:.60}"
        raise click.UsageError(
            f"--from {start!r:.60} is {instants.both(first.replace(microsecond=0), where)}, and {late}"
        )
    return first, last


def _tell(plan: Backfill, where: Zone, max_parallel: int) -> None:
    """Print which ticks the backfill will run, and how many it leaves out for which reason."""
    if plan.ticks:
        last = f" to {_tick(plan.ticks[-1], where)}" if len(plan.ticks) > 1 else ""
        pace = f", {max_parallel} at a time" if len(plan.ticks) > max_parallel else ""
        output.say(
            f"{plan.schedule_id}: {common_options.ticks(len(plan.ticks))} from {_tick(plan.ticks[0], where)}"
            f"{last}{pace}"
        )
    else:
        output.say(f"{plan.schedule_id}: no tick is left to make up for")
    left_out = {
        "done by this backfill before": len(plan.done),
        "that have a run (--again for those too)": plan.ran,
        "on days of rest": plan.excluded,
        "that are not decided yet": plan.undecided,
    }
    told = ", ".join(f"{number:,} {why}" for why, number in left_out.items() if number)
    if told:
        output.say(f"left out: {told}", err=True)
    if plan.untold:
        output.say(f"{plan.untold:,} lie before what the ledger holds: whether they had a run, nobody knows", err=True)


def _list(plan: Backfill, where: Zone) -> None:
    for tick in plan.ticks[:_LISTED]:
        output.say(f"  {_tick(tick, where)}")
    if len(plan.ticks) > _LISTED:
        output.say(f"  and {len(plan.ticks) - _LISTED:,} more (--json has all of them)")
    output.say("nothing was done: this was a rehearsal (--dry-run)", err=True)


def _followed(steps: Iterator[Step], where: Zone, plan: Backfill, *, quiet: bool) -> list[Step]:
    """Print the progress of the runs, as a bar on a terminal and as lines in a pipe, and return the ended ones."""
    ended: list[Step] = []
    states: Counter[str] = Counter()
    bar = Progress(sys.stderr, plan.schedule_id)
    try:
        for step in steps:
            if step.run and not step.run.closed_at:
                bar.show(step.ended, step.total, states, f"{step.run.state} {instants.local(step.tick, where)}")
                continue
            ended.append(step)
            states[step.run.state if step.run else "unknown"] += 1
            bar.clear()
            if not (quiet or bar.is_drawn) or (bar.is_drawn and not quiet and _is_bad(step)):
                output.echo(output.printable(_line(step, where)))
            bar.show(step.ended, step.total, states, instants.local(step.tick, where))
    except KeyboardInterrupt:
        bar.clear()
        output.say(_GOES_ON, err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None
    except NoRedis:
        bar.clear()
        output.say(_GOES_ON, err=True)
        raise
    bar.clear()
    if ended and not quiet:
        told = ", ".join(f"{number:,} {state}" for state, number in states.most_common())
        output.say(f"{plan.schedule_id}: {len(ended):,} run{'s' * (len(ended) != 1)}: {told}")
    return ended


def _is_bad(step: Step) -> bool:
    return step.run is None or step.run.state != "succeeded"


def _line(step: Step, where: Zone) -> str:
    run = step.run
    if run is None:
        return f"{_tick(step.tick, where)}  unknown    {step.job_id}"
    took = f" after {instants.span(run.duration)}" if run.duration is not None else ""
    said = common_options.worded((decisions.error(run) or run.message).split("\n")[0], reveal=False)
    return f"{_tick(step.tick, where)}  {run.state}{took}{f': {said}' if said else ''}  {run.job_id}"


def _tick(tick: datetime, where: Zone) -> str:
    return instants.both(tick, where)


def _document(plan: Backfill, ended: list[Step], *, dry_run: bool) -> None:
    told: dict[str, Any] = {
        **plan._asdict(),
        "ticks": [clock.text(tick) for tick in plan.ticks],
        "done": [clock.text(tick) for tick in plan.done],
    }
    told["schedule"] = told.pop("schedule_id")
    runs = [decisions.plain(step.run) for step in ended if step.run]
    output.document(**common_options.shown({"backfill": told, "dry_run": dry_run, "runs": runs}, reveal=False))
