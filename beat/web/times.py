"""Times for tables: the schedule's clock, and beside it the viewer's where that shows another time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from beat import clock
from beat.words import instants

if TYPE_CHECKING:
    from datetime import datetime

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
