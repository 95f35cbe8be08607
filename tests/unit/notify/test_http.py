"""Messages on real sockets: in time whatever the other side does, through a proxy, and nowhere else."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import TYPE_CHECKING

import pytest

from beat.notify import http
from tests.support.facts import wait_until
from tests.support.stand_in import Answer, StandIn

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S, SHORT_S = 30.0, 0.2
ENDLESS_HANDSHAKE = b"\x16\x03\x03\x40\x00"  # a record of TLS, of 16 KB
ENDLESS_HEADERS = b"HTTP/1.1 200 OK\r\nX: "


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        for each in (name, name.upper()):
            monkeypatch.delenv(each, raising=False)


@contextlib.contextmanager
def trickling(beginning: bytes) -> Iterator[str]:
    """The host of a server that begins so, and then sends a byte now and then."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        gone = threading.Event()

        def trickle() -> None:
            client, _ = listening.accept()
            with client, contextlib.suppress(OSError):
                client.sendall(beginning)
                while not gone.wait(0.02):
                    client.sendall(b"x")

        thread = threading.Thread(target=trickle)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        gone.set()
        thread.join()


def post(url: str, patience_s: float = PATIENCE_S, longest: int = 0) -> http.Answer:
    return http.post(url, b"{}", {"X-Beat": "1"}, patience_s, longest=longest)


def test_no_more_of_the_answer_is_read_than_was_asked_for() -> None:
    with StandIn(lambda _: Answer(200, "x" * 100_000)) as server:
        assert post(server.url, longest=10) == (200, b"x" * 10)
        assert post(server.url) == (200, b"")
    assert [(each.path, each.body, each.headers["X-Beat"]) for each in server.requests] == [("/", b"{}", "1")] * 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 404, 429, 500, 599])
def test_whatever_is_answered_is_an_answer_and_nobody_is_followed(status: int) -> None:
    with StandIn(lambda _: Answer(status, "why", headers={"Location": "/elsewhere"})) as server:
        answer = post(f"{server.url}/a", longest=3)
    assert answer == (status, b"why")
    assert (answer.is_good, answer.leads_elsewhere) == (False, status < 400)
    assert ([each.path for each in server.requests], server.asked) == (["/a"], 0)


@pytest.mark.parametrize(
    ("scheme", "beginning"),
    [("http", ENDLESS_HEADERS), ("https", ENDLESS_HANDSHAKE)],
    ids=["an answer", "a handshake"],
)
def test_who_sends_a_byte_now_and_then_is_left_in_time(scheme: str, beginning: bytes) -> None:
    with trickling(beginning) as host, pytest.raises(TimeoutError):
        post(f"{scheme}://{host}/", SHORT_S)


def test_a_body_that_does_not_end_is_left_in_time() -> None:
    with trickling(b"HTTP/1.1 200 OK\r\n\r\n") as host, pytest.raises(TimeoutError):
        post(f"http://{host}/", SHORT_S, longest=100_000)


def test_a_proxy_that_does_not_end_its_answer_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with trickling(ENDLESS_HEADERS) as host:
        monkeypatch.setenv("https_proxy", f"http://{host}")
        with pytest.raises(TimeoutError):
            post("https://hooks.example.com/", SHORT_S)


def test_the_environment_names_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with StandIn() as proxy, StandIn() as near:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", near.host)
        assert post("http://hooks.example.com/a").is_good
        assert post(f"{near.url}/b").is_good
    assert [each.path for each in proxy.requests] == ["http://hooks.example.com/a"]
    assert [each.path for each in near.requests] == ["/b"]


def test_what_does_not_speak_tls_is_an_error_of_its_own() -> None:
    with StandIn() as server, pytest.raises(ssl.SSLError):
        post(f"https://{server.host}/")


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/", "data:,x"])
def test_there_is_no_other_way_than_http(url: str) -> None:
    with pytest.raises(OSError, match="unknown url type"):
        post(url)


def test_when_all_is_said_nobody_watches() -> None:
    def watching() -> int:
        return sum(isinstance(each, threading.Timer) for each in threading.enumerate())

    before = watching()
    with StandIn() as server:
        post(server.url)
    wait_until(lambda: watching() <= before, PATIENCE_S / 2)
