"""The app: its routes, its guard, and what it shows when something is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from beat.client import Client
from beat.web import api, broken, pages
from beat.web.safety import Access, Guard
from beat.web.site import Site

if TYPE_CHECKING:
    from beat.connection import Redis
    from beat.web.safety import Authorize


def create_app(
    redis: Redis | str | None = None,
    *,
    authorize: Authorize | None = None,
    read_only: bool = False,
    hosts: tuple[str, ...] | None = None,
    **options: Any,
) -> Starlette:
    """The page of one installation, to be served, or mounted under any path of an ASGI app.

    `redis` is a URL, a client, or what the settings say; options are settings by name. `authorize` is called with each
    request, and says who asks (a name, which stands in the ledger with each change, or True), or refuses (None, False).
    With `hosts`, only requests for those names are answered; a mounted app leaves that to the one around it.
    """
    client = Client(redis, **options)
    return made(client, Access(authorize=authorize, read_only=read_only, hosts=hosts))


def made(client: Client, access: Access) -> Starlette:
    """The app over this client, for those whom `access` lets in."""
    site = Site(client, access)
    static = Mount("/static", StaticFiles(packages=[("beat.web", "static")]), name="static")
    return Starlette(
        routes=[*pages.routes(site), *api.routes(site), static],
        middleware=[Middleware(Guard, access=access)],
        exception_handlers=broken.handlers(site),
    )
