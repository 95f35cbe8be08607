"""A stand-in for the web services that beat tells things: it notes what it is sent, and answers as the test likes."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Request(NamedTuple):
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Answer(NamedTuple):
    """What a request is answered; 0 is no answer at all."""

    status: int
    body: str = ""
    reason: str | None = None
    headers: Mapping[str, str] = {}


class StandIn:
    """A server on this machine, for as long as the test lasts."""

    def __init__(self, answer: Callable[[Request], int | Answer] = lambda _: 200) -> None:
        self.requests: list[Request] = []
        """In the order in which they came, also those that got no answer."""
        self.asked = 0
        """How many requests there were that told nothing."""
        self.answer = answer
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = Request(self.path, dict(self.headers), body)
                outer.requests.append(request)
                found = outer.answer(request)
                made = found if isinstance(found, Answer) else Answer(found)
                if made.status:
                    self.send_response(made.status, made.reason)
                    told = {"Location": "/elsewhere", "Content-Length": str(len(made.body)), **made.headers}
                    for name, value in told.items():
                        self.send_header(name, value)
                    self.end_headers()
                    with contextlib.suppress(ConnectionError):  # not everybody reads to the end
                        self.wfile.write(made.body.encode())

            def do_GET(self) -> None:
                outer.asked += 1
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
