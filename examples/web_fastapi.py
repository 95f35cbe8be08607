"""The page inside an application of FastAPI: `uvicorn --app-dir examples web_fastapi:app`, then /admin/beat/.

Who may see it, and by which name changes stand in the ledger, is for the application to say: here a header that a proxy
sets, in yours whatever your other endpoints depend on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from beat.web import create_app

if TYPE_CHECKING:
    from starlette.requests import Request


async def staff_only(request: Request) -> str | None:
    """The name of who asks, if they may; None refuses."""
    return request.headers.get("x-user")


app = FastAPI()


@app.get("/", response_class=PlainTextResponse)
async def home() -> str:
    """What the application itself does."""
    return "my application\n"


app.mount("/admin/beat", create_app(authorize=staff_only))
