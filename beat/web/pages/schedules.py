"""The page with the list of schedules. The address contains all its filters, its order and its position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from beat.client.listing import STATES
from beat.errors import BadOption, UnknownSchedule
from beat.web import filters, rendering
from beat.web.filters import Found, Search
from beat.web.pages import rows

if TYPE_CHECKING:
    from starlette.responses import Response

    from beat.web.request import Asked
    from beat.web.site import Site

_PATH, _FINDER = "/schedules", "finder"
_WRONG = 400


def show(_site: Site, asked: Asked) -> Response:
    """Return one page of the list, or say why the search is invalid."""
    wanted, found, problem = Search.of(asked.query), Found([], None), ""
    try:
        found = wanted.read(asked.client)
    except (BadOption, UnknownSchedule) as e:
        problem = str(e)
    # An open page shows the problem in its place; for another status, the browser would report an error of its own.
    status = _WRONG if problem and not asked.is_live else 200
    made = rendering.page(asked, "schedules.html", status, **_context(asked, wanted, found, problem))
    if asked.request.headers.get("hx-trigger") == _FINDER:
        made.headers[_pushed(asked, wanted)] = asked.url(_PATH, **wanted.query)
    return made


def _context(asked: Asked, wanted: Search, found: Found, problem: str) -> dict[str, Any]:
    counts, now, has_scheduler = asked.client.counts(), asked.client.now(), bool(asked.client.beats())
    nothing = not (found.rows or problem)
    return {
        "search": wanted,
        "problem": problem,
        "told": "That cannot be looked for." if problem else filters.told(wanted, found, counts),
        "rows": rows.rows(found.rows, rows.Looking(now, asked.viewer, asked.url, has_scheduler)),
        "following": found.following,
        "has_scheduler": has_scheduler,
        "counts": counts,
        "patience": asked.client.patience,
        "tabs": filters.tabs(counts, wanted),
        "nearest": filters.nearest(asked.client, wanted.match) if nothing and wanted.match else "",
        "to": lambda other: asked.url(_PATH, **other.query),
        "states": STATES,
        "orders": filters.NAMES,
        "now": now,
    }


def _pushed(asked: Asked, wanted: Search) -> str:
    """Return the header that changes the address. While the user types, it replaces the last history entry."""
    before = dict(parse_qsl(urlsplit(asked.request.headers.get("hx-current-url", "")).query))
    typed = bool(before.pop("match", "")) and bool(wanted.match)
    others = {name: word for name, word in wanted.query.items() if name != "match"}
    return "hx-replace-url" if typed and before == others else "hx-push-url"
