"""Guard the whole app: decide which requests reach a handler, and restrict what a browser does with the answers.

No other site can make a change in a user's name or show a page in a frame, and a page runs only the app's own scripts.
A refused request never reaches a handler.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.websockets import WebSocketClose

from beat.web.auth import NOBODY, PROOF, Access, Strangers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["API", "NOBODY", "OPEN", "SAFE", "WHO", "Access", "Guard", "answer", "inner_path", "is_api"]

_log = logging.getLogger("beat.web")
OPEN = ("/healthz", "/readyz")
"""The paths of probes, which have no password; they reveal only whether all is well."""
API = "/api/"
PATH = "/:@!$'()*,;=~+"
"""The punctuation that addresses keep in a path; other special characters are percent-encoded."""
_IN_COOKIES = PATH.translate({ord(each): None for each in ",;"})
"""The same without comma and semicolon, which end the path of a cookie."""
SAFE = ("GET", "HEAD", "OPTIONS")
WHO = "beat.who"
"""The key in the ASGI scope under which the user's name is stored."""
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
_UNKEPT = {"cache-control": "no-store"}
"""An additional header of all answers but static files, which hold no secrets."""


class Guard:
    """The middleware that refuses unauthorized requests and adds the security headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access, bug: Callable[[Request, Exception], Response]) -> None:
        self._app, self._access, self._bug = app, access, bug
        self._strangers = Strangers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: pass it to the app, refuse it, or report a bug."""
        if scope["type"] == "websocket":  # the app has none
            await WebSocketClose()(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_static = inner_path(scope).startswith("/static/")
        answering = _Answering(send, HEADERS if is_static else HEADERS | _UNKEPT)
        try:
            refusal = await self._refusal(Request(scope))
            if refusal is None and not is_static:
                answering.cookie = self._proof(Request(scope))
            await (refusal or self._app)(scope, receive, answering.send)
        except Exception as e:
            if answering.has_begun:
                raise
            await self._bug(Request(scope), e)(scope, receive, answering.send)

    async def _refusal(self, request: Request) -> Response | None:
        """Return the answer that refuses the request; None if it is admitted. Store the user's name in its scope."""
        hosts = request.headers.getlist("host")
        if not self._access.knows(hosts[0] if len(hosts) == 1 else ""):
            return answer(request, 421, "the web UI is not known by that name: add the host to web_hosts")
        if inner_path(request.scope) in OPEN:
            return None
        wait_s = 0.0 if self._access.authorize is not None else self._strangers.wait_s(request)
        try:
            who = await self._access.who(request, checks_passwords=not wait_s)
        except HTTPException as e:  # `authorize` may refuse like this
            return answer(request, e.status_code, str(e.detail), e.headers)
        except Exception:  # noqa: BLE001 (no failure of `authorize` may admit a request)
            _log.exception("authorize= cannot say who asks, and nobody is let in")
            return answer(request, 500, "the application around the web UI cannot say who you are: see its log")
        if who is None:
            return _too_many(request, wait_s) if wait_s else self._stranger(request)
        request.scope[WHO] = who
        return None if request.method in SAFE else self._refused_change(request)

    def _stranger(self, request: Request) -> Response:
        if self._access.authorize is not None:
            return answer(request, 403, "you may not see the web UI: sign in to the application that it is part of")
        self._strangers.note(request)
        asking = {"www-authenticate": 'Basic realm="beat", charset="UTF-8"'}
        return answer(request, 401, "say who you are: a name and a password, or a token", asking)

    def _proof(self, request: Request) -> bytes:
        """Return the cookie for a browser that has just signed in; empty if it has the cookie already."""
        kind = request.headers.get("authorization", "").partition(" ")[0]
        if not self._access.asks or kind.lower() != "basic" or self._strangers.is_proven(request):
            return b""
        if self._access.authorize is not None or inner_path(request.scope) in OPEN:  # no password was checked
            return b""
        answered, secure = Response(), request.scope.get("scheme") == "https"
        path, proof = f"{root(request.scope)}/", self._strangers.proof(request)
        answered.set_cookie(PROOF, proof, httponly=True, samesite="lax", path=path, secure=secure)
        return dict(answered.raw_headers)[b"set-cookie"]

    def _refused_change(self, request: Request) -> Response | None:
        if self._access.read_only:
            return answer(request, 403, "the web UI is read-only, so nothing was changed")
        if not comes_from_here(request):
            return answer(
                request, 403, "another site asked for this change, or a proxy hides the host: nothing was done"
            )
        if request.method == "POST" and is_api(request.scope) and _kind(request) != "application/json":
            return answer(request, 415, "a change is asked for with Content-Type: application/json")
        return None


def inner_path(scope: Scope) -> str:
    """Return the path within this app, wherever it is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    inside = root and (path == root or path.startswith(f"{root}/"))
    return (path.removeprefix(root) if inside else path) or "/"


def root(scope: Scope) -> str:
    """Return the path at which the app is mounted, quoted for addresses and cookies; empty at the root."""
    return quote(str(scope.get("root_path", "")).rstrip("/"), safe=_IN_COOKIES)


def is_api(scope: Scope) -> bool:
    """Return whether the request is for the JSON API."""
    return inner_path(scope).startswith(API)


def comes_from_here(request: Request) -> bool:
    """Return whether this site or no site started the request. Programs send no such headers and pass."""
    if any(each not in {"none", "same-origin"} for each in request.headers.getlist("sec-fetch-site")):
        return False
    host = request.headers.get("host", "")
    return all(_place(origin) == host.lower() != "" for origin in request.headers.getlist("origin"))


def answer(request: Request, status: int, words: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a refusal, as JSON for the API and else as plain text."""
    if is_api(request.scope):
        return JSONResponse({"error": words, "status": status}, status, headers)
    return PlainTextResponse(f"{words}\n", status, headers)


def _too_many(request: Request, wait_s: float) -> Response:
    """Return the refusal of a password that was not checked."""
    seconds = math.ceil(wait_s)
    words = f"too many wrong passwords came from your address: try again in {seconds} s"
    return answer(request, 429, words, {"retry-after": str(seconds)})


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _place(origin: str) -> str:
    """Return the host and port of an origin; empty if it is invalid."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


class _Answering:
    """Sends an answer and adds the headers that it does not set itself."""

    def __init__(self, send: Send, more: Mapping[str, str]) -> None:
        self._send, self._more = send, more
        self.cookie = b""
        """An additional `Set-Cookie` header."""
        self.has_begun = False

    async def send(self, message: Message) -> None:
        """Send an ASGI message; the start of the answer gets the additional headers."""
        if message["type"] == "http.response.start":
            self.has_begun = True
            present = {name.lower() for name, _ in message["headers"]}
            more = [(name.encode(), value.encode()) for name, value in self._more.items()]
            added = [header for header in more if header[0] not in present]
            cookie = [(b"set-cookie", self.cookie)] if self.cookie else []
            message = {**message, "headers": [*message["headers"], *added, *cookie]}
        await self._send(message)
