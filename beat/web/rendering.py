"""Pages from templates: everything is escaped, and a name that does not exist is an error."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from beat import clock
from beat._version import __version__
from beat.web.asked import csrf_cookie
from beat.words import instants
from beat.zones import zone

if TYPE_CHECKING:
    from datetime import datetime

    from starlette.responses import Response

    from beat.web.asked import Asked
    from beat.zones import Zone

_UTC = zone("UTC")


def page(asked: Asked, template: str, status: int = 200, **context: Any) -> Response:
    """A page, with what all pages know: who asks, and where everything is."""
    now = context.get("now") or clock.now()
    text = _templates.get_template(template).render(
        **{"now": now, **context}, asked=asked, url=asked.url, read_only=asked.access.read_only, version=__version__
    )
    made = HTMLResponse(text, status, headers={"cache-control": "no-store"})
    made.set_cookie(**csrf_cookie(asked))
    return made


def moment(instant: datetime | None, where: Zone = _UTC, viewer: Zone | None = None, *, fine: bool = False) -> Markup:
    """`<time>` in the zone of a schedule, and in the viewer's where that is another."""
    if instant is None:
        return Markup("")
    shown = f"{instants.there(instant, where):%a} {instants.local(instant, where, fine=fine)}"
    place = where.name.rpartition("/")[2].replace("_", " ")
    yours = ""
    if viewer and viewer.name != where.name:
        yours = Markup(' <span class="yours">{}</span>').format(f"{instants.local(instant, viewer, fine=fine)} yours")
    text = clock.text(instant)
    return Markup('<time datetime="{}" title="{}">{} <span class="place">{}</span></time>{}').format(
        text, text, shown, place, yours
    )


def away(instant: datetime | None, now: datetime) -> Markup:
    """How far away an instant is: `in 41 s`, `3m2s ago`; with JavaScript it counts by itself."""
    if instant is None:
        return Markup("")
    seconds = (instant - now).total_seconds()
    whole = instants.span(math.floor(abs(seconds)) if abs(seconds) >= 1 else 0)
    words = "now" if abs(seconds) < 1 else f"in {whole}" if seconds > 0 else f"{whole} ago"
    return Markup('<time class="away" datetime="{}" data-at="{}">{}</time>').format(
        clock.text(instant), clock.to_ms(instant), words
    )


def _plural(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


_templates = Environment(
    loader=PackageLoader("beat.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_templates.globals.update(moment=moment, away=away, span=instants.span, plural=_plural, to_ms=clock.to_ms)
