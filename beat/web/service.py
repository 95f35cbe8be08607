"""Serve the web UI beside a scheduler, whether or not Redis is available.

The server starts in the constructor, so a taken port fails before the first tick. It handles few requests at a time,
so that the ticker does not compete with many threads for the interpreter lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.client.client import Client
from beat.engine.events import Event
from beat.web.app import served
from beat.web.server import Serving

if TYPE_CHECKING:
    import threading

    from beat.config.settings import Settings
    from beat.engine.events import Emit
    from beat.storage.connection import Redis

_AT_ONCE = 2
_LOOK_S = 1.0


class Page:
    """The service that runs the web UI."""

    name = "web"

    def __init__(self, settings: Settings, redis: Redis | str, emit: Emit) -> None:
        limits = {name: getattr(settings, name) for name in ("history_limit", "events_limit")}
        self._client = Client(redis, prefix=settings.prefix, **limits)
        self._app = served(settings, self._client, at_once=_AT_ONCE)
        self._host = settings.web_host
        self._serving = Serving(self._app, settings.web_host, settings.web_port).start()
        self._port = self._serving.port
        emit(Event("page_served", fields={"address": f"{self._serving.address}{settings.web_path}/"}))

    def run(self, stopping: threading.Event) -> None:
        """Keep the server running until the scheduler stops. Raise RuntimeError if the server ends by itself."""
        if not self._serving.is_alive:
            self._serving = Serving(self._app, self._host, self._port).start()
        while not stopping.wait(_LOOK_S):
            if not self._serving.is_alive:
                self._serving.stop()
                raise RuntimeError("its server has ended by itself")
        self._serving.stop()
        self._client.close()
