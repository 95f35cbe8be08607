"""Post one message by HTTP within a deadline, and report the result without secrets.

A request goes to its own URL, through the proxy that the environment names, and nowhere else. Redirects are not
followed, because urllib would turn the POST into a GET and send the key to the host that the redirect names. No
connection is kept open. Exceptions from `post` may contain the URL, so the caller decides which parts to show.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import ssl
import threading
import urllib.error
import urllib.request
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from beat._version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.notify.monitors.pings import Request


class Answer(NamedTuple):
    """The response of the server."""

    status: int
    body: bytes
    """At most as many bytes as `post` was told to read."""

    @property
    def is_good(self) -> bool:
        """Return whether the status is 2xx."""
        return self.status // 100 == 2  # noqa: PLR2004 (2xx)

    @property
    def leads_elsewhere(self) -> bool:
        """Return whether the status is 3xx, a redirect, which is not followed."""
        return self.status // 100 == 3  # noqa: PLR2004 (3xx)


def post(url: str, body: bytes, headers: Mapping[str, str], patience_s: float, *, longest: int = 0) -> Answer:
    """Post `body` and return the response with at most `longest` bytes of its body.

    Raises TimeoutError when the deadline passes, and OSError, HTTPException or ValueError when the request fails.
    """
    request = urllib.request.Request(url, body, dict(headers), method="POST")  # noqa: S310 (no other scheme has a handler)
    with _Deadline(patience_s) as deadline:
        try:
            with _opener(deadline).open(request, timeout=patience_s) as answer:
                return Answer(answer.status, answer.read(longest))
        except urllib.error.URLError as e:
            raise (e.reason if isinstance(e.reason, OSError) else OSError(e.reason)) from None


class _Deadline:
    """Close the connection when the deadline passes.

    A socket's own timeout does not suffice, because it starts again with every byte that the server sends.
    """

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._is_over = False

    def watch(self, line: socket.socket) -> None:
        """Watch one socket at a time, through a duplicate of it, because TLS takes over the original."""
        with self._lock:
            self._close()
            self._line = line.dup()
            self._hang_up()

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
            self._hang_up()

    def _hang_up(self) -> None:
        if self._is_over and self._line:
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        if self._line:
            self._line.close()
            self._line = None

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._close()
        if self._is_over and (error is None or isinstance(error, OSError | HTTPException)):
            raise TimeoutError from None  # even if a response arrived: the shutdown may have cut it short


class _Watched(HTTPConnection):
    """A connection that the deadline watches from the start, also during the proxy handshake and the TLS handshake."""

    def __init__(self, deadline: _Deadline, *args: Any, **options: Any) -> None:
        self._deadline, self._sock = deadline, None
        super().__init__(*args, **options)

    @property
    def sock(self) -> Any:
        return self._sock

    @sock.setter
    def sock(self, made: Any) -> None:
        if made is not None and not isinstance(made, ssl.SSLSocket):
            self._deadline.watch(made)
        self._sock = made


class _Secured(_Watched, HTTPSConnection):
    """A watched connection with TLS."""


class _Lines(urllib.request.AbstractHTTPHandler):
    """Open watched connections, and return every response as it is, whatever its status."""

    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, request: urllib.request.Request) -> HTTPResponse:
        return self.do_open(functools.partial(_Watched, self._deadline), request)

    def https_open(self, request: urllib.request.Request) -> HTTPResponse:
        made = functools.partial(_Secured, self._deadline)
        return self.do_open(made, request, context=_authorities())

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_


def _opener(deadline: _Deadline) -> urllib.request.OpenerDirector:
    made = urllib.request.OpenerDirector()
    for handler in (urllib.request.ProxyHandler(), urllib.request.UnknownHandler(), _Lines(deadline)):
        made.add_handler(handler)
    return made


@functools.cache
def _authorities() -> ssl.SSLContext:
    """Return the TLS context, which is made at the first HTTPS request because loading all CA certificates is slow."""
    made = ssl.create_default_context()
    made.set_alpn_protocols(["http/1.1"])
    return made


PATIENCE_S = 5.0
_AGAIN = {408, 425, 429}
_SERVER = 500
_LONGEST, _LONGEST_ANSWER = 200, 100


class Failure(NamedTuple):
    """A message that did not arrive, or that the service rejected."""

    words: str
    final: bool
    """Whether a retry would fail in the same way."""
    alone: bool = False
    """Whether the service answered, so that other messages may still succeed."""


def send_ping(request: Request, patience_s: float = PATIENCE_S) -> Failure | None:
    """Post a ping and return the failure, or None when the service accepted it."""
    headers = {"User-Agent": f"beat/{__version__}", **request.headers}
    try:
        answer = post(request.url, request.body, headers, patience_s, longest=_LONGEST_ANSWER)
        refusal = request.refusal(answer.body) if request.refusal and answer.is_good else ""
    except TimeoutError:
        return Failure(f"no answer within {patience_s:g} s", final=False)
    except (OSError, HTTPException) as e:
        return Failure(_line(e) or type(e).__name__, final=False)
    except Exception as e:  # noqa: BLE001 (a bug in one ping must not stop all later ones)
        return Failure(type(e).__name__, final=True)
    if not answer.is_good:
        again = answer.status in _AGAIN or answer.status >= _SERVER
        return Failure(_told(answer), final=not again, alone=True)
    return Failure(refusal, final=True) if refusal else None


def _told(answer: Answer) -> str:
    """Describe a bad status in beat's own words, because the server's reason phrase could contain anything."""
    phrase = f" {HTTPStatus(answer.status).phrase}" if answer.status in set(HTTPStatus) else ""
    moved = ", and beat follows no redirect: write the URL that it leads to"
    return f"it answers {answer.status}{phrase}{moved if answer.leads_elsewhere else ''}"


def _line(error: object) -> str:
    return " ".join(str(error).split())[:_LONGEST]
