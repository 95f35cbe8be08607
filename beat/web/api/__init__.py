"""The JSON API below `/api/v1`: all that the web UI shows and does, and the OpenAPI document that describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from beat.web import rendering
from beat.web.api import changes, installation, openapi, queries
from beat.web.api.endpoint import PREFIX, Endpoint

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import Route

    from beat.web.request import Asked
    from beat.web.site import Site

__all__ = ["ENDPOINTS", "Endpoint", "routes"]

ENDPOINTS = (*installation.ENDPOINTS, *queries.ENDPOINTS, *changes.ENDPOINTS)


def routes(site: Site) -> list[Route]:
    """Return the routes of all endpoints, of the OpenAPI document, and of the page that lists them."""
    made = [
        site.route(PREFIX + each.path, each.handle, methods=(each.method,), name=f"api-{each.name}")
        for each in ENDPOINTS
    ]
    described = [
        site.route(f"{PREFIX}/openapi.json", _openapi, name="api-openapi"),
        site.route("/api", _page, name="api"),
    ]
    return [*made, *described]


def _openapi(_site: Site, asked: Asked) -> Response:
    return JSONResponse(openapi.made(ENDPOINTS, asked.url("").rstrip("/")))


def _page(_site: Site, asked: Asked) -> Response:
    """Return the page that describes every endpoint in words and as a curl command."""
    address = asked.request.url
    root = f"{address.scheme}://{address.netloc}{asked.url('').rstrip('/')}"
    return rendering.page(asked, "api.html", endpoints=ENDPOINTS, root=root, prefix=PREFIX)
