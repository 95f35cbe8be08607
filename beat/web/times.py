"""Render instants as `<time>`, in the zone of a schedule and in the viewer's if its clocks show another time.

Every page renders instants with these functions, so that the viewer can compare two of them.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING

from markupsafe import Markup

from beat.client.describe import instants
from beat.timing import clock
from beat.timing.zones import zone

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.timing.zones import Zone

_UTC = zone("UTC")
_WEEK = 7
_JUST_NOW = timedelta(seconds=10)


def moment(
    instant: datetime | None,
    where: Zone = _UTC,
    viewer: Zone | None = None,
    *,
    now: datetime | None = None,
    fine: bool = False,
    placed: bool = True,
) -> Markup:
    """Return an instant, shown as `Mon 2026-11-16 09:00 New York = 15:00 yours`.

    With `now`, the text is as short as possible. `fine` always shows seconds. Without `placed`, the name of the zone is
    left out, because the heading of the table has it.
    """
    if instant is None:
        return Markup("")
    at = instant.replace(microsecond=0)
    whole = f"{instants.there(at, where):%a} {instants.local(at, where, fine=fine)}"
    shown = instants.near(at, where, now) if now else whole
    name = Markup(' <span class="place">{}</span>').format(instants.place(where)) if placed else ""
    return Markup('<time datetime="{}" title="{}">{}{}</time>{}').format(
        clock.text(at), instants.both(at, where), shown, name, _yours(at, where, viewer, now, fine=fine)
    )


def _yours(at: datetime, where: Zone, viewer: Zone | None, now: datetime | None, *, fine: bool) -> Markup:
    """Return the time in the viewer's zone; empty if its clocks agree with those of the schedule.

    The day is shown only if it differs: a weekday from today to six days from now, else a date.
    """
    own, yours = instants.there(at, where), instants.there(at, viewer or where)
    if own.utcoffset() == yours.utcoffset():
        return Markup("")
    days = (yours.date() - instants.there(now, viewer or where).date()).days if now else _WEEK
    day = "" if own.date() == yours.date() else f"{yours:%a} " if 0 <= days < _WEEK else f"{yours.date()} "
    return Markup(' <span class="yours">{}{} yours</span>').format(day, instants.time_of_day(yours, fine=fine))


def of_day(instant: datetime, where: Zone) -> Markup:
    """Return only the time of day, such as `09:00:05`."""
    at = instant.replace(microsecond=0)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        clock.text(at), instants.both(at, where), instants.time_of_day(instants.there(at, where), fine=True)
    )


def following(known: Standing, now: datetime, viewer: Zone | None) -> Markup:
    """Return when a schedule is due next. An interval has no time of day, so the viewer's zone is enough for it."""
    own = viewer if viewer and "every" in known.rule else zone(known.tz)
    return moment(known.due_at, own, viewer, now=now)


def checked(instant: datetime, now: datetime) -> Markup:
    """Say when a scheduler last checked what is due: `checked just now`, `checked 12 s ago`.

    By default, a scheduler checks every second. "Just now" keeps the page the same between two polls.
    """
    if now - instant < _JUST_NOW:
        return Markup("checked just now")
    return Markup("checked {}").format(away(instant, now))


def away(instant: datetime | None, now: datetime) -> Markup:
    """Return how far away an instant is, such as `in 41 s` or `3m2s ago`. A script keeps it up to date."""
    if instant is None:
        return Markup("")
    seconds = (instant - now).total_seconds()
    whole = math.floor(abs(seconds))
    words = "now" if not whole else f"in {instants.span(whole)}" if seconds > 0 else f"{instants.span(whole)} ago"
    return Markup('<time class="away" datetime="{}" data-at="{}">{}</time>').format(
        clock.text(instant.replace(microsecond=0)), clock.to_ms(instant), words
    )
