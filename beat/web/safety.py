"""Who may ask, and from where: hosts, authentication, and that no other site makes a change in somebody's name.

A guard stands before the whole app. What it refuses never reaches a page.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import inspect
import ipaddress
import socket
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    Authorize = Callable[[Request], Awaitable[str | bool | None] | str | bool | None]

OPEN = ("/healthz", "/readyz")
"""What probes ask, who know no password; it says nothing but whether all is well."""
API = "/api/"
SAFE = ("GET", "HEAD", "OPTIONS")
NOBODY = "web"
"""Who makes a change where nobody has to say who they are."""
WHO = "beat.who"
"""The name in the scope of a request that was let in."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may do what."""

    token: str | None = field(default=None, repr=False)
    """As `Authorization: Bearer`, or as the password of any name."""
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Names and passwords."""
    authorize: Authorize | None = None
    """Asked instead, where the app is mounted: the name of who asks, or True; None or False to refuse."""
    hosts: tuple[str, ...] | None = ()
    """Names under which the page is reached, beside addresses and localhost; None to ask no questions."""
    read_only: bool = False

    @property
    def asks(self) -> bool:
        """Whether anybody has to say who they are."""
        return bool(self.token or self.users or self.authorize)

    async def who(self, request: Request) -> str | None:
        """The name of who asks; None for a stranger."""
        if self.authorize:
            found: Any = self.authorize(request)
            found = await found if inspect.isawaitable(found) else found
            return (found if isinstance(found, str) else NOBODY) if found else None
        return self._named(request.headers.get("authorization", "")) if self.asks else NOBODY

    def _named(self, header: str) -> str | None:
        kind, _, given = header.partition(" ")
        if kind.lower() == "bearer":
            return NOBODY if self.token and _same(given.strip(), self.token) else None
        if kind.lower() != "basic":
            return None
        try:
            name, _, password = base64.b64decode(given, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        known = _same(password, self.users.get(name, "")) and name in self.users
        by_token = bool(self.token) and _same(password, self.token or "")
        return (name if name.isprintable() and name else NOBODY) if known or by_token else None

    def knows(self, host: str) -> bool:
        """Whether the page may be asked for by this name: an address cannot be pointed elsewhere, a name can."""
        if self.hosts is None:
            return True
        name = _without_port(host).lower().rstrip(".")
        if name in {"localhost", socket.gethostname().lower()} or _is_address(name):
            return True
        return any(fnmatchcase(name, each.lower()) for each in self.hosts)


class Guard:
    """Lets in who may, and puts the headers on every answer that keep a browser from doing what was not meant."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        refusal = await self._refusal(request, scope)
        await (refusal or self._app)(scope, receive, _with_headers(send))

    async def _refusal(self, request: Request, scope: Scope) -> Response | None:
        """Why not; None for who is let in."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if not self._access.knows(request.headers.get("host", "")):
            return answer(request, 421, "this page is not known by that name: add the host to web_hosts")
        if path in OPEN:
            return None
        who = await self._access.who(request)
        if who is None:
            headers = {} if self._access.authorize else {"www-authenticate": 'Basic realm="beat", charset="UTF-8"'}
            return answer(request, 403 if self._access.authorize else 401, "this is not for strangers", headers)
        scope[WHO] = who
        return None if request.method in SAFE else self._refused_change(request, path)

    def _refused_change(self, request: Request, path: str) -> Response | None:
        if self._access.read_only:
            return answer(request, 403, "this page only shows: it was started with read_only")
        if not comes_from_here(request):
            return answer(request, 403, "another site asked for this change: nothing was done")
        if path.startswith(API) and not request.headers.get("content-type", "").startswith("application/json"):
            return answer(request, 415, "a change is asked for with Content-Type: application/json")
        return None


def comes_from_here(request: Request) -> bool:
    """Whether a browser says that the page itself, or no page at all, asks; programs need not say."""
    if request.headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")


def answer(request: Request, status: int, words: str, headers: Mapping[str, str] | None = None) -> Response:
    """A refusal, as who asks can read it."""
    if API in request.url.path:
        return JSONResponse({"error": words, "status": status}, status, headers)
    return PlainTextResponse(f"{words}\n", status, headers)


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            more = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in present]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sent


def _same(given: str, wanted: str) -> bool:
    """In a time that tells nothing about where they differ."""
    return hmac.compare_digest(given.encode(), wanted.encode())


def _without_port(host: str) -> str:
    return host.rpartition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
