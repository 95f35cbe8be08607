"""`beat list`: show the schedules page by page, with next ticks and last runs, and the schedulers that are alive."""

from __future__ import annotations

import functools
import itertools
import shlex
import time
from typing import TYPE_CHECKING, Any

import click

from beat.cli import common_options, output, schedule_ids
from beat.cli.render import live, tables
from beat.client.describe import decisions, export, instants
from beat.client.listing import STATES
from beat.client.ordering import ORDERS
from beat.errors import NoRedis
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from beat.client.client import Client
    from beat.client.listing import Counts, Listed
    from beat.storage.heartbeat import Instance

_PAGE, _MOST, _AT_ONCE = 50, 100_000, 500
_RUNS = 20
_AGAIN_S = 2
_STALE_S = 30
_COUNTED = ("failing", "paused", "overridden", "disabled", "finished", "retired", "broken")
_NOTHING = (
    "there is no schedule yet: write one with @periodic, and beat run MODULE registers it; beat dev MODULE tries it "
    "out, Redis and worker included"
)
_NAMED = 5
"""The largest number of queues that the warning about missing workers names."""
_ROUTES_TO_WORKERS = ("first_idle", "failover")
_FOOT = 9  # lines of the terminal that headings and footer take


@click.command("list")
@click.argument("match", required=False, metavar="[GLOB]")
@click.option("--state", type=click.Choice(STATES), metavar="STATE", help=f"List only {', '.join(STATES)}.")
@click.option("--failing", is_flag=True, help="List only schedules whose last run failed.")
@click.option("--overridden", is_flag=True, help="List only schedules with another rule than their code's.")
@click.option("--source", metavar="GLOB", help="List only schedules from code (code) or from data (api).")
@click.option("--app", metavar="GLOB", help="List only schedules of this application.")
@click.option("--queue", metavar="GLOB", help="List only schedules of this queue.")
@click.option("--func", metavar="GLOB", help="List only schedules of this function: app.tasks.report, 'app.*'.")
@click.option(
    "--sort",
    type=click.Choice(list(ORDERS)),
    metavar="ORDER",
    default="id",
    show_default=True,
    help=f"Sort by {', '.join(ORDERS)}.",
)
@click.option(
    "-n",
    "number",
    metavar="N",
    type=click.IntRange(1, _MOST),
    help=f"List at most so many.  [default: {_PAGE}; with --json all]",
)
@click.option(
    "--after",
    metavar="ID",
    shell_complete=schedule_ids.complete,
    help="Show the next page, which begins after this id.",
)
@click.option("--watch", is_flag=True, help=f"Refresh every {_AGAIN_S} seconds until Ctrl-C.")
@common_options.reveal
@common_options.the_url
@common_options.as_json
def command(*, number: int | None, watch: bool, reveal: bool, url: str | None, as_json: bool, **asked: Any) -> None:
    """List schedules: what is next, how the last run went, and the last 20 runs as a line.

    \b
    beat list                          the first 50, by id
    beat list 'customer_*'             those whose ids match; a part of an id will do
    beat list --sort next              what fires next
    beat list --failing                what failed when it last ran
    beat list --state paused           why, and until when
    beat list --watch                  drawn again every two seconds
    beat list --json | jq -r '.schedules[] | select(.last.state == "failed") | .id'

    In the line of the last runs a bar is as high as the run took long: ▁█. Others have a sign: ✗ failed, ? lost,
    ! stopped, · skipped, ○ not ended yet. The lines below the table say how many schedules there are, and whether a
    scheduler is alive. `beat add --file` takes what --json --reveal prints; without --reveal, secrets are masked.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    client = common_options.client(url)
    if as_json and not watch:
        _document(client, number, asked, reveal=reveal)
        return
    look = functools.partial(_page, client, asked, reveal=reveal)
    if not watch:
        _show(look(number or _PAGE))
    elif as_json or not output.is_terminal():
        raise click.UsageError("--watch draws on a terminal; for a program, ask again with --json")
    else:
        _watch(look, number or _MOST)


def _page(client: Client, asked: dict[str, Any], number: int, *, reveal: bool) -> list[str]:
    """Return the lines of one page: the table, the totals and the warnings."""
    found = list(itertools.islice(client.schedules(**asked, runs=_RUNS, page=min(number + 1, _AT_ONCE)), number + 1))
    counts, beats, now = client.counts(), client.beats(), client.now()
    shown = found[:number]
    table = tables.lines(shown, now, zone(client.settings.tz), reveal=reveal) if shown else []
    footer = _footer(shown, counts, beats, now)
    return [*table, *([""] if table else []), *footer, *_without_workers(client, shown), *_more(shown, found)]


def _show(lines: list[str]) -> None:
    for line in lines:
        output.echo(line)


def _watch(look: Callable[[int], list[str]], number: int) -> None:
    with live.screen() as draw:
        while True:
            try:
                room = max(1, live.height() - _FOOT)
                draw(look(min(number, room)))
            except NoRedis as e:  # Redis may come back
                draw(output.wrapped(str(e)))
            time.sleep(_AGAIN_S)


def _footer(shown: list[Listed], counts: Counts, beats: list[Instance], now: datetime) -> Iterator[str]:
    """Yield the number of schedules by state and of live schedulers, and a warning if no scheduler runs."""
    if not counts.schedules:
        yield from output.wrapped(_NOTHING)
        return
    many = f"{counts.schedules:,} schedule{'s' * (counts.schedules > 1)}"
    several = many if len(shown) == counts.schedules else f"{f'{len(shown):,}' if shown else 'none'} of {many}"
    yield from output.wrapped(", ".join([several, *_counted(counts), *_alive(beats, now)]))
    if any(each.standing.override for each in shown):
        yield from output.wrapped("a rule with (override) or ! is not the code's: beat show ID has both")
    if not beats:
        yield from output.complained(
            "warning", "no scheduler is running: nothing fires until one runs (beat run MODULE)"
        )


def _without_workers(client: Client, shown: list[Listed]) -> Iterator[str]:
    """Yield a warning about queues of these schedules that no live worker reads."""
    places = {place for row in shown if row.standing.state == "active" for place in _places(row.standing.definition)}
    staff = {queue.name: queue for queue in client.staff(sorted({name for place in places for name in place}))}
    unread = {name for place in places if all(staff[name].workers == 0 for name in place) for name in place}
    names = sorted(unread)
    if not names:
        return
    queued = sum(staff[name].queued for name in names)
    waiting = f", and {queued:,} job{'s wait' if queued != 1 else ' waits'} there" if queued else ""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    several = "queues" if len(names) > 1 else "queue"
    named = ", ".join(names[:_NAMED])
    words = f"no live worker reads the {several} {named}{more}{waiting}: rq worker {shlex.join(names[:_NAMED])}"
    yield from output.complained("warning", words)


def _places(definition: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the queues of a schedule, as one tuple if its route chooses a queue that has a worker."""
    queues = definition.get("queues") or [definition.get("queue")]
    names = [name for name in queues if isinstance(name, str)] if isinstance(queues, list) else []
    yield from [tuple(names)] if definition.get("route") in _ROUTES_TO_WORKERS else [(name,) for name in names]
    if isinstance(slow := definition.get("slow_queue"), str):
        yield (slow,)


