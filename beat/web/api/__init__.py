"""The JSON API, `/api/v1/…`: all that the pages show and do, for programs, and the document that describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from beat.web.api import changes, document, questions
from beat.web.api.endpoint import PREFIX, Endpoint

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import Route

    from beat.web.asked import Asked
    from beat.web.site import Site

__all__ = ["ENDPOINTS", "Endpoint", "routes"]

ENDPOINTS = (*questions.ENDPOINTS, *changes.ENDPOINTS)


def routes(site: Site) -> list[Route]:
    """All of them."""
    made = [
        site.route(PREFIX + each.path, each.handle, methods=(each.method,), name=f"api-{each.name}")
        for each in ENDPOINTS
    ]
    return [*made, site.route(f"{PREFIX}/openapi.json", _openapi, name="api-openapi")]


def _openapi(_site: Site, asked: Asked) -> Response:
    return JSONResponse(document.made(ENDPOINTS, asked.url("").rstrip("/")))
