"""Slow clients and crowds keep the page from nobody: raw connections to a real server."""

from __future__ import annotations

import contextlib
import http.client
import socket
import statistics
import time
from typing import TYPE_CHECKING

import pytest
from starlette.responses import PlainTextResponse

from beat.web import deadline
from beat.web.server import Serving
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Receive, Scope, Send

ASK = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
HALF = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf"
LONG = ASK.replace(b" / ", b" /large ")
LARGE = 20_000_000


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads all that is sent; answers with much where much is asked for."""
    while (await receive()).get("more_body"):
        pass
    await PlainTextResponse("x" * (LARGE if scope["path"] == "/large" else 2))(scope, receive, send)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of a server that waits for a short while only."""
    monkeypatch.setattr(deadline, "_RECEIVE_S", 0.3)
    with Serving(app, "127.0.0.1", 0) as serving:
        yield serving.port


def test_who_asks_and_asks_again_is_answered() -> None:
    with Serving(app, "127.0.0.1", 0) as serving, _connected(serving.port) as asking:
        for _ in range(3):
            asking.sendall(ASK)
            assert _said(asking).startswith(b"HTTP/1.1 200")


def test_accepted_connections_send_without_delay() -> None:
    with Serving(app, "127.0.0.1", 0) as serving, _connected(serving.port) as asking:
        asking.sendall(ASK)
        assert _said(asking).startswith(b"HTTP/1.1 200")
        (connection,) = serving._server.server_state.connections  # noqa: SLF001 (nobody else knows)
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_kept_alive_connection_is_answered_within_milliseconds() -> None:
    taken = list[float]()
    with Serving(app, "127.0.0.1", 0) as serving:
        asking = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=10)
        for _ in range(20):
            began = time.perf_counter()
            asking.request("GET", "/")
            asking.getresponse().read()
            taken.append(time.perf_counter() - began)
        asking.close()
    assert statistics.median(taken) < 0.02, f"each answer took {statistics.median(taken) * 1000:.1f} ms"


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.1\r\nhost: x\r\n", HALF, ASK + b"G"],
    ids=["nothing", "half a head", "half a body", "and half of another"],
)
def test_nobody_is_waited_for_for_ever(port: int, sent: bytes) -> None:
    with _connected(port) as slow:
        slow.sendall(sent)
        wait_until(lambda: _has_ended(slow))


def test_a_byte_now_and_then_wins_no_time(port: int) -> None:
    with _connected(port) as slow:
        slow.settimeout(0.05)

        def is_cut_off() -> bool:
            slow.send(b"GET / HTTP/1.1\r\nx: " if not sent else b"x")
            sent.append("")
            return _has_ended(slow)

        sent: list[str] = []
        with contextlib.suppress(OSError):  # the end may be met by a byte that nobody takes
            wait_until(is_cut_off)
        assert len(sent) > 1


def test_an_answer_that_nobody_takes_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SEND_S", 1)
    with Serving(app, "127.0.0.1", 0) as serving, _connected(serving.port) as greedy:
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greedy.sendall(LONG)
        assert _said(greedy).startswith(b"HTTP/1.1 200")
        wait_until(lambda: not serving._server.server_state.connections)  # noqa: SLF001 (nobody else knows)


@pytest.mark.parametrize("sent", [b"", b"GET", HALF, LONG], ids=["nothing", "half a head", "half a body", "no ears"])
def test_who_is_slow_does_not_keep_it_from_ending(sent: bytes) -> None:
    with Serving(app, "127.0.0.1", 0) as serving, _connected(serving.port) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(sent)
        wait_until(lambda: serving._server.server_state.connections)  # noqa: SLF001 (nobody else knows)
        serving.stop()
        wait_until(lambda: not serving.is_alive)


def test_a_crowd_leaves_room_for_the_files_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "MOST_CONNECTIONS", 5)
    with Serving(app, "127.0.0.1", 0) as serving, contextlib.ExitStack() as crowd:
        within = [crowd.enter_context(_connected(serving.port)) for _ in range(5)]
        for each in within:
            each.sendall(ASK)
            assert _said(each).startswith(b"HTTP/1.1 200")
        beyond = crowd.enter_context(_connected(serving.port))
        wait_until(lambda: _has_ended(beyond))
        within[0].sendall(ASK)
        assert _said(within[0]).startswith(b"HTTP/1.1 200")


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def _said(connection: socket.socket) -> bytes:
    """A short answer to its end, or the beginning of a long one."""
    found = b""
    while not found.partition(b"\r\n\r\n")[2].startswith(b"xx") and (more := connection.recv(1000)):
        found += more
    return found


def _has_ended(connection: socket.socket) -> bool:
    """Whether the other side has; what it has said before is passed over."""
    try:
        return not connection.recv(1000)
    except TimeoutError:
        return False
    except ConnectionError:
        return True
