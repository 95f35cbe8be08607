"""Serve an app below a path, whether or not the proxy strips that path from requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class Below:
    """An ASGI app that serves another one below `path`."""

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
