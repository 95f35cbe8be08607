"""The page beside a beat: served from the moment it is made, whether Redis is there or not.

So a port that is taken is known before anything ticks. It has a thread and few turns of its own: however many ask, the
ticker is never one of many who wait for the interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.client import Client
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
    """A companion of the engine."""

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
        """Sees to it that it is served, until it is time to stop."""
        if not self._serving.is_alive:
            self._serving = Serving(self._app, self._host, self._port).start()
        while not stopping.wait(_LOOK_S):
            if not self._serving.is_alive:
                self._serving.stop()
                raise RuntimeError("its server has ended by itself")
        self._serving.stop()
        self._client.close()
