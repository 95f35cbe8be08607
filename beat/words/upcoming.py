"""Ticks to come, with what DST does to them: of a rule that somebody tries, and of a schedule that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat import clock, durations
from beat.cron import Cron

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from beat.client.ahead import NextTick
    from beat.client.standing import Standing
    from beat.timing import Clocked
    from beat.zones import Zone


def ticks(rule: Clocked, start: datetime) -> Iterator[tuple[datetime, str]]:
    """Ticks after `start`, each with what DST did to it."""
    previous = start
    while True:
        tick = rule.after(previous)
        yield tick, rule.note(previous, tick) if isinstance(rule, Cron) else ""
        previous = tick


def plain(rule: Clocked, where: Zone, ticks: Iterable[tuple[datetime, str]], now: datetime) -> dict[str, Any]:
    """A rule in words and its ticks, as `--json` has them."""
    normalised = rule.normalised if isinstance(rule, Cron) else durations.short(rule.period)
    told = [_told(tick, where, now, note) for tick, note in ticks]
    rules = {"expression": str(rule), "normalised": normalised, "description": rule.describe()}
    return {**rules, "tz": where.name, "ticks": told}


def of(known: Standing, coming: Iterable[NextTick], where: Zone, now: datetime) -> list[dict[str, Any]]:
    """The ticks of a schedule in the same words, and when each is to fire."""
    timing, previous, told = known.policies.timing if known.policies else None, now, []
    for each in coming:
        note = timing.note(min(previous, each.tick), each.tick) if isinstance(timing, Cron) else ""
        due = {"due_at": clock.text(each.due_at), "unless": list(each.unless)}
        told.append({**_told(each.tick, where, now, note), **due})
        previous = each.tick
    return told


def _told(tick: datetime, where: Zone, now: datetime, note: str) -> dict[str, Any]:
    return {
        "utc": clock.text(tick),
        "local": tick.astimezone(where.info).isoformat(),
        "from_now": round((tick - now).total_seconds(), 3),
        "note": note or None,
    }
