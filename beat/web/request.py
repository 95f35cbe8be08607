"""One request, as the pages see it: who asks, for what, and the client that answers."""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from beat.errors import BadOption, BadZone, Refused
from beat.timing.zones import zone
from beat.web import security

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from beat.client import Client
    from beat.timing.zones import Zone
    from beat.web.auth import Access

LARGEST = 65_536
"""Bytes of a form or a document."""
_COOKIE, _FIELD = "beat_csrf", "csrf"
_TZ = "beat_tz"
THEME = "beat_theme"
_HEADER = "x-csrf-token"
_OLD = "this form has expired or is not from this web UI: nothing was done; load it again"
_UNSIGNED = "a browser asks for a change with the X-CSRF-Token that came with an answer before it: nothing was done"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request with its body read."""

    request: Request
    client: Client
    """Whose changes bear the name of who asks."""
    access: Access
    body: bytes = b""
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(16), repr=False)
    """What the forms of this page send back."""
    wish: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)
    """By what a run is known that somebody asks for on this page: however often they press, it is one."""

    @property
    def form(self) -> dict[str, str]:
        """The fields of a form, as they were written."""
        try:
            return dict(parse_qsl(self.body.decode(), keep_blank_values=True, max_num_fields=200))
        except ValueError as e:  # half a character; too many fields
            raise BadOption("that is no form of the web UI") from e

    @property
    def query(self) -> Mapping[str, str]:
        """What stands behind the question mark."""
        return self.request.query_params

    @property
    def path(self) -> Mapping[str, Any]:
        """What stands in the path, by name: `path["schedule_id"]`."""
        return self.request.path_params

    @property
    def is_live(self) -> bool:
        """Whether a page that is open asks for itself again."""
        return "hx-request" in self.request.headers

    @property
    def is_api(self) -> bool:
        """Whether a program asks, and JSON is the answer."""
        return security.is_api(self.request.scope)

    @property
    def is_browser(self) -> bool:
        """Whether a browser asks: only that says for which site, and sends what it keeps without being told to."""
        return any(name in self.request.headers for name in ("origin", "sec-fetch-site"))

    @property
    def here(self) -> str:
        """The address of this page within the app, as `url` takes it."""
        query = self.request.scope.get("query_string", b"").decode("latin-1")
        path = "/" + security.inner_path(self.request.scope).lstrip("/")  # two slashes would begin the name of a host
        return quote(path, safe=security.PATH) + (f"?{query}" if query else "")

    @property
    def viewer(self) -> Zone | None:
        """The zone of who looks, as far as a browser has told."""
        try:
            return zone(unquote(self.request.cookies[_TZ]))
        except (KeyError, BadZone):
            return None

    @property
    def theme(self) -> str:
        """`light` or `dark` by the viewer's choice, else nothing: by the system's."""
        found = self.request.cookies.get(THEME, "")
        return found if found in {"light", "dark"} else ""

    def url(self, path: str = "/", **query: object) -> str:
        """The address of another page, wherever the app is mounted; what is None is left out."""
        named = {name: value for name, value in query.items() if value not in (None, "")}
        return f"{security.root(self.request.scope)}{path}" + (f"?{urlencode(named)}" if named else "")

    def refuse_forged(self) -> None:
        """Refuses a form that is not of this page, and what a browser sends to the API for nobody knows whom."""
        sent = self.request.headers.get(_HEADER, "") or ("" if self.is_api else self.form.get(_FIELD, ""))
        kept = self.request.cookies.get(_COOKIE, "")
        if not _TOKEN.fullmatch(kept) or not hmac.compare_digest(sent.encode(), kept.encode()):
            raise Refused(_UNSIGNED if self.is_api else _OLD)

    def hand_token(self, made: Response) -> None:
        """Gives a script of this site what it sends back with a change; another site cannot read it."""
        made.headers[_HEADER] = self.csrf
        made.set_cookie(**csrf_cookie(self))


def csrf_of(request: Request) -> str:
    """That which the browser has, or a new one."""
    kept = request.cookies.get(_COOKIE, "")
    return kept if _TOKEN.fullmatch(kept) else secrets.token_urlsafe(16)


def csrf_cookie(asked: Asked) -> dict[str, Any]:
    """What keeps it, for `set_cookie`."""
    return {"key": _COOKIE, "value": asked.csrf, "httponly": True, **cookie(asked)}


def cookie(asked: Asked) -> dict[str, Any]:
    """What every cookie has: for this app alone, and where TLS is, never without it."""
    return {"samesite": "lax", "path": asked.url("/"), "secure": asked.request.scope.get("scheme") == "https"}
