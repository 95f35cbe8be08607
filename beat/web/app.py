"""Build the ASGI app of the web UI: its routes, the guard before them, and its error handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import RedirectResponse

from beat.client.client import Client
from beat.web import api, errors, health, pages, static_files
from beat.web.auth import Access
from beat.web.security import Guard
from beat.web.site import AT_ONCE, Site

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from beat.config.settings import Settings
    from beat.storage.connection import Redis
    from beat.web.auth import Authorize


def create_app(
    redis: Redis | str | None = None,
    *,
    authorize: Authorize | None = None,
    read_only: bool = False,
    hosts: Iterable[str] | None = None,
    **options: Any,
) -> Starlette:
    """Return the web UI of one installation, an ASGI app to mount under any path of another app.

    `redis` is a URL or a client; None takes it from the settings. `options` are settings by name.

    beat calls `authorize` with each request. It admits the request with the user's name or True, and refuses it with
    None, False or an HTTPException. The ledger records the name with each change. Without `authorize`, the token or
    the users of the settings protect the app. If the settings have neither, every request is admitted.

    With `hosts`, the app answers only requests for those host names, IP addresses and localhost. Without it, the app
    around it must check the host.
    """
    client = Client(redis, **options)
    mine, known = client.settings, None if hosts is None else tuple(hosts)
    only_shows = read_only or mine.web_read_only == "on"
    return made(
        client,
        Access(token=mine.web_token, users=mine.web_users, authorize=authorize, hosts=known, read_only=only_shows),
    )


def served(settings: Settings, client: Client, *, at_once: int = AT_ONCE) -> ASGIApp:
    """Return the app for beat's own server. Raise ConfigError if other machines could reach it without a password."""
    app = made(client, Access.of(settings), at_once=at_once)
    return Below(app, settings.web_path) if settings.web_path else app


class Below:
    """An ASGI app that serves another one below `path`, whether or not the proxy strips `path` from requests."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app, self._path = app, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with `path` as its root; redirect `path` itself to `path/`."""
        if scope["type"] == "http" and scope["path"] == self._path:
            await RedirectResponse(f"{self._path}/")(scope, receive, send)
            return
        asked = scope.get("path", "")
        path = asked if asked.startswith(f"{self._path}/") else f"{self._path}{asked}"
        await self._app({**scope, "root_path": self._path, "path": path}, receive, send)


def made(client: Client, access: Access, *, at_once: int = AT_ONCE) -> Starlette:
    """Return the app over this client, for the users that `access` admits."""
    site = Site(client, access, at_once)
    app = Starlette(
        routes=[*pages.routes(site), *api.routes(site), *health.routes(site), static_files.route()],
        middleware=[Middleware(Guard, access=access, bug=errors.bug(site))],
        exception_handlers=errors.handlers(site),
    )
    app.router.redirect_slashes = False  # its redirects are absolute, and name http behind a proxy that ends TLS
    return app
