"""Mount the web UI in a FastAPI application: `uvicorn --app-dir examples web_fastapi:app`, then /admin/beat/.

The application decides which users may open the web UI, and which name the ledger records for their changes. This
example reads a header that a proxy sets. In your application, use the dependency that protects your other endpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from beat.web import create_app

if TYPE_CHECKING:
    from starlette.requests import Request


async def staff_only(request: Request) -> str | None:
    """Return the name of the user, or None to deny access."""
    return request.headers.get("x-user")


app = FastAPI()


@app.get("/", response_class=PlainTextResponse)
async def home() -> str:
    """Serve a page of the application itself."""
    return "my application\n"


app.mount("/admin/beat", create_app(authorize=staff_only))
