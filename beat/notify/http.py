"""One message, posted: what became of it, in words that hold no secret.

Posts one message by HTTP, within its time, and tells what came back.

It goes where it is addressed, through the proxy that the environment names for it, and nowhere else: who followed a
redirection would make a GET of it, and hand a key to whoever is named there. Nothing is kept open. What is raised may
hold the URL in its words: the caller decides what of it can be shown.
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
    """What the other side said."""

    status: int
    body: bytes
    """As much of it as was asked for."""

    @property
    def is_good(self) -> bool:
        """Whether it was taken."""
        return self.status // 100 == 2  # noqa: PLR2004 (2xx)

    @property
    def leads_elsewhere(self) -> bool:
        """Whether it names another place, which nobody follows."""
        return self.status // 100 == 3  # noqa: PLR2004 (3xx)


def post(url: str, body: bytes, headers: Mapping[str, str], patience_s: float, *, longest: int = 0) -> Answer:
    """Raises TimeoutError when the time is over, and OSError, HTTPException or ValueError when it cannot be posted.

    Of the answer's body, at most `longest` bytes are read.
    """
    request = urllib.request.Request(url, body, dict(headers), method="POST")  # noqa: S310 (no other scheme has a handler)
    with _Deadline(patience_s) as deadline:
        try:
            with _opener(deadline).open(request, timeout=patience_s) as answer:
                return Answer(answer.status, answer.read(longest))
        except urllib.error.URLError as e:
            raise (e.reason if isinstance(e.reason, OSError) else OSError(e.reason)) from None


class _Deadline:
    """Hangs up when the time is over: who sends a byte now and then is never too slow for a socket's own limit."""

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._is_over = False

    def watch(self, line: socket.socket) -> None:
        """One at a time. It is a way of our own to the same line, for TLS takes the socket that it is given."""
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
            raise TimeoutError from None  # also where something came by then: it may only look like an answer


class _Watched(HTTPConnection):
    """Its line is watched from the first moment: while a proxy is asked, and while TLS shakes hands."""

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
    """The same with TLS."""


class _Lines(urllib.request.AbstractHTTPHandler):
    """Opens the connections; whatever is answered is an answer."""

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
    """Made when the first message is posted, for it reads the certificates of all authorities."""
    made = ssl.create_default_context()
    made.set_alpn_protocols(["http/1.1"])
    return made


PATIENCE_S = 5.0
_AGAIN = {408, 425, 429}
_SERVER = 500
_LONGEST, _LONGEST_ANSWER = 200, 100


class Failure(NamedTuple):
    """A message that did not arrive, or was not taken."""

    words: str
    final: bool
    """Whether it would be the same another time."""
    alone: bool = False
    """Whether the service answers: others may fare better."""


def send_ping(request: Request, patience_s: float = PATIENCE_S) -> Failure | None:
    """None when it was taken."""
    headers = {"User-Agent": f"beat/{__version__}", **request.headers}
    try:
        answer = post(request.url, request.body, headers, patience_s, longest=_LONGEST_ANSWER)
        refusal = request.refusal(answer.body) if request.refusal and answer.is_good else ""
    except TimeoutError:
        return Failure(f"no answer within {patience_s:g} s", final=False)
    except (OSError, HTTPException) as e:
        return Failure(_line(e) or type(e).__name__, final=False)
    except Exception as e:  # noqa: BLE001 (a bug is no reason to be silent about all that comes after)
        return Failure(type(e).__name__, final=True)
    if not answer.is_good:
        again = answer.status in _AGAIN or answer.status >= _SERVER
        return Failure(_told(answer), final=not again, alone=True)
    return Failure(refusal, final=True) if refusal else None


def _told(answer: Answer) -> str:
    """In our own words: what a server writes beside the number could be anything."""
    phrase = f" {HTTPStatus(answer.status).phrase}" if answer.status in set(HTTPStatus) else ""
    moved = ", and beat follows nobody elsewhere: write the URL that it leads to"
    return f"it answers {answer.status}{phrase}{moved if answer.leads_elsewhere else ''}"


def _line(error: object) -> str:
    return " ".join(str(error).split())[:_LONGEST]
