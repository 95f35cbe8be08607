"""`beat next`: describe an expression in words, and show its next ticks and what DST does to them.

Redis is asked only for the ticks of a schedule that is named by its id.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from beat.cli import output
from beat.client.describe import instants, upcoming
from beat.client.describe.tick_notes import ticks_after
from beat.config import sources, validators
from beat.errors import BadCron, BadDuration, BadInstant, BadZone, ConfigError, DeclarationError
from beat.schedule.rule import Clocked, clocked
from beat.timing import clock, durations
from beat.timing.cron import Cron
from beat.timing.zones import Zone, zone
from beat.timing.zones import note as zone_note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST = 1000
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


@click.command("next")
@click.argument("expression", nargs=-1, metavar="[EXPR|ID]")
@click.option("--tz", metavar="ZONE", help="Use this IANA zone, as in Europe/Paris.  [default: setting tz, or UTC]")
@click.option("--every", metavar="PERIOD", help="Use an interval, not an expression: 10s, 15m, 1h30m, 1d, 2w.")
@click.option("--seconds", is_flag=True, help="Read six fields, seconds first.")
@click.option("--id", "name", metavar="NAME", help="Resolve H for the schedule with this id.")
@click.option(
    "-n", "number", metavar="N", type=click.IntRange(1, _MOST), default=5, show_default=True, help="Show so many ticks."
)
@click.option("--from", "start", metavar="TIME", help="Start then, not now: yesterday, 2026-03-28, 2026-03-28T12:00Z.")
@click.option("--redis-url", "url", metavar="URL", help="Look for the schedule with this ID in this Redis.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    expression: tuple[str, ...],
    *,
    tz: str | None,
    every: str | None,
    seconds: bool,
    name: str | None,
    number: int,
    start: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Show when an expression, or a schedule in Redis, ticks.

    \b
    beat next "0 9 * * mon-fri" --tz Europe/Paris
    beat next "30 2 * * *" --tz America/New_York --from 2026-03-07
    beat next --every 90m
    beat next business_hours            a preset of [tool.beat.presets]
    beat next "H H * * *" --id report   once a day, when the id decides
    beat next report                    the ticks of that schedule in Redis

    Fields: minute hour day-of-month month day-of-week. Each may be a number, a name (mon, jan), a range (1-5),
    a list (1,15), a step (*/15) or a hash (H, H/15). Also @hourly @daily @weekly @monthly @yearly.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    defaults = sources.defaults()
    where = _zone(tz, defaults.tz)
    try:
        rule = _seeded(_rule(expression, every, where.name, seconds=seconds, presets=defaults.presets), name)
    except BadCron as e:
        if len(expression) != 1 or not _ID.fullmatch(expression[0]):
            raise
        _refuse_duration(expression[0])
        if tz or seconds or name:
            raise
        _show_schedule(expression[0], url, number, start, e, as_json=as_json)
        return
    now = clock.now()
    if warning := zone_note(where, now):
        output.complaint("warning", warning, err=True)
    ticks = list(itertools.islice(ticks_after(rule, now if start is None else _instant(start, where, now)), number))
    if as_json:
        output.document(**upcoming.plain(rule, where, ticks, now))
    else:
        _show(rule, where, ticks, now)


def _zone(given: str | None, default: str) -> Zone:
    try:
        return zone(default if given is None else given)
    except BadZone as e:
        if given is not None:
            raise
        raise ConfigError(f"{sources.find().values['tz'].origin}: {e}") from e


def _rule(words: Sequence[str], every: str | None, tz: str, *, seconds: bool, presets: Mapping[str, str]) -> Clocked:
    if words and words[0].split(" ")[0] == "follows":
        raise click.UsageError("what follows another has no times of its own: beat show ID says when that succeeded")
    if len(words) > 1:
        raise click.UsageError(f"that is {len(words)} words; put the expression in quotes: beat next '0 9 * * *'")
    if bool(words) == (every is not None):
        problem = "an expression and --every are two rules; give one" if words else "there is no rule to look at"
        raise click.UsageError(f"{problem}: beat next '0 9 * * *' or beat next --every 15m")
    if every is not None and seconds:
        raise click.UsageError("--seconds is for expressions of six fields; --every 10s needs no such word")
    try:
        return clocked(words[0] if words else None, every=every, tz=tz, seconds=seconds, presets=presets)
    except DeclarationError as e:  # its text names the parameters of Python, not the options of the command
        e.message = e.message.replace("seconds=True", "--seconds").replace("every=", "--every ")
        raise


def _refuse_duration(word: str) -> None:
    try:
        durations.parse(word)
    except BadDuration:
        return
    raise click.UsageError(f"{word} is a length of time, not an expression: beat next --every {word}")


def _show_schedule(
    schedule_id: str, url: str | None, number: int, start: str | None, wrong: BadCron, *, as_json: bool
) -> None:
    """Show the ticks of a schedule in Redis; raise `wrong` if there is no such schedule."""
    begin = None if start is None else functools.partial(_instant, start, now=clock.now())
    found, why = importlib.import_module("beat.cli.schedule_ticks").find(schedule_id, url, number, begin)
    if found is None:
        wrong.message += f"\n{why}"
        raise wrong
    document, where = found
    if as_json:
        output.document(**document)
        return
    output.say(output.printable(f"{schedule_id}: {document['description']}"))
    if document["note"]:
        output.say(output.printable(document["note"]), err=True)
    if ticks := [(datetime.fromisoformat(each["utc"]), _noted(each)) for each in document["ticks"]]:
        output.echo()
        _table(where, ticks, clock.now())


def _noted(tick: Mapping[str, Any]) -> str:
    """Return notes on a tick: what DST does, when it fires if it is moved, and which functions may exclude its day."""
    due = "" if tick["due_at"] == tick["utc"] else f"fires at {tick['due_at']}"
    unless = f"unless {' or '.join(tick['unless'])} excludes its day" if tick["unless"] else ""
    return "; ".join(filter(None, (tick["note"], due, unless)))


def _seeded(rule: Clocked, name: str | None) -> Clocked:
    seed = None if name is None else validators.identifier(name, "id")
    if not isinstance(rule, Cron) or not rule.hashed:
        return rule
    if seed is None:
        raise click.UsageError(f"H needs a schedule's id: beat next '{rule}' --id report")
    return rule.seeded(seed)


def _instant(written: str, where: Zone, now: datetime) -> datetime:
    try:
        value = datetime.fromisoformat(instants.dated(written, where, now))
    except ValueError as e:
        raise BadInstant(
            f"--from {written!r} is not a time: write 2026-03-28T12:00, 2026-03-28, yesterday or 2026-03-28T12:00Z"
        ) from e
    return clock.utc(value if value.tzinfo else value.replace(tzinfo=where.info), "--from")


def _show(rule: Clocked, where: Zone, ticks: list[tuple[datetime, str]], now: datetime) -> None:
    output.say(f"{rule}  (normalised: {rule.normalised})" if isinstance(rule, Cron) else str(rule))
    output.say(rule.describe())
    output.echo()
    _table(where, ticks, now)


def _table(where: Zone, ticks: list[tuple[datetime, str]], now: datetime) -> None:
    """Print ticks with their times in the zone, in UTC and from now, without redundant columns."""
    fine = any(tick.second for tick, _ in ticks)
    columns = {where.name: [_local(tick, where, fine=fine) for tick, _ in ticks]}
    if where.name != "UTC":
        columns["UTC"] = [clock.text(tick) for tick, _ in ticks]
    columns["from now"] = [_distance(tick - now) for tick, _ in ticks]
    if any(note for _, note in ticks):
        columns["note"] = [note for _, note in ticks]
    output.table(list(columns), list(zip(*columns.values(), strict=True)))


def _local(tick: datetime, where: Zone, *, fine: bool) -> str:
    return tick.astimezone(where.info).strftime(f"%a %Y-%m-%d %H:%M{':%S' * fine} %Z")


def _distance(gap: timedelta) -> str:
    away = timedelta(seconds=round(abs(gap).total_seconds()))
    words = f"{away.days}d{away.seconds // 3600}h" if away.days else durations.short(away)
    return f"{words} ago" if gap < timedelta(0) else f"in {words}"
