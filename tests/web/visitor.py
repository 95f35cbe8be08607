"""Somebody who looks at the page, and sends its forms, without a browser."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Self

import httpx

from beat.client import Client
from beat.web.app import made
from beat.web.safety import Access

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HOST = "http://127.0.0.1:8420"


class Visitor:
    """Has one set of cookies, as a browser has."""

    def __init__(self, app: ASGIApp, **options: Any) -> None:
        self._app, self._options, self.cookies = app, options, httpx.Cookies()

    @classmethod
    def of(cls, redis_url: str, *, access: Access | None = None, **options: Any) -> Self:
        """A visitor of that Redis' page."""
        return cls(made(Client(redis_url), access or Access()), **options)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request; redirects are not followed."""
        return asyncio.run(self._ask(method, path, {**self._options, **options}))

    def get(self, path: str, **options: Any) -> httpx.Response:
        """A page."""
        return self.ask("GET", path, **options)

    def send(self, path: str, /, **fields: str) -> httpx.Response:
        """A form, with the token of the page."""
        if "beat_csrf" not in self.cookies:
            self.get("/")
        return self.ask("POST", path, data={"csrf": self.cookies["beat_csrf"], **fields})

    async def _ask(self, method: str, path: str, options: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(app=self._app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=HOST, cookies=self.cookies) as asking:
            answer = await asking.request(method, path, **options)
            self.cookies.update(answer.cookies)
            return answer


def text(answer: httpx.Response) -> str:
    """What a page says, without its marks, in one line."""
    body = re.sub(r"(?s)<(script|style|head)\b.*?</\1>", " ", answer.text)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())
