"""The site: what all requests share, and how a handler becomes an endpoint.

Handlers are plain functions of one `Asked`, and run in a thread: they ask Redis, and wait for it. What they raise is
told by `broken`, as a page or as JSON.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse
from starlette.routing import Route

from beat import clock
from beat.errors import BadOption, NoRedis
from beat.web import safety
from beat.web.asked import LARGEST, Asked, csrf_of
from beat.web.background import Background
from beat.web.roll import Roll

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from starlette.requests import Request
    from starlette.responses import Response

    from beat.client import Client
    from beat.web.safety import Access

    Handler = Callable[["Site", Asked], Response]

_SEE_OTHER = 303


class Site:
    """One installation's page."""

    def __init__(self, client: Client, access: Access) -> None:
        self.client, self.access = client, access
        self._kept: dict[str, tuple[datetime, Any]] = {}
        self._turn = threading.Lock()
        self.away_since: datetime | None = None
        """Since when Redis has not answered, by this machine's clock; None while it does."""
        self.aside, self.roll = Background(), Roll()

    def route(self, path: str, handler: Handler, *, methods: tuple[str, ...] = ("GET",), name: str = "") -> Route:
        """The endpoint of a handler; a form that is not of this page is refused before it."""

        async def endpoint(request: Request) -> Response:
            asked = await self._asked(request)
            return await run_in_threadpool(self._answer, handler, asked)

        return Route(path, endpoint, methods=list(methods), name=name or handler.__name__)

    async def _asked(self, request: Request) -> Asked:
        body = b""
        if request.method not in safety.SAFE:
            async for chunk in request.stream():
                body += chunk
                if len(body) > LARGEST:
                    raise BadOption(f"more than {LARGEST:,} bytes were sent: that is too much for a form")
        client = self.client.named(f"web:{request.scope.get(safety.WHO, safety.NOBODY)}"[:100])
        return Asked(request=request, client=client, access=self.access, body=body, csrf=csrf_of(request))

    def _answer(self, handler: Handler, asked: Asked) -> Response:
        try:
            if asked.request.method not in safety.SAFE and not asked.is_api:
                asked.refuse_forged()
            made = handler(self, asked)
        except NoRedis:
            self.away_since = self.away_since or clock.now()
            raise
        self.away_since = None
        return made

    def kept(self, name: str, seconds: float, make: Callable[[], Any]) -> Any:
        """What was made no longer ago than that, or is made now: once, however many ask for it."""
        with self._turn:
            at, made = self._kept.get(name, (None, None))
            if at is None or (clock.now() - at).total_seconds() >= seconds:
                made = make()
                self._kept[name] = clock.now(), made
            return made


def see_other(url: str) -> Response:
    """After a change: the page that shows it."""
    return RedirectResponse(url, _SEE_OTHER)