def _counted(counts: Counts) -> Iterator[str]:
    for name in _COUNTED:
        number = getattr(counts, name)
        if number:
            yield f"{number:,} {name}"


def _alive(beats: list[Instance], now: datetime) -> Iterator[str]:
    if not beats:
        return
    passes = [each.last_pass for each in beats if each.last_pass]
    age = max(0.0, (now - max(passes)).total_seconds()) if passes else None
    fresh = "not checked yet" if age is None else f"checked {instants.span(age)} ago"
    late = ", which is late" if age is not None and age > _STALE_S else ""
    yield f"{len(beats):,} scheduler{'s' * (len(beats) > 1)}, {fresh}{late}"


def _more(shown: list[Listed], found: list[Listed]) -> Iterator[str]:
    if shown and len(found) > len(shown):
        yield from output.wrapped(output.printable(f"go on with the same options and --after {shown[-1].place}"))


def _document(client: Client, number: int | None, asked: dict[str, Any], *, reveal: bool) -> None:
    counts, beats = client.counts(), client.beats()
    found = itertools.islice(client.schedules(**asked, runs=1, page=min(number or _AT_ONCE, _AT_ONCE)), number)
    output.long_document(
        "schedules",
        (common_options.shown(export.row(each, reveal=reveal), reveal=reveal) for each in found),
        counts=counts._asdict(),
        beats=[decisions.times(each._asdict()) for each in beats],
    )
