"""`beat timeline`: draw past and coming load, and name the instants at which schedules pile up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from beat.cli import common_options, output
from beat.cli.render import timeline
from beat.client.describe import instants, load
from beat.client.timeline import FEWEST, LONGEST, MOST
from beat.history.ledger import OUTCOMES
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.client.timeline import Timeline
    from beat.timing.zones import Zone

_PILES, _NAMES = 5, 3
_WORDS = (*OUTCOMES, "open")


@click.command("timeline")
@click.option(
    "--hours",
    metavar="N",
    type=click.IntRange(1, LONGEST),
    default=24,
    show_default=True,
    help="Show so many hours before and after now.",
)
@click.option("--tz", metavar="ZONE", help="Use this IANA zone, as in Europe/Paris.  [default: setting tz, or UTC]")
@common_options.the_url
@common_options.as_json
def command(*, hours: int, tz: str | None, url: str | None, as_json: bool) -> None:
    """Draw the load of the last hours and of the next ones, and name the pile-ups.

    \b
    beat timeline                       the last 24 hours, and the next
    beat timeline --hours 2             closer
    beat timeline --hours 168           a week to both sides
    beat timeline --json | jq '.pile_ups[0]'

    Left of now: the jobs that were enqueued, coloured by what became of them. Right of it: the ticks of active
    schedules. Below: what failed, was lost, stopped or skipped, or is open, as a digit for each column; + is ten or
    more. A pile-up is an instant at which at least ten schedules are due, and four times as many as in a usual minute.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    client = common_options.client(url)
    where = zone(client.settings.tz if tz is None else tz)
    if as_json:
        output.document(**load.plain(client.timeline(hours, tz=where.name)))
        return
    room = output.columns() - timeline.MARGIN - 1
    found = client.timeline(hours, slices=min(max(room, FEWEST), MOST), tz=where.name)
    if not found.schedules:
        output.say("there is no schedule yet: beat run MODULE registers those of your code", err=True)
        return
    for line in timeline.chart(found, where):
        output.echo(line)
    output.echo()
    for sentence in (*_sums(found), *_notes(found, where)):
        output.say(sentence)
    _pile_ups(found, where)


def _sums(found: Timeline) -> Iterator[str]:
    """Yield one sentence with the totals of the past, and one with those of what is to come."""
    runs = {word: sum(getattr(each, word) for each in found.slices) for word in _WORDS}
    told = ", ".join(f"{number:,} {word}" for word, number in runs.items() if number)
    skipped = sum(each.skipped for each in found.slices)
    passed = f"; {_several(skipped, 'tick')} skipped" if skipped else ""
    yield f"past: {_several(sum(runs.values()), 'job')}{f' ({told})' if told else ''}{passed}"
    ticks = sum(each.coming for each in found.slices)
    rest = found.schedules - found.active
    idle = f"; {_several(rest, 'schedule')} not active" if rest else ""
    yield f"coming: {_several(ticks, 'tick')} of {_several(found.active, 'active schedule')}{idle}"


def _notes(found: Timeline, where: Zone) -> Iterator[str]:
    """Yield a sentence for each thing that the chart does not show."""
    if found.overdue:
        yield f"{_several(found.overdue, 'tick')} due and not decided yet: not drawn"
    if found.partial and found.whole_from:
        since = instants.local(found.whole_from.replace(microsecond=0), where)
        yield f"the past is whole from {since} on (ledgers cut short: {found.partial:,})"
    if found.unreadable:
        yield f"the rules of {_several(found.unreadable, 'schedule')} cannot be read: their ticks are not drawn"


def _pile_ups(found: Timeline, where: Zone) -> None:
    if found.pile_ups:
        output.echo()
        shown = found.pile_ups[:_PILES]
        columns = {where.name: [instants.local(each.at, where) for each in shown]}
        columns["from now"] = [f"in {instants.span((each.at - found.now).total_seconds())}" for each in shown]
        columns["due"] = [f"{each.schedules:,}" for each in shown]
        columns["times"] = [f"{each.times:,}" for each in shown if max(pile.times for pile in shown) > 1]
        columns["schedules that pile up"] = [_named(each.names, each.schedules) for each in shown]
        told = {name: cells for name, cells in columns.items() if any(cells)}
        output.table(list(told), list(zip(*told.values(), strict=True)))
        output.echo()
        more = len(found.pile_ups) - len(shown) + found.more_pile_ups
        also = f"{_several(more, 'smaller pile-up')} more; --json lists them. " if more else ""
        output.say(f"{also}To spread schedules, write H for the minute, as in 'H 3 * * *', or give them jitter='10m'.")
    if found.often:
        output.say(f"{_several(found.often, 'schedule')} tick too often to be looked at for pile-ups")


def _named(names: tuple[str, ...], number: int) -> str:
    more = number - len(names[:_NAMES])
    return ", ".join(names[:_NAMES]) + (f" and {more:,} more" if more else "")


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
