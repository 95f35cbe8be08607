"""A bare socket to Redis: which URLs it goes to, and what it makes of the replies."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from redis.connection import parse_url

from beat.config import redis_url
from beat.storage import bare_client
from beat.storage.bare_client import Place, Refused, line, place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

URLS = {
    "redis://localhost:6379/0": Place(("localhost", 6379), ()),
    "redis://cache": Place(("cache", 6379), ()),
    "redis://cache/": Place(("cache", 6379), ()),
    "redis://cache:7000/10": Place(("cache", 7000), (("SELECT", "10"),)),
    "redis://cache?db=3": Place(("cache", 6379), (("SELECT", "3"),)),
    "redis://[::1]:7000/0": Place(("::1", 7000), ()),
    "redis://:p%40ss@cache/2": Place(("cache", 6379), (("AUTH", "p@ss"), ("SELECT", "2"))),
    "redis://ann:pass@cache": Place(("cache", 6379), (("AUTH", "ann", "pass"),)),
    "redis://cache?socket_timeout=9": Place(("cache", 6379), ()),
    "unix:///run/redis.sock": Place("/run/redis.sock", ()),
    "unix://ann:pass@/a%20b.sock?db=4": Place("/a b.sock", (("AUTH", "ann", "pass"), ("SELECT", "4"))),
    "rediss://cache/1": Place(("cache", 6379), (("SELECT", "1"),), {}),
    "rediss://cache?ssl_cert_reqs=none": Place(("cache", 6379), (), {"ssl_cert_reqs": "none"}),
}


@pytest.mark.parametrize("url", URLS)
def test_a_url_is_understood_as_redis_py_does(url: str) -> None:
    assert redis_url.problem(url) == ""
    found = place(url)
    assert found == URLS[url]
    theirs = parse_url(url)  # type: ignore[no-untyped-call]
    greeting = {words[0]: words[1:] for words in found.greeting}
    assert found.address == (theirs.get("path") or (theirs["host"], theirs.get("port", 6379)))
    assert "".join(greeting.get("SELECT", "0")) == str(theirs.get("db", 0))
    assert greeting.get("AUTH", ()) == tuple(theirs[name] for name in ("username", "password") if name in theirs)


@pytest.mark.parametrize(
    "url", ["redis://cache?client_name=a", "rediss://cache?ssl_certfile=a.pem", "rediss://cache?ssl_cert_reqs=optional"]
)
def test_what_it_does_not_understand_is_left_to_redis_py(url: str) -> None:
    assert place(url) is None


def test_a_place_does_not_show_its_password() -> None:
    assert "hunter2" not in repr(place("redis://:hunter2@cache"))


@contextmanager
def answering(path: Path, reply: bytes) -> Iterator[Place]:
    """A server that says one thing, and hangs up."""

    def serve() -> None:
        with door.accept()[0] as client:
            client.recv(4096)
            client.sendall(reply)

    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield Place(str(path), ())
        thread.join()


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (b"+OK\r\n", b"OK"),
        (b":12\r\n", 12),
        (b"$4\r\na\r\nb\r\n", b"a\r\nb"),
        (b"*0\r\n", []),
        (b"*2\r\n$1\r\na\r\n*1\r\n:3\r\n", [b"a", [3]]),
    ],
)
def test_replies_are_read(home: Path, reply: bytes, expected: object) -> None:
    with answering(home / "redis.sock", reply) as there, line(there, 5) as redis:
        assert redis.ask([("ANY",)]) == [expected]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (b"", "was closed"),
        (b"$10\r\nabc", "was closed"),
        (b"*2\r\n:1\r\n", "was closed"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak the protocol of Redis: b'HTTP/1.1 400"),
        (b"$abc\r\n", "does not speak"),
        (b"+" + b"a" * 20_000 + b"\r\n", "does not speak"),
    ],
)
def test_what_is_no_reply_is_an_error(home: Path, reply: bytes, words: str) -> None:
    with answering(home / "redis.sock", reply) as there, line(there, 5) as redis, pytest.raises(OSError, match=words):
        redis.ask([("ANY",)])


def test_a_refusal_takes_the_place_of_its_reply(home: Path) -> None:
    with answering(home / "redis.sock", b"+OK\r\n-ERR no\r\n:1\r\n") as there, line(there, 5) as redis:
        good, refused, last = redis.ask([("A",), ("B",), ("C",)])
    assert (good, last) == (b"OK", 1)
    assert isinstance(refused, Refused)
    assert str(refused) == "ERR no"


def test_who_is_not_let_in_is_refused(home: Path) -> None:
    with answering(home / "redis.sock", b"-WRONGPASS no\r\n") as there:
        closed = Place(there.address, (("AUTH", "x"),))
        with pytest.raises(Refused, match="WRONGPASS"), line(closed, 5):
            pass


def test_nobody_waits_for_ever(home: Path) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(home / "redis.sock"))
        door.listen()
        with line(Place(str(home / "redis.sock"), ()), 0.05) as redis, pytest.raises(TimeoutError):
            redis.ask([("PING",)])


def test_a_socket_that_is_not_there_is_an_error(home: Path) -> None:
    with pytest.raises(FileNotFoundError), bare_client.line(Place(str(home / "nowhere"), ()), 1):
        pass
