"""`beat pause`: hold the ticks of schedules until a time, or until an operator resumes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from beat.cli import common_options, output, schedule_ids
from beat.client.describe import after_change, decisions, instants
from beat.client.upcoming import held
from beat.timing.zones import zone

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.client import Client
    from beat.client.schedule_info import Standing


@click.command("pause")
@click.argument("ids", nargs=-1, metavar="ID...", shell_complete=schedule_ids.complete)
@click.option("--until", metavar="TIME", help="Resume then: 2h, 09:00, monday, 'monday 09:00', 2026-11-20.")
@click.option("--reason", metavar="TEXT", help="Show this reason wherever the pause is shown.")
@click.option("--all", "everything", is_flag=True, help="Pause every active schedule.")
@common_options.sure
@common_options.the_version
@common_options.the_author
@common_options.the_url
@common_options.as_json
def command(
    *,
    ids: tuple[str, ...],
    until: str | None,
    reason: str | None,
    everything: bool,
    yes: bool,
    version: int | None,
    by: str | None,
    url: str | None,
    as_json: bool,
) -> int:
    """Pause schedules: their ticks are held, and pass as one skip when the pause ends.

    \b
    beat pause report --until monday --reason "the disk is full"
    beat pause report --until "monday 09:00"     in the zone of the schedule
    beat pause report invoices --until 2h
    beat pause report                            until you resume it
    beat pause --all --reason "moving house"     the whole namespace

    TIME is a length of time (2h, 1h30m), a time of day (09:00: the next one), a day (monday, tomorrow, 2026-11-20: its
    beginning), a day and a time (tomorrow 09:00), all in the zone of the schedule; or 2026-11-20T09:00Z. What is paused
    already gets the new end and the new reason. A tick at the very end of the pause fires.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    wanted = common_options.named(ids, version, everything=everything)
    client = common_options.client(url, by)
    if everything:
        return _all(client, until, reason, yes=yes, as_json=as_json)
    done, code = common_options.each(client, wanted, lambda each: _pause(client, each, until, reason, version))
    if as_json:
        output.document(
            schedules=[{**after_change.plain(found), "passing": after_change.passing(found)} for found in done]
        )
    else:
        for found in done:
            _tell(found, client.now())
        output.say(
            f"To end it: beat resume {' '.join(found.schedule_id for found in done)}", err=True
        ) if done else None
    return code


def _pause(client: Client, schedule_id: str, until: str | None, reason: str | None, version: int | None) -> Standing:
    end = _end(client, until, client.get(schedule_id).tz)
    return client.pause(schedule_id, end, reason, expected_version=version)


def _end(client: Client, until: str | None, tz: str) -> datetime | None:
    if until is None:
        return None
    meant = instants.coming(until, zone(tz), client.now())
    if meant.note:
        output.say(meant.note, err=True)
    return meant.instant


def _all(client: Client, until: str | None, reason: str | None, *, yes: bool, as_json: bool) -> int:
    own = zone(client.settings.tz)
    end, number = _end(client, until, own.name), client.number_active()
    told = f"until {common_options.when(end, own, client.now())}" if end else "until an operator resumes them"
    if number and not common_options.agreed(f"Pause all {number:,} active schedules, {told}?", yes=yes):
        return common_options.NOT_DONE
    done = client.pause_all(end, reason)
    if as_json:
        output.document(paused=done, **decisions.times({"until": end}))
    elif done:
        output.say(f"{done:,} schedule{'s are' if done != 1 else ' is'} paused, {told}")
        output.say("To end it: beat resume --all", err=True)
    else:
        output.say("no schedule is active: there was nothing to pause")
    return 0


def _tell(found: Standing, now: datetime) -> None:
    where = zone(found.tz)
    until = found.pause.until if found.pause else None
    reason = f" ({found.pause.reason})" if found.pause and found.pause.reason else ""
    if until is None:
        following = f"; its next tick, {instants.both(found.next_run, where)}, is held" if found.next_run else ""
        output.say(output.printable(f"{found.schedule_id}: paused until an operator resumes it{reason}{following}"))
        return
    output.say(output.printable(f"{found.schedule_id}: paused until {common_options.when(until, where, now)}{reason}"))
    stretch = held(found, until)
    if stretch is None:
        return
    then = f"it goes on with {instants.both(stretch.next, where)}" if stretch.next else "then it has no tick left"
    passing = f"{common_options.ticks(stretch.count)} will pass, the first {instants.both(stretch.tick, where)}"
    output.say(f"  {passing if stretch.count else 'no tick falls into that time'}; {then}")
