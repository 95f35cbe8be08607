"""Mount the web UI in your own application: `uvicorn --app-dir examples web_starlette:app`, then /admin/beat/.

The application decides which users may open the web UI, and which name the ledger records for their changes. This
example reads a header that a proxy sets. In your application, use the session of the signed-in user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from beat.web import create_app

if TYPE_CHECKING:
    from starlette.requests import Request


def staff_only(request: Request) -> str | None:
    """Return the name of the user, or None to deny access. It may be async, and may read `request.session`."""
    return request.headers.get("x-user")


async def home(_request: Request) -> PlainTextResponse:
    """Serve a page of the application itself."""
    return PlainTextResponse("my application\n")


app = Starlette(
    routes=[
        Route("/", home),
        Mount("/admin/beat", create_app(authorize=staff_only)),
    ]
)
