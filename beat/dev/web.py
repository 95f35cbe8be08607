"""The page of a `beat dev`: a process of its own, from the first round to the end, whatever becomes of the others."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from typing import TYPE_CHECKING

from beat.config import settings
from beat.dev.process import Child

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from beat.config.settings import Settings

_LIBRARIES = ("jinja2", "starlette", "uvicorn")
_HOW = "the web UI is not here: pip install 'rq-beat[web]'"


class Page:
    """The page over the Redis at `url`, once it is started; `say` is told where it is, or how to get one."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._child: Child | None = None

    def start(self, url: str) -> None:
        """Starts it, at another port if somebody has that of the settings."""
        if any(importlib.util.find_spec(each) is None for each in _LIBRARIES):
            self._say(_HOW)
            return
        command = (sys.executable, "-m", "beat", "web", "--port", str(_free(settings.load().settings)))
        environ = {**os.environ, "PYTHONUNBUFFERED": "1", "BEAT_REDIS_URL": url}
        self._child = Child(command, environ, show=self._show, say=self._say)

    async def stop(self, hurry: asyncio.Future[None]) -> None:
        """Ends it."""
        if self._child:
            await self._child.stop(hurry)

    def _show(self, line: str) -> None:
        self._say(line.partition(" (of Redis")[0])  # which Redis, the first line says


def _free(wanted: Settings) -> int:
    """The port of the settings, or 0 for any, if that is taken: as when another `beat dev` runs."""
    try:
        family = socket.AF_INET6 if ":" in wanted.web_host else socket.AF_INET
        with socket.create_server((wanted.web_host, wanted.web_port), family=family):
            return wanted.web_port
    except OSError:
        return 0
