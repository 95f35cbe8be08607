"""One request as the handlers see it: its parameters, form and cookies, and the client that answers it."""

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

    from beat.client.client import Client
    from beat.timing.zones import Zone
    from beat.web.auth import Access

LARGEST = 65_536
"""Maximum size of a form or a JSON document, in bytes."""
_COOKIE, _FIELD = "beat_csrf", "csrf"
_TZ = "beat_tz"
THEME = "beat_theme"
_HEADER = "x-csrf-token"
_OLD = "this form has expired or is not from this web UI: nothing was done; load it again"
_UNSIGNED = "a browser asks for a change with the X-CSRF-Token that came with an answer before it: nothing was done"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request whose body has been read."""

    request: Request
    client: Client
    """It records the user of this request as the author of changes."""
    access: Access
    body: bytes = b""
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(16), repr=False)
    """The CSRF token that the forms of this page send back."""
    wish: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)
    """The id of the run that a form on this page requests, so that pressing twice triggers only one."""

    @property
    def form(self) -> dict[str, str]:
        """Return the fields of a form as the user typed them. Raise BadOption if the body is not a form."""
        try:
            return dict(parse_qsl(self.body.decode(), keep_blank_values=True, max_num_fields=200))
        except ValueError as e:  # invalid UTF-8, or too many fields
            raise BadOption("that is no form of the web UI") from e

    @property
    def query(self) -> Mapping[str, str]:
        """Return the query parameters."""
        return self.request.query_params

    @property
    def path(self) -> Mapping[str, Any]:
        """Return the path parameters by name, such as `path["schedule_id"]`."""
        return self.request.path_params

    @property
    def is_live(self) -> bool:
        """Return whether the script of an open page sent the request, to update the page."""
        return "hx-request" in self.request.headers

    @property
    def is_api(self) -> bool:
        """Return whether the request is for the JSON API."""
        return security.is_api(self.request.scope)

    @property
    def is_browser(self) -> bool:
        """Return whether a browser sent the request. Only browsers name the site and send cookies unasked."""
        return any(name in self.request.headers for name in ("origin", "sec-fetch-site"))

    @property
    def here(self) -> str:
        """Return the address of this page within the app, as `url` takes it."""
        query = self.request.scope.get("query_string", b"").decode("latin-1")
        path = "/" + security.inner_path(self.request.scope).lstrip("/")  # two slashes would begin a host name
        return quote(path, safe=security.PATH) + (f"?{query}" if query else "")

    @property
    def viewer(self) -> Zone | None:
        """Return the viewer's time zone from a cookie; None if the cookie is missing or invalid."""
        try:
            return zone(unquote(self.request.cookies[_TZ]))
        except (KeyError, BadZone):
            return None

    @property
    def theme(self) -> str:
        """Return `light` or `dark` if the viewer chose one; empty to follow the system."""
        found = self.request.cookies.get(THEME, "")
        return found if found in {"light", "dark"} else ""

    def url(self, path: str = "/", **query: object) -> str:
        """Return the address of `path`, wherever the app is mounted. Parameters that are None or empty are left out."""
        named = {name: value for name, value in query.items() if value not in (None, "")}
        return f"{security.root(self.request.scope)}{path}" + (f"?{urlencode(named)}" if named else "")

    def refuse_forged(self) -> None:
        """Raise Refused unless the form or the header carries the CSRF token of this browser."""
        sent = self.request.headers.get(_HEADER, "") or ("" if self.is_api else self.form.get(_FIELD, ""))
        kept = self.request.cookies.get(_COOKIE, "")
        if not _TOKEN.fullmatch(kept) or not hmac.compare_digest(sent.encode(), kept.encode()):
            raise Refused(_UNSIGNED if self.is_api else _OLD)

    def hand_token(self, made: Response) -> None:
        """Add the CSRF token to the answer for a script of this site; another site cannot read it."""
        made.headers[_HEADER] = self.csrf
        made.set_cookie(**csrf_cookie(self))


def csrf_of(request: Request) -> str:
    """Return the CSRF token that the browser has, or a new one."""
    kept = request.cookies.get(_COOKIE, "")
    return kept if _TOKEN.fullmatch(kept) else secrets.token_urlsafe(16)


def csrf_cookie(asked: Asked) -> dict[str, Any]:
    """Return the arguments of `set_cookie` that store the CSRF token."""
    return {"key": _COOKIE, "value": asked.csrf, "httponly": True, **cookie(asked)}


def cookie(asked: Asked) -> dict[str, Any]:
    """Return the attributes of every cookie: for this app only, and over TLS only if the request used TLS."""
    return {"samesite": "lax", "path": asked.url("/"), "secure": asked.request.scope.get("scheme") == "https"}
