"""Run the web UI of `beat dev` in a process of its own, which continues while the others restart."""

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
    """The process of the web UI; `say` receives its address, or how to install its libraries."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._child: Child | None = None

    def start(self, url: str) -> None:
        """Start the web UI of the Redis at `url`, on any free port if the configured one is taken.

        If its libraries are not installed, only say how to install them.
        """
        if any(importlib.util.find_spec(each) is None for each in _LIBRARIES):
            self._say(_HOW)
            return
        command = (sys.executable, "-m", "beat", "web", "--port", str(_free(settings.load().settings)))
        environ = {**os.environ, "PYTHONUNBUFFERED": "1", "BEAT_REDIS_URL": url}
        self._child = Child(command, environ, show=self._show, say=self._say)

    async def stop(self, hurry: asyncio.Future[None]) -> None:
        """Stop the web UI if it runs; kill it as soon as `hurry` is done."""
        if self._child:
            await self._child.stop(hurry)

    def _show(self, line: str) -> None:
        self._say(line.partition(" (of Redis")[0])  # an earlier line of `beat dev` names the Redis


def _free(wanted: Settings) -> int:
    """Return the configured port, or 0 for any port if it is taken, for example by another `beat dev`."""
    try:
        family = socket.AF_INET6 if ":" in wanted.web_host else socket.AF_INET
        with socket.create_server((wanted.web_host, wanted.web_port), family=family):
            return wanted.web_port
    except OSError:
        return 0
