"""Convert ticks to come to plain data: those of a rule to try, and those of a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client.describe import tick_notes
from beat.timing import clock, durations
from beat.timing.cron import Cron

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.client.upcoming import NextTick
    from beat.schedule.rule import Clocked
    from beat.timing.zones import Zone


def plain(rule: Clocked, where: Zone, found: Iterable[tuple[datetime, str]], now: datetime) -> dict[str, Any]:
    """Return a rule in words and its ticks, as `--json` prints them."""
    normalised = rule.normalised if isinstance(rule, Cron) else durations.short(rule.period)
    told = [_told(tick, where, now, note) for tick, note in found]
    rules = {"expression": str(rule), "normalised": normalised, "description": rule.describe()}
    return {**rules, "tz": where.name, "ticks": told}


def of(known: Standing, coming: Iterable[NextTick], where: Zone, now: datetime) -> list[dict[str, Any]]:
    """Return the ticks of a schedule in the same form, and when each is to fire."""
    listed = list(coming)
    noted = tick_notes.notes(known.policies, (each.tick for each in listed)) if known.policies else [""] * len(listed)
    return [
        {**_told(each.tick, where, now, note), "due_at": clock.text(each.due_at), "unless": list(each.unless)}
        for each, note in zip(listed, noted, strict=True)
    ]


def _told(tick: datetime, where: Zone, now: datetime, note: str) -> dict[str, Any]:
    return {
        "utc": clock.text(tick),
        "local": tick.astimezone(where.info).isoformat(),
        "from_now": round((tick - now).total_seconds(), 3),
        "note": note or None,
    }
