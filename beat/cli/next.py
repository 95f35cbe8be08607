"""`beat next`: an expression in words, and its next ticks with what DST does to them. Needs no Redis."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from beat import clock, durations, sources
from beat.cli import output
from beat.cron import Cron
from beat.errors import BadInstant
from beat.timing import Timing, timing
from beat.zones import Zone, zone

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 1000


@click.command("next")
@click.argument("expression", nargs=-1, metavar="[EXPR]")
@click.option("--tz", metavar="ZONE", help="IANA time zone, such as Europe/Paris.  [default: the setting tz, or UTC]")
@click.option("--every", metavar="PERIOD", help="An interval instead of an expression: 10s, 15m, 1h30m, 1d, 2w.")
@click.option("--seconds", is_flag=True, help="The expression has six fields, seconds first.")
@click.option("-n", "number", type=click.IntRange(1, _MOST), default=5, show_default=True, help="How many ticks.")
@click.option(
    "--from", "start", metavar="TIME", help="Start here instead of now: 2026-03-28T12:00 (in ZONE) or …T12:00Z."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def command(
    expression: tuple[str, ...],
    *,
    tz: str | None,
    every: str | None,
    seconds: bool,
    number: int,
    start: str | None,
    as_json: bool,
) -> None:
    """Show when an expression ticks.

    \b
    beat next "0 9 * * mon-fri" --tz Europe/Paris
    beat next "30 2 * * *" --tz America/New_York --from 2026-03-07
    beat next --every 90m
    beat next business_hours            a preset of [tool.beat.presets]

    Fields: minute hour day-of-month month day-of-week. Each may be a number, a name (mon, jan), a range (1-5),
    a list (1,15) or a step (*/15). Also @hourly @daily @weekly @monthly @yearly.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    if len(expression) > 1:
        raise click.UsageError(f"that is {len(expression)} words; put the expression in quotes: beat next '0 9 * * *'")
    defaults = sources.defaults()
    where = zone(tz or defaults.tz)
    written = expression[0] if expression else None
    rule = timing(written, every=every, tz=where.name, seconds=seconds, presets=defaults.presets)
    now = clock.now()
    ticks = list(itertools.islice(_ticks(rule, _instant(start, where) if start else now), number))
    if as_json:
        _document(rule, where, ticks, now)
    else:
        _show(rule, where, ticks, now)


def _ticks(rule: Timing, start: datetime) -> Iterator[tuple[datetime, str]]:
    """Ticks after `start`, each with what DST did to it."""
    previous = start
    while True:
        tick = rule.after(previous)
        yield tick, rule.note(previous, tick) if isinstance(rule, Cron) else ""
        previous = tick


def _instant(written: str, where: Zone) -> datetime:
    try:
        value = datetime.fromisoformat(written)
    except ValueError as e:
        raise BadInstant(
            f"--from {written!r} is not a time: write 2026-03-28T12:00, 2026-03-28 or 2026-03-28T12:00Z"
        ) from e
    return clock.utc(value if value.tzinfo else value.replace(tzinfo=where.info), "--from")


def _show(rule: Timing, where: Zone, ticks: list[tuple[datetime, str]], now: datetime) -> None:
    normalised = f"  (normalised: {rule.normalised})" if isinstance(rule, Cron) else ""
    click.echo(f"{rule}{normalised}\n{rule.describe()}\n")
    noted = any(note for _, note in ticks)
    zones = [where.name] if where.name == "UTC" else [where.name, "UTC"]
    rows = [
        [*[_local(tick, where), clock.text(tick)][: len(zones)], _distance(tick - now), *[note] * noted]
        for tick, note in ticks
    ]
    output.table([*zones, "from now", *["note"] * noted], rows)


def _local(tick: datetime, where: Zone) -> str:
    local = tick.astimezone(where.info)
    return f"{local:%a %Y-%m-%d %H:%M}{f'{local::%S}' if local.second else ''} {local:%Z}"


def _distance(gap: timedelta) -> str:
    away = timedelta(seconds=round(abs(gap).total_seconds()))
    words = f"{away.days}d{away.seconds // 3600}h" if away.days else durations.short(away)
    return f"{words} ago" if gap < timedelta(0) else f"in {words}"


def _document(rule: Timing, where: Zone, ticks: list[tuple[datetime, str]], now: datetime) -> None:
    listed: list[dict[str, Any]] = [
        {
            "utc": clock.text(tick),
            "local": tick.astimezone(where.info).isoformat(),
            "from_now": round((tick - now).total_seconds(), 3),
            "note": note or None,
        }
        for tick, note in ticks
    ]
    normalised = rule.normalised if isinstance(rule, Cron) else durations.short(rule.period)
    output.document(
        expression=str(rule), normalised=normalised, description=rule.describe(), tz=where.name, ticks=listed
    )
