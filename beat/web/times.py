"""Instants on a page: `<time>` by the clocks of a schedule, and beside it by the viewer's where they show another time.

Every page shows an instant this way and no other, so that who reads two of them can compare them.
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
    """`Mon 2026-11-16 09:00 New York = 15:00 yours`; beside `now` as short as can be, and `fine` always with seconds.

    Not `placed`, it has no name of the zone, which stands over the table.
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
    """Return the same by the viewer's clocks, with its day only where that is another.

    The name of a day is enough within six days from now; any other day has its date.
    """
    own, yours = instants.there(at, where), instants.there(at, viewer or where)
    if own.utcoffset() == yours.utcoffset():
        return Markup("")
    days = (yours.date() - instants.there(now, viewer or where).date()).days if now else _WEEK
    day = "" if own.date() == yours.date() else f"{yours:%a} " if 0 <= days < _WEEK else f"{yours.date()} "
    return Markup(' <span class="yours">{}{} yours</span>').format(day, instants.time_of_day(yours, fine=fine))


def of_day(instant: datetime, where: Zone) -> Markup:
    """`09:00:05`, beside a time of the same day."""
    at = instant.replace(microsecond=0)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        clock.text(at), instants.both(at, where), instants.time_of_day(instants.there(at, where), fine=True)
    )


def following(known: Standing, now: datetime, viewer: Zone | None) -> Markup:
    """When a schedule is due next; one that has no hour of its own, in the viewer's zone alone."""
    own = viewer if viewer and "every" in known.rule else zone(known.tz)
    return moment(known.due_at, own, viewer, now=now)


def checked(instant: datetime, now: datetime) -> Markup:
    """Say when a scheduler last checked what is due: `checked just now`, `checked 12 s ago`.

    A healthy scheduler checks every second. "Just now" keeps the page the same between two polls.
    """
    if now - instant < _JUST_NOW:
        return Markup("checked just now")
    return Markup("checked {}").format(away(instant, now))


def away(instant: datetime | None, now: datetime) -> Markup:
    """How far away an instant is: `in 41 s`, `3m2s ago`; with JavaScript it counts by itself."""
    if instant is None:
        return Markup("")
    seconds = (instant - now).total_seconds()
    whole = math.floor(abs(seconds))
    words = "now" if not whole else f"in {instants.span(whole)}" if seconds > 0 else f"{instants.span(whole)} ago"
    return Markup('<time class="away" datetime="{}" data-at="{}">{}</time>').format(
        clock.text(instant.replace(microsecond=0)), clock.to_ms(instant), words
    )
