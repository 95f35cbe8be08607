"""The app: its routes, its guard, and what it shows when something is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware import Middleware

from beat.client import Client
from beat.web import api, errors, health, pages, static_files
from beat.web.auth import Access
from beat.web.mount import Below
from beat.web.security import Guard
from beat.web.site import AT_ONCE, Site

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp

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
    """The page of one installation, to be mounted under any path of an ASGI app.

    `redis` is a URL, a client, or what the settings say; options are settings by name. `authorize` is called with each
    request, and says who asks (a name, which stands in the ledger with each change, or True), or refuses (None, False,
    or an HTTPException). Without it the token or the users of the settings open it; where there are none, whoever
    reaches the app is let in. With `hosts`, only requests for those names are answered; a mounted app leaves that to
    the one around it.
    """
    client = Client(redis, **options)
    mine, known = client.settings, None if hosts is None else tuple(hosts)
    only_shows = read_only or mine.web_read_only == "on"
    return made(
        client,
        Access(token=mine.web_token, users=mine.web_users, authorize=authorize, hosts=known, read_only=only_shows),
    )


def served(settings: Settings, client: Client, *, at_once: int = AT_ONCE) -> ASGIApp:
    """The page for a server of its own, as the settings have it; refuses one that would be open to strangers."""
    app = made(client, Access.of(settings), at_once=at_once)
    return Below(app, settings.web_path) if settings.web_path else app


def made(client: Client, access: Access, *, at_once: int = AT_ONCE) -> Starlette:
    """The app over this client, for those whom `access` lets in."""
    site = Site(client, access, at_once)
    app = Starlette(
        routes=[*pages.routes(site), *api.routes(site), *health.routes(site), static_files.route()],
        middleware=[Middleware(Guard, access=access, bug=errors.bug(site))],
        exception_handlers=errors.handlers(site),
    )
    app.router.redirect_slashes = False  # it would name a host, and the scheme that a proxy has taken off
    return app
