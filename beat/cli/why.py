"""`beat why`: what became of one tick, or why there is none, in a sentence."""

from __future__ import annotations

import click

from beat.cli import asking, at_length, output
from beat.words import instants
from beat.words import why as words
from beat.zones import zone


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

    A tick was enqueued (when, by which beat, and how its run ended) or skipped (with the reason, and the option that
    decides it), or it waits for an earlier run to end, or it is still to come, or there is no tick at that time: then
    the nearest ones are named. Of what follows another, the minute counts, and whether the other has succeeded. Of what
    the ledger no longer holds, nothing is claimed.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    client = asking.client(url)
    where, now = zone(client.get(schedule_id).tz), client.now()
    meant = instants.when(" ".join(time), where, now)
    if meant.note:
        output.say(meant.note, err=True)
    told = client.why(schedule_id, meant.instant)
    if as_json:
        output.document(**words.plain(told), sentence=words.sentence(told, where, now))
        return
    output.say(output.printable(f"{instants.both(told.instant, where)}: {words.sentence(told, where, now)}"))
    for run in told.runs:
        output.echo()
        at_length.show(run)
