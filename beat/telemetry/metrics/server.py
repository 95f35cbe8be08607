"""Serve metrics by HTTP, and keep them up to date: fold events, and add what this scheduler has counted."""

from __future__ import annotations

import contextlib
import errno
import socket
import socketserver
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from beat.engine.events import Event
from beat.errors import BeatError, ConfigError, NoRedis
from beat.storage import connection, server_check
from beat.storage.backoff import cause
from beat.storage.keys import Keys
from beat.storage.store import Store
from beat.telemetry.metrics import collector, folding, page

if TYPE_CHECKING:
    from beat.config.settings import Settings
    from beat.engine.events import Emit
    from beat.storage.connection import Redis
    from beat.telemetry.metrics.tally import Tally

_TURN_S = 1.0
_PATIENCE_S = 10
_STOP_S = 0.5
_LOOK_S = 0.1
_TURN_COMES_S = 5.0
_MOST = 20
"""The maximum number of simultaneous requests."""
_PLAIN = "text/plain; charset=utf-8"


class Metrics:
    """The metrics service, which answers from its construction until it stops, even if Redis is unavailable.

    So a port that is taken is reported before the first tick.
    """

    name = "metrics"

    def __init__(
        self, settings: Settings, redis: Redis | str, name: str, emit: Emit, tally: Tally, *, stopping: threading.Event
    ) -> None:
        self._store = Store(connection.connect(redis), Keys(settings.prefix))
        self._beat, self._tally = name, tally
        self._globs = settings.metrics_schedules
        self._one_at_a_time = threading.Lock()
        self._server = _listen(settings.metrics_host, settings.metrics_port or 0, self)
        self._serving = threading.Thread(target=self._serve, args=(stopping,), name="beat-metrics-http", daemon=True)
        self._serving.start()
        emit(Event("serving", fields={"address": self._server.address}))

    def run(self, stopping: threading.Event) -> None:
        """Update the metrics in Redis every second, until `stopping` is set."""
        while not stopping.wait(_TURN_S):
            self._keep_or_say()
        with contextlib.suppress(*connection.Errors, BeatError):  # the last counts
            self.keep()
        self._serving.join(_STOP_S)

    def _serve(self, stopping: threading.Event) -> None:
        with self._server as server:
            while not stopping.is_set():
                server.handle_request()

    def keep(self) -> None:
        """Add what this scheduler has counted to the totals, and fold new events."""
        items = self._tally.items()
        folding.tell(self._store, self._beat, items)
        self._tally.known(items)
        folding.fold_all(self._store)

    def _keep_or_say(self) -> None:
        try:
            self.keep()
        except connection.Refused as e:
            if connection.forbids(e):
                raise server_check.may_not(self._store.client, "keep metrics", e) from None
            raise

    def page(self) -> str:
        """Return the metrics as Prometheus reads them.

        One request at a time is answered. Raises NoRedis if the others before it take longer than `_TURN_COMES_S`.
        """
        if not self._one_at_a_time.acquire(timeout=_TURN_COMES_S):
            raise NoRedis("it has not answered those who asked before")
        try:
            with contextlib.suppress(*folding.UNKEPT):  # the stored metrics can still be shown
                self.keep()
            return page.text(collector.read(self._store, self._globs))
        finally:
            self._one_at_a_time.release()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = _MOST
    timeout = _LOOK_S  # after this many seconds without a request it checks whether to stop

    def __init__(self, family: socket.AddressFamily, address: Any, metrics: Metrics) -> None:
        self.address_family, self.metrics = family, metrics
        self._open = set[Any]()
        super().__init__(address, _Handler)

    @property
    def address(self) -> str:
        host, port = self.server_address[:2]
        shown = f"[{host!s}]" if self.address_family == socket.AF_INET6 else host
        return f"http://{shown!s}:{port}/metrics"

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002 (as it is called)
        """Return whether there are fewer than `_MOST` requests; otherwise the connection is closed."""
        has_room = len(self._open) < _MOST
        if has_room:
            self._open.add(request)
        return has_room

    def shutdown_request(self, request: Any) -> None:
        """Close a request, whether it succeeded or not."""
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of a connection, such as a client that hung up."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE_S
    server: _Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self._answer(HTTPStatus.NOT_FOUND, "there is nothing but /metrics here\n")
            return
        try:
            found = self.server.metrics.page()
        except (*connection.Errors, BeatError) as e:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"Redis cannot be asked for metrics now: {cause(e)}\n")
        except Exception as e:  # noqa: BLE001 (a bug here must not stop the scheduler)
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"this is a bug in beat, please report it: {cause(e)}\n")
        else:
            self._answer(HTTPStatus.OK, found, page.TYPE)

    def _answer(self, status: HTTPStatus, text: str, kind: str = _PLAIN) -> None:
        body = text.encode(errors="replace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing, because scrapes are frequent."""


def _listen(host: str, port: int, metrics: Metrics) -> _Server:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return _bound(family, address, metrics)
    except (OSError, UnicodeError) as e:
        why = "another process is there" if _is_taken(e) else getattr(e, "strerror", None) or "that is no host"
        raise ConfigError(f"metrics cannot be served at {host}:{port}: {why} (metrics_host, metrics_port)") from None


def _bound(family: socket.AddressFamily, address: Any, metrics: Metrics) -> _Server:
    """Bind the port; retry briefly while it is taken, because a scheduler that has just stopped may release it."""
    until = time.monotonic() + _STOP_S
    while True:
        try:
            return _Server(family, address, metrics)
        except OSError as e:
            if not _is_taken(e) or time.monotonic() > until:
                raise
            time.sleep(_LOOK_S / 2)


def _is_taken(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EADDRINUSE
