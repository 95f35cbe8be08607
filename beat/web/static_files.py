"""Serve stylesheets, scripts and the icon from memory."""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import PurePath
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from beat.web import etag_gzip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from starlette.requests import Request

_KEPT = {"cache-control": "no-cache"}
"""A browser caches the files, and checks each time whether they have changed."""
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""Content types by suffix; those of the system differ from machine to machine."""


def route() -> Route:
    """Return the endpoint of all files in `static`; a path outside of them is a 404."""
    files = dict(_files(resources.files("beat.web") / "static"))
    pack = functools.cache(etag_gzip.gzipped)

    async def endpoint(request: Request) -> Response:
        path = request.path_params["path"]
        if path not in files:
            raise HTTPException(404)
        kind = _KINDS.get(PurePath(path).suffix, "text/plain")
        return etag_gzip.lean(request, Response(files[path], headers=_KEPT, media_type=kind), pack)

    return Route("/static/{path:path}", endpoint, name="static")


def _files(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield the path below the folder and the content of each file."""
    for each in folder.iterdir():
        path = f"{prefix}{each.name}"
        if each.is_dir():
            yield from _files(each, f"{path}/")
        else:
            yield path, each.read_bytes()
