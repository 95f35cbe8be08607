"""`beat history`: show what became of every tick, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from beat.cli import common_options, output, run_details, schedule_ids
from beat.client.describe import decisions, instants
from beat.history.history import Action, Change, Fired, Passed, Waits
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from beat.history.history import Line
    from beat.timing.zones import Zone

_MOST = 100_000
_FAILED = ("failed", "lost")


@click.command("history")
@click.argument("schedule_id", required=False, metavar="[ID]", shell_complete=schedule_ids.complete)
@click.option("--failed", is_flag=True, help="Show only runs that failed or were lost.")
@click.option("--since", metavar="TIME", help="Begin then: 24h, yesterday, 2026-11-16, 2026-11-16T02:00Z.")
@click.option(
    "-n",
    "number",
    metavar="N",
    type=click.IntRange(1, _MOST),
    default=20,
    show_default=True,
    help="Show at most so many.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show all details, tracebacks included.")
@common_options.reveal
@common_options.the_url
@common_options.as_json
def command(
    *,
    schedule_id: str | None,
    failed: bool,
    since: str | None,
    number: int,
    verbose: bool,
    reveal: bool,
    url: str | None,
    as_json: bool,
) -> None:
    """Show what became of the ticks of a schedule, or of all of them, newest first.

    \b
    beat history                        the last 20 of all schedules
    beat history report                 of one
    beat history --failed --since 24h   what went wrong since yesterday
    beat history report -n 1 -v         the last run at length, with its traceback
    beat history --json | jq '.lines[] | select(.state == "failed") | .job'

    Each tick is a line: what became of its run, or why it was skipped. Changes of the definition stand between them.
    Of one schedule you also see how late the job was enqueued (late), how long it waited in its queue (wait) and how
    long it ran (took). An open run has not ended, as far as is known; a waiting tick waits for an earlier run to end.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    client = common_options.client(url)
    now = client.now()
    own = common_options.zone_of(client, schedule_id) if schedule_id else zone(client.settings.tz)
    lines = client.history(
        schedule_id,
        since=None if since is None else instants.since(since, own, now),
        outcome=_FAILED if failed else None,
        limit=number,
    )
    if as_json:
        output.document(**common_options.shown({"lines": [decisions.plain(line) for line in lines]}, reveal=reveal))
        return
    if not lines:
        wanted = ("failed run" if failed else "line") + (f" of {schedule_id}" if schedule_id else "")
        output.say(f"the ledger holds no {wanted}{' since then' if since else ''}", err=True)
        return
    zones = {each: common_options.zone_of(client, each) for each in {line.schedule_id for line in lines}}
    if verbose:
        _at_length(lines, zones, now, reveal=reveal)
    else:
        _table(lines, zones, single=schedule_id is not None, reveal=reveal)


def _instant(line: Line) -> datetime:
    match line:
        case Fired():
            return line.tick or line.at
        case Passed():
            return line.first
        case Waits():
            return line.tick
        case Change() | Action():
            return line.at.replace(microsecond=0)


def _at_length(lines: Sequence[Line], zones: dict[str, Zone], now: datetime, *, reveal: bool) -> None:
    for place, line in enumerate(lines):
        where = zones[line.schedule_id]
        if place:
            output.echo()
        head = f"{line.schedule_id}, {instants.both(_instant(line), where)}"
        story = common_options.worded(decisions.story(line, where, now), reveal=reveal)
        output.say(output.printable(f"{head}: {story}"))
        if isinstance(line, Fired):
            run_details.show(line, reveal=reveal)


def _table(lines: Sequence[Line], zones: dict[str, Zone], *, single: bool, reveal: bool) -> None:
    """Print the lines as a table without empty columns. A single schedule also has the columns late, wait and took."""
    placed = [(line, _instant(line), zones[line.schedule_id]) for line in lines]
    fine = any(at.second for _, at, _ in placed)
    runs = [line if isinstance(line, Fired) else None for line in lines]
    if single:
        own = placed[0][2]
        columns = {own.name: [instants.local(at, own, fine=fine) for _, at, _ in placed]}
        columns |= {} if own.name == "UTC" else {"UTC": [instants.utc(at, own, fine=fine) for _, at, _ in placed]}
    else:
        columns = {"UTC": [instants.local(at, zone("UTC"), fine=fine) for _, at, _ in placed]}
        columns["local"] = [instants.named(at, where, fine=fine) for _, at, where in placed]
        columns["schedule"] = [line.schedule_id for line in lines]
    columns["outcome"] = [decisions.outcome(line) for line in lines]
    if single:
        columns["late"] = _spans([None if run is None or run.late_ms is None else run.late_ms / 1000 for run in runs])
        columns["wait"] = _spans([run.wait if run else None for run in runs])
        columns["took"] = _spans([run.duration if run else None for run in runs])
    columns["note"] = [common_options.worded(decisions.note(line, where), reveal=reveal) for line, _, where in placed]
    told = {name: cells for name, cells in columns.items() if any(cells)}
    output.table(list(told), list(zip(*told.values(), strict=True)))
    for words in decisions.advised(lines):
        output.echo()
        output.say(output.printable(words))


def _spans(seconds: Sequence[float | None]) -> list[str]:
    return ["" if each is None else instants.span(each) for each in seconds]
