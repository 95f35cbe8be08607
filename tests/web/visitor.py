"""Somebody who looks at the page, and sends its forms, without a browser."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urljoin

import httpx

from beat import Client
from beat.web.app import made
from beat.web.security import Access

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp

HOST = "http://127.0.0.1:8420"
MOST = 60
ADDRESSES = re.compile(r'''<(?P<tag>\w+)\b[^>]*?\b(?:href|src|action|hx-get|hx-post|formaction)="(?P<to>[^"]*)"''')


class Visitor:
    """Has one set of cookies, as a browser has."""

    def __init__(self, app: ASGIApp, **options: Any) -> None:
        self.app, self._options, self.cookies = app, options, httpx.Cookies()

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
        client = options.pop("client", ("127.0.0.1", 5000))
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False, client=client)
        async with httpx.AsyncClient(transport=transport, base_url=HOST, cookies=self.cookies) as asking:
            answer = await asking.request(method, path, **options)
            self.cookies.update(answer.cookies)
            return answer


def text(answer: httpx.Response) -> str:
    """What a page says, without its marks, in one line."""
    body = re.sub(r"(?s)<(script|style|head)\b.*?</\1>", " ", answer.text)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def crawled(visitor: Visitor, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Every address that a browser finds from the first page on, with the status of its answer; no form is sent."""
    for path, answer in walked(visitor, prefix):
        yield path, 200 if answer.status_code == 405 else answer.status_code  # a form, that is sent by POST


def walked(visitor: Visitor, prefix: str = "") -> Iterator[tuple[str, httpx.Response]]:
    """The same, with the whole answer."""
    waiting, seen = [f"{prefix}/"], {f"{prefix}/"}
    while waiting and len(seen) < MOST:
        here = waiting.pop(0)
        answer = visitor.get(here)
        yield here, answer
        if "text/html" not in answer.headers.get("content-type", ""):
            continue
        assert f'"{prefix}/static/' in answer.text
        for found in ADDRESSES.finditer(answer.text):
            to = urljoin(f"{HOST}{here}", unescape(found["to"])).partition("#")[0]
            path = to.removeprefix(HOST)
            if path not in seen and (to.startswith(HOST) or found["tag"] != "a"):  # a link may lead elsewhere
                seen.add(path)
                waiting.append(path)
