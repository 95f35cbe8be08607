"""Answer errors with one sentence, as an HTML page or as JSON."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from beat.config import redis_url
from beat.errors import BeatError, NoRedis, Refused, UnknownSchedule
from beat.web import etag_gzip, rendering, security
from beat.web.request import Asked, csrf_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from beat.web.site import Site

_log = logging.getLogger("beat.web")
_STATUS = {1: 409, 2: 400, 3: 404, 4: 409, 69: 503, 78: 503}
"""The HTTP status of an error, by the exit code of the command line for it."""
_BUG = 500
_SHOWN = 200


def handlers(site: Site) -> dict[int | type[Exception], Callable[[Request, Exception], Awaitable[Response]]]:
    """Return the handlers of the errors that are meant for users."""

    async def tell(request: Request, error: Exception) -> Response:
        return _told(site, request, error)

    return {BeatError: tell, HTTPException: tell}


def bug(site: Site) -> Callable[[Request, Exception], Response]:
    """Return the handler of all other errors: it says that this is a bug, and logs the traceback."""

    def tell(request: Request, error: Exception) -> Response:
        path = redis_url.hidden(str(request.scope["path"]))[:_SHOWN]
        _log.error("this is a bug in beat, please report it: %s %r", request.method, path, exc_info=error)
        return _told(site, request, error)

    return tell


def _told(site: Site, request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else _BUG
    words = error.detail if isinstance(error, HTTPException) else "this is a bug in beat, please report it"
    if isinstance(error, BeatError):
        status, words = _STATUS.get(error.exit_code, _BUG), str(error)
    headers = {"retry-after": "2"} if isinstance(error, NoRedis) else dict(getattr(error, "headers", None) or {})
    body = getattr(request.state, "body", b"")
    asked = Asked(request=request, client=site.client, access=site.access, body=body, csrf=csrf_of(request))
    if asked.is_api:
        return JSONResponse({"error": words, "status": status}, status, headers)
    kind = next((name for kind, name in _KINDS.items() if isinstance(error, kind)), "error")
    # An open page shows the error in its place; for another status, the browser would report an error of its own.
    shown = 200 if asked.is_live else status
    told = {"kind": kind, "words": words, "code": status, "since": site.away_since, "again": _again(asked, error)}
    made = rendering.page(asked, "broken.html", shown, **told)
    made.headers.update(headers)
    return etag_gzip.lean(request, made)


def _again(asked: Asked, error: Exception) -> dict[str, str]:
    """Return the fields of a form whose effect is unknown, to send it again unchanged. It takes effect only once."""
    if not isinstance(error, NoRedis) or asked.request.method in security.SAFE:
        return {}
    return {**asked.form, "csrf": asked.csrf}


_KINDS: dict[type[Exception], str] = {NoRedis: "away", UnknownSchedule: "unknown", Refused: "refused"}
