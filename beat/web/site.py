"""The site: what all requests share, and how a handler becomes an endpoint.

Handlers are plain functions of one `Asked`, and run in a thread: they ask Redis, and wait for it. What they raise is
told by `broken`, as a page or as JSON.
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

    from beat.client import Client
    from beat.web.auth import Access

    Handler = Callable[["Site", Asked], Response]

_SEE_OTHER = 303
_MOST_KEPT = 100
AT_ONCE = 8
"""So many pages are made at the same time; who else asks waits for a turn."""


class Site:
    """One installation's page."""

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
        """The endpoint of a handler; a form that is not of this page is refused before it."""

        async def endpoint(request: Request) -> Response:
            asked = await self._asked(request)
            return await to_thread.run_sync(
                self._answer, handler, asked, limiter=self._limiter, abandon_on_cancel=True
            )  # abandoned when the server ends: a thread may wait for Redis for seconds

        return Route(path, endpoint, methods=list(methods), name=name or handler.__name__)

    async def _asked(self, request: Request) -> Asked:
        body = b"" if request.method in security.SAFE else await _body(request)
        request.state.body = body  # what could not be done is offered again
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
        """What was made no longer ago than that, or is made now: once, however many ask for it."""
        with self._turn:
            turn = self._making.setdefault(name, threading.Lock())
            while len(self._making) > _MOST_KEPT:  # a name may hold what somebody has asked for
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
    """All that was sent; refuses what is too much for a form before it is read."""
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
    """After a change: the page that shows it."""
    return RedirectResponse(url, _SEE_OTHER)
