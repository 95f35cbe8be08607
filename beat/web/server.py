"""Serve the web UI over HTTP. The port is bound when the server is made, so a taken port fails at once."""

from __future__ import annotations

import errno
import logging
import socket
import threading
from typing import TYPE_CHECKING, Self

import uvicorn

from beat.errors import ConfigError
from beat.web.deadline import Deadline

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_NAME = "beat-web-http"
_BACKLOG = 100
_AT_ONCE = 200
"""Maximum number of connections; further requests get 503."""
_FINISH_S, _STOP_S = 1, 1.5
"""Seconds for open answers when the server stops, and for the whole stop."""


class Serving:
    """An HTTP server for one app, in a thread of its own."""

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        self._socket = _listening(host, port)
        self._at, self.port = self._socket.getsockname()[:2]
        config = uvicorn.Config(
            app,
            http=Deadline,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_AT_ONCE,
            timeout_graceful_shutdown=_FINISH_S,
        )
        # The app reports its own errors, and invalid HTTP from strangers is not worth a log line.
        logging.getLogger("uvicorn.error").addFilter(_of_others)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name=_NAME, daemon=True)

    @property
    def address(self) -> str:
        """Return the URL of the server, such as `http://127.0.0.1:8420`."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._at, self._at)  # noqa: S104 (shown, not bound)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def is_alive(self) -> bool:
        """Return whether the server thread is running."""
        return self._thread.is_alive()

    def start(self) -> Self:
        """Start to answer requests."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop the server after its open answers, and close the port."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_STOP_S)
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _of_others(record: logging.LogRecord) -> bool:
    """Return whether a log record comes from another server in this process, such as that of the application."""
    return record.threadName != _NAME


def _listening(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)  # asyncio sets TCP_NODELAY only if the protocol is TCP
    except (OSError, UnicodeError) as e:
        raise _cannot(host, port, e) from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError as e:
        made.close()
        raise _cannot(host, port, e) from None
    return made


def _cannot(host: str, port: int, error: Exception) -> ConfigError:
    taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    why = "another process is there" if taken else getattr(error, "strerror", None) or "that is no host"
    return ConfigError(f"the web UI cannot be served at {host}:{port}: {why} (web_host, web_port)")
