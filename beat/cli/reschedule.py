"""`beat reschedule`: override the rule of the code or move the next tick once, and reset the override."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beat.cli import common_options, output, schedule_ids
from beat.client.describe import after_change, changes, instants
from beat.errors import DeclarationError
from beat.timing import clock
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from beat.client.client import Client
    from beat.client.schedule_info import Standing


@click.command("reschedule")
@click.argument("schedule_id", metavar="ID", shell_complete=schedule_ids.complete)
@click.argument("expression", nargs=-1, metavar="[EXPR]")
@click.option("--every", metavar="PERIOD", help="Use an interval, not an expression: 10s, 15m, 1h30m, 1d.")
@click.option("--tz", metavar="ZONE", help="Use this zone for the expression, or for the rule that it has.")
@click.option("--seconds", is_flag=True, help="Read six fields, seconds first.")
@click.option("--at", metavar="TIME", help="Move the next tick, once: 2h, 09:00, 'monday 09:00'.")
@click.option("--reset", is_flag=True, help="Return to the rule of the code.")
@common_options.rehearse
@common_options.the_version
@common_options.the_author
@common_options.the_url
@common_options.as_json
def command(
    *,
    schedule_id: str,
    expression: tuple[str, ...],
    every: str | None,
    tz: str | None,
    seconds: bool,
    at: str | None,
    reset: bool,
    dry_run: bool,
    version: int | None,
    by: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Lay another rule over that of the code, or move the next tick once; show the ticks before and after.

    \b
    beat reschedule report "0 10 * * *"             until it is reset; deploys keep it
    beat reschedule report "0 10 * * *" --dry-run   what it would do
    beat reschedule report --every 15m
    beat reschedule report --tz Europe/Berlin       the same hours, elsewhere
    beat reschedule report --at "monday 09:00"      the next tick only, once
    beat reschedule report --reset                  back to the code

    What is due already is not moved. TIME is as for `beat pause`, in the zone of the schedule. To run it now, and leave
    the ticks as they are: `beat trigger`.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    rule = _rule(expression, every, tz, at, seconds=seconds, reset=reset)
    client = common_options.client(url, by)
    before, now = client.get(schedule_id), client.now()
    wish = {**rule, **({"at": _instant(at, before, now)} if at is not None else {})}
    after = _rescheduled(client, schedule_id, {**wish, "dry_run": dry_run, "expected_version": version})
    ticks = [after_change.firing(found, client.now()) for found in (before, after)]
    if as_json:
        told = [[clock.text(tick) for tick in found] for found in ticks]
        output.document(schedule=after_change.plain(after), dry_run=dry_run, before=told[0], after=told[1])
        return
    _show(before, after, ticks)
    if dry_run:
        output.say("nothing was changed: this was a rehearsal (--dry-run)", err=True)
    elif not reset and at is None:
        output.say(f"Deploys keep this rule. Back to that of the code: beat reschedule {schedule_id} --reset", err=True)


def _rule(
    words: Sequence[str], every: str | None, tz: str | None, at: str | None, *, seconds: bool, reset: bool
) -> dict[str, Any]:
    """Return the arguments of `Client.reschedule` except the time. Raise UsageError for no change, or for two."""
    if len(words) > 1:
        raise click.UsageError(f"that is {len(words)} words; put the expression in quotes: '{' '.join(words)}'")
    ruled = bool(words) or every is not None or tz is not None
    if ruled + (at is not None) + reset != 1:
        problem = "that is more than one wish: give" if ruled or at or reset else "when is it to tick? Give"
        raise click.UsageError(f"{problem} an expression or --every (with --tz or without), or --at, or --reset")
    if words and every is not None:
        raise click.UsageError("an expression and --every are two rules: give one")
    if seconds and not words:
        raise click.UsageError("--seconds is for expressions of six fields: give one")
    return {"expression": words[0] if words else None, "every": every, "tz": tz, "seconds": seconds, "reset": reset}


def _instant(written: str, found: Standing, now: datetime) -> datetime:
    meant = instants.coming(written, zone(found.tz), now, "--at")
    if meant.note:
        output.say(meant.note, err=True)
    return meant.instant


def _rescheduled(client: Client, schedule_id: str, wish: dict[str, Any]) -> Standing:
    try:
        return client.reschedule(schedule_id, **wish)
    except DeclarationError as e:  # its text names the parameters of Python, not the options of the command
        e.message = e.message.replace("seconds=True", "--seconds").replace("every=", "--every ")
        raise


def _show(before: Standing, after: Standing, ticks: Sequence[Sequence[datetime]]) -> None:
    rules, where = [changes.rule({**found.rule, "tz": found.tz}) for found in (before, after)], zone(after.tz)
    said = f"{rules[0]} → {rules[1]}" if rules[0] != rules[1] else rules[0]
    if after.deferred_by and after.next_run and ticks[1]:
        said = f"the tick of {instants.both(after.next_run, where)} fires at {instants.both(ticks[1][0], where)}, once"
    output.say(f"{after.schedule_id}: {said}")
    columns = [
        [instants.both(tick, zone(found.tz)) for tick in each]
        for found, each in zip((before, after), ticks, strict=True)
    ]
    rows = [[column[n] if n < len(column) else "" for column in columns] for n in range(max(map(len, columns)))]
    if rows:
        output.table(["before", "after"], rows)
    if after.state != "active":
        output.say(f"it is {after.state}: none of these fires until that has changed", err=True)
