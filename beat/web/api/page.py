"""The page that describes the API: every endpoint in words and as a curl command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.web import rendering
from beat.web.api.endpoint import PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.responses import Response

    from beat.web.api.endpoint import Endpoint
    from beat.web.request import Asked


def show(asked: Asked, endpoints: Sequence[Endpoint]) -> Response:
    """Return the page with all endpoints."""
    place = asked.request.url
    root = f"{place.scheme}://{place.netloc}{asked.url('').rstrip('/')}"
    return rendering.page(asked, "api.html", endpoints=endpoints, root=root, prefix=PREFIX)
