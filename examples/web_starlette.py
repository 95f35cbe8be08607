"""The page inside an application of your own: `uvicorn --app-dir examples web_starlette:app`, then /admin/beat/.

Who may see it, and by which name changes stand in the ledger, is for the application to say: here a header that a proxy
sets, in yours the session of whoever has signed in.
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
    """The name of who asks, if they may; None refuses. It may be async, and may read `request.session`."""
    return request.headers.get("x-user")


async def home(_request: Request) -> PlainTextResponse:
    """What the application itself does."""
    return PlainTextResponse("my application\n")


app = Starlette(
    routes=[
        Route("/", home),
        Mount("/admin/beat", create_app(authorize=staff_only)),
    ]
)
