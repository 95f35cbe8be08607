"""The overview: one sentence of state, and what somebody should look at first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.web import rendering

if TYPE_CHECKING:
    from starlette.responses import Response

    from beat.web.asked import Asked
    from beat.web.site import Site


def show(_site: Site, asked: Asked) -> Response:
    """The page."""
    counts, beats, now = asked.client.counts(), asked.client.beats(), asked.client.now()
    return rendering.page(asked, "overview.html", counts=counts, beats=beats, now=now)
