"""`beat why`: explain in a sentence what became of one tick, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from beat.cli import common_options, output, run_details, schedule_ids
from beat.client.describe import instants, why
from beat.timing import clock
from beat.timing.zones import zone

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.timing.zones import Zone

_WORDS = ("", "last", "now")
"""Words in place of a time: nothing and `last` mean the latest tick, `now` means this minute."""


@click.command("why")
@click.argument("schedule_id", metavar="ID", shell_complete=schedule_ids.complete)
@click.argument("time", nargs=-1, metavar="[TIME]")
@common_options.reveal
@common_options.the_url
@common_options.as_json
def command(*, schedule_id: str, time: tuple[str, ...], reveal: bool, url: str | None, as_json: bool) -> None:
    """Say what became of one tick, or why there is none.

    \b
    beat why report                    the latest tick; also: beat why report last
    beat why report now                this minute
    beat why report 03:00              the latest that is past, in its zone
    beat why report 2026-11-16 03:00   another day, in its zone
    beat why report 2026-11-16T02:00Z  any time with its offset

    The answer is one of these: the tick was enqueued (when, by which scheduler, and how its run ended); it was skipped
    (why, and by which option); it waits for an earlier run; it is still to come; or there is no tick at that time, and
    the nearest ones are named. For a schedule that follows another, the minute counts, and whether the other has
    succeeded. Ticks that the ledger no longer holds get no answer.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    client = common_options.client(url)
    known = client.get(schedule_id)
    where, now, written = zone(known.tz), client.now(), " ".join(time)
    latest = client.latest_tick(schedule_id) if written.lower() in _WORDS else None
    if written.lower() == "now":
        minute = now.replace(second=0, microsecond=0)
        instant = latest if latest and latest >= minute else minute
    elif written.lower() not in _WORDS:
        meant = instants.when(written, where, now)
        if meant.note:
            output.say(meant.note, err=True)
        instant = meant.instant
    elif latest:
        instant = latest
    else:
        _no_tick(known, where, now, as_json=as_json)
        return
    told = client.why(schedule_id, instant)
    if as_json:
        document = {**why.plain(told), "sentence": why.sentence(told, where, now)}
        output.document(**common_options.shown(document, reveal=reveal))
        return
    sentence = common_options.worded(why.sentence(told, where, now), reveal=reveal)
    output.say(output.printable(f"{instants.both(told.instant, where)}: {sentence}"))
    for run in told.runs:
        output.echo()
        run_details.show(run, reveal=reveal)


def _no_tick(known: Standing, where: Zone, now: datetime, *, as_json: bool) -> None:
    """Print that the schedule has no past tick, and when its first tick is or why it has none."""
    following = known.next_run if known.state == "active" else None
    if following:
        away = instants.span((following - now).total_seconds())
        then = f"its first is {instants.both(following, where)}, in {away}"
    else:
        then = f"it is {known.state or 'broken'}: see `beat show {known.schedule_id}`"
    sentence = f"no tick of {known.schedule_id} is past; {then}"
    if as_json:
        document = {"schedule": known.schedule_id, "instant": None, "tz": known.tz, "answer": "no_tick_yet"}
        output.document(**document, next_run=following and clock.text(following), sentence=sentence)
    else:
        output.say(output.printable(sentence))
