"""Times on a page: the schedule's clock, and beside it the viewer's where that shows another time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from beat import clock
from beat.words import instants
from beat.zones import zone

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.standing import Standing
    from beat.zones import Zone


def stamp(instant: datetime | None, where: Zone, viewer: Zone | None = None, *, fine: bool = True) -> Markup:
    """`Mon 2026-11-16 09:00:05`, without the name of the zone, which stands over the table."""
    if instant is None:
        return Markup("")
    own, text = instants.there(instant, where), clock.text(instant)
    shown = f"{own:%a} {instants.local(instant, where, fine=fine)}"
    return Markup('<time datetime="{}" title="{}">{}</time>{}').format(
        text, text, shown, _yours(instant, where, viewer)
    )


def of_day(instant: datetime, where: Zone) -> Markup:
    """`09:00:05`, beside a time of the same day."""
    text = clock.text(instant)
    shown = f"{instants.there(instant, where):%H:%M:%S}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(text, text, shown)


def _yours(instant: datetime, where: Zone, viewer: Zone | None) -> Markup:
    if viewer is None:
        return Markup("")
    own, yours = instants.there(instant, where), instants.there(instant, viewer)
    if own.utcoffset() == yours.utcoffset():
        return Markup("")
    day = "" if own.date() == yours.date() else f"{yours:%a} "
    return Markup(' <span class="yours">{}</span>').format(f"{day}{yours:%H:%M} yours")


def brief(instant: datetime, where: Zone, now: datetime, viewer: Zone | None = None) -> Markup:
    """`<time>`, as in `09:15 New York = 15:15 yours`."""
    whole = instant.replace(microsecond=0)
    yours = ""
    if viewer and viewer.name != where.name:
        yours = Markup(' <span class="yours">{} yours</span>').format(instants.near(whole, viewer, now))
    return Markup('<time datetime="{}" title="{}">{} <span class="place">{}</span></time>{}').format(
        clock.text(instant), clock.text(instant), instants.near(whole, where, now), place(where), yours
    )


def following(known: Standing, now: datetime, viewer: Zone | None) -> Markup:
    """When a schedule is due next; one that has no hour of its own, in the viewer's zone alone."""
    if known.due_at is None:
        return Markup("")
    own = zone(known.tz)
    return brief(known.due_at, viewer if viewer and "every" in known.rule else own, now, viewer)


def place(where: Zone) -> str:
    """`New York`."""
    return where.name.rpartition("/")[2].replace("_", " ")
