"""A service that watches over runs, as a server of this machine: it notes what it is told, and answers as it is bid."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Told(NamedTuple):
    """One request."""

    path: str
    run: str
    """The `rid` of a ping, or the id of a check-in."""
    body: str

    @property
    def check_in(self) -> dict[str, Any]:
        """What an envelope holds."""
        found: dict[str, Any] = json.loads(self.body.split("\n")[2])
        return found


class Answer(NamedTuple):
    """What a request is answered."""

    status: int
    body: str = ""
    reason: str | None = None
    headers: Mapping[str, str] = {}


class StandIn:
    """Takes everything, unless `answer` says otherwise: what it makes of a request is the status, or all of it."""

    def __init__(self, answer: Callable[[Told], int | Answer] = lambda _: 200) -> None:
        self.told: list[Told] = []
        self.asked = 0
        """How many requests there were that told nothing."""
        standin = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                run = parse_qs(parts.query).get("rid", [""])[0]
                told = Told(parts.path, run, body)
                standin.told.append(told._replace(run=told.check_in["check_in_id"]) if not run else told)
                made = answer(told)
                made = made if isinstance(made, Answer) else Answer(made)
                self.send_response(made.status, made.reason)
                for name, value in {"Content-Length": str(len(made.body)), **made.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # not everybody reads to the end
                    self.wfile.write(made.body.encode())

            def do_GET(self) -> None:
                standin.asked += 1
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def paths(self) -> list[str]:
        """What it was told of, in order."""
        return [each.path for each in self.told]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
