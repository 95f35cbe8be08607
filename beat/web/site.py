"""Hold what all requests share, and turn handlers into routes.

A handler is a plain function of the site and one `Asked`. It runs in a thread, because it waits for Redis. The handlers
in `errors` answer the exceptions that it raises.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from anyio import CapacityLimiter, to_thread
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse
from starlette.routing import Route

from beat.errors import NoRedis
from beat.timing import clock
from beat.web import etag_gzip, security
from beat.web.cache import Background
from beat.web.request import LARGEST, Asked, csrf_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from starlette.requests import Request
    from starlette.responses import Response

    from beat.client.client import Client
    from beat.web.auth import Access

    Handler = Callable[["Site", Asked], Response]

_SEE_OTHER = 303
_MOST_KEPT = 100
AT_ONCE = 8
"""Maximum number of requests that are handled at the same time; further ones wait."""


class Site:
    """The web UI of one installation."""

    def __init__(self, client: Client, access: Access, at_once: int = AT_ONCE) -> None:
        self.client, self.access = client, access
        self._limiter = CapacityLimiter(at_once)
        self._kept: dict[str, tuple[datetime, Any]] = {}
        self._making: dict[str, threading.Lock] = {}
        self._turn = threading.Lock()
        self.away_since: datetime | None = None
        """Since when Redis has not answered, by this machine's clock; None while it does."""
        self.aside = Background()

    def route(self, path: str, handler: Handler, *, methods: tuple[str, ...] = ("GET",), name: str = "") -> Route:
        """Return the route of a handler. A forged form is refused before the handler runs."""

        async def endpoint(request: Request) -> Response:
            asked = await self._asked(request)
            return await to_thread.run_sync(
                self._answer, handler, asked, limiter=self._limiter, abandon_on_cancel=True
            )  # abandoned when the server stops, because a thread may wait seconds for Redis

        return Route(path, endpoint, methods=list(methods), name=name or handler.__name__)

    async def _asked(self, request: Request) -> Asked:
        body = b"" if request.method in security.SAFE else await _body(request)
        request.state.body = body  # the error page offers to send the form again
        who = request.scope.get(security.WHO, security.NOBODY)
        client = self.client.named(security.NOBODY if who == security.NOBODY else f"{security.NOBODY}:{who}")
        return Asked(request=request, client=client, access=self.access, body=body, csrf=csrf_of(request))

    def _answer(self, handler: Handler, asked: Asked) -> Response:
        try:
            changes = asked.request.method not in security.SAFE
            if changes and (asked.is_browser or not asked.is_api):
                asked.refuse_forged()
            made = handler(self, asked)
            if asked.is_api and asked.is_browser and not changes:
                asked.hand_token(made)
        except NoRedis:
            self.away_since = self.away_since or clock.now()
            raise
        self.away_since = None
        return etag_gzip.lean(asked.request, made)

    def kept(self, name: str, seconds: float, make: Callable[[], Any]) -> Any:
        """Return a kept value younger than `seconds`, or a new one. Concurrent requests compute it only once."""
        with self._turn:
            turn = self._making.setdefault(name, threading.Lock())
            while len(self._making) > _MOST_KEPT:  # names may contain query parameters, so there may be any number
                oldest = next(iter(self._making))
                self._making.pop(oldest)
                self._kept.pop(oldest, None)
        with turn:
            at, made = self._kept.get(name, (None, None))
            if at is None or (clock.now() - at).total_seconds() >= seconds:
                made = make()
                self._kept[name] = clock.now(), made
            return made


async def _body(request: Request) -> bytes:
    """Return the body of a request. Stop with a 413 as soon as it is too large."""
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said[:20]) > LARGEST:
        raise _too_large()
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST:
                raise _too_large()
    except ClientDisconnect:
        raise HTTPException(400, "the connection ended before all was sent") from None
    return body


def _too_large() -> HTTPException:
    return HTTPException(413, f"more than {LARGEST:,} bytes were sent: that is too much for a form")


def see_other(url: str) -> Response:
    """Return a 303 redirect, from a change to the page that shows it."""
    return RedirectResponse(url, _SEE_OTHER)
