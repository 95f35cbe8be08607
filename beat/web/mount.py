"""The page below a path, as a proxy shows it: whether that takes the path away before it asks, or leaves it there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class Below:
    """An app whose addresses all begin with `path`."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app, self._path = app, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] == "http" and scope["path"] == self._path:
            await RedirectResponse(f"{self._path}/")(scope, receive, send)
            return
        asked = scope.get("path", "")
        path = asked if asked.startswith(f"{self._path}/") else f"{self._path}{asked}"
        await self._app({**scope, "root_path": self._path, "path": path}, receive, send)
