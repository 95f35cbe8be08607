"""The server of the page: it listens before it says so, and ends when it is told to."""

from __future__ import annotations

import errno
import socket
import threading
from typing import TYPE_CHECKING, Self

import uvicorn

from beat.errors import ConfigError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_BACKLOG = 100
_STOP_S = 2


class Serving:
    """A page that is served, from a thread of its own."""

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        self._socket = _listening(host, port)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=_STOP_S,
            server_header=False,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.run, name="beat-web", daemon=True)

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        host, port = self._socket.getsockname()[:2]
        shown = f"[{host}]" if self._socket.family == socket.AF_INET6 else host
        return f"http://{shown}:{port}/"

    def run(self) -> None:
        """Answers until it is stopped."""
        self._server.run(sockets=[self._socket])

    def start(self) -> Self:
        """From now on it answers, from a thread of its own."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ends what it is at, and then itself."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_STOP_S + 1)
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
        made = socket.socket(family, kind)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except (OSError, UnicodeError) as e:
        taken = getattr(e, "errno", None) == errno.EADDRINUSE
        why = "another process is there" if taken else getattr(e, "strerror", None) or "that is no host"
        raise ConfigError(f"the page cannot be served at {host}:{port}: {why} (web_host, web_port)") from None
    return made
