"""`beat web` and `beat run --web` as operators meet them: an address, signals, a Redis that goes, refusals."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
from redis import Redis

from beat.dev import embedded
from tests.process.commands import called, environment
from tests.support.facts import in_time, wait_until
from tests.support.files import lay_out
from tests.support.process_pool import ROOT, logged
from tests.support.schedulers import TASKS, Beat, Started
from tests.support.scraping import free_port, get

if TYPE_CHECKING:
    from pathlib import Path

    from beat.dev.embedded import PrivateRedis

NOWHERE = "redis://127.0.0.1:1/0"
SERVED = re.compile(r"the web UI is served at http://127\.0\.0\.1:(\d+)/")


class Web(Beat):
    """One `beat web` in a process of its own."""

    def __init__(self, cwd: Path, *arguments: str, **environ: str) -> None:
        self._log = cwd / f"web-{id(self)}.log"
        self.process = logged(self._log, ["beat", "web", "--port", "0", *arguments], cwd, environment(**environ))

    @property
    def port(self) -> int:
        """Where it is, once it has said so."""
        return int(wait_until(lambda: SERVED.findall(self.log), what=lambda: self.log)[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_it_says_where_it_is_answers_and_ends_when_it_is_told_to(
    number: int, home: Path, server: PrivateRedis, redis: Redis
) -> None:
    redis.flushall()
    with Web(home, "--redis-url", server.url) as web:
        answer = get(web.port, "/")
        assert (answer.status, "<title>beat" in answer.text) == (200, True)
        began = time.monotonic()
        web.process.send_signal(number)
        assert web.process.wait(30) == 0
        in_time(time.monotonic() - began, 5)
    assert len(web.log.splitlines()) == 1


def test_where_machines_read_its_line_is_theirs(home: Path) -> None:
    with Web(home, "--redis-url", NOWHERE, BEAT_LOG_FORMAT="json", BEAT_WEB_PATH="/ops") as web:
        line = json.loads(wait_until(lambda: web.log, what=lambda: web.log))
        assert (line["event"], line["address"]) == ("page_served", f"http://127.0.0.1:{web.port}/ops/")
        assert get(web.port, "/ops/").status == 503


def test_it_finds_the_redis_of_beat_dev(home: Path) -> None:
    with embedded.start(home / embedded.DIRECTORY) as private, Web(home) as web:
        assert get(web.port, "/").status == 200
        web.says(private.url)


def test_a_redis_that_goes_is_told_and_one_that_comes_is_found(home: Path) -> None:
    url = f"unix://{home}/redis/redis.sock?db=0"
    with Web(home, "--redis-url", url) as web:
        assert "Redis does not answer." in get(web.port, "/").text
        with embedded.start(home / "redis") as private:
            assert private.url == url
            assert get(web.port, "/").status == 200
            private.kill()
            answer = get(web.port, "/")
            assert (answer.status, "Redis does not answer." in answer.text, "Since" in answer.text) == (503, True, True)
        assert web.end() == 0
    assert len(web.log.splitlines()) == 1


def test_who_waits_for_a_redis_that_hangs_does_not_keep_it_from_ending(home: Path) -> None:
    with embedded.start(home / "redis") as private, Web(home, "--redis-url", private.url) as web:
        assert get(web.port, "/").status == 200
        with Redis.from_url(private.url) as client:
            pid = client.info("server")["process_id"]
        os.kill(pid, signal.SIGSTOP)
        try:
            with socket.create_connection(("127.0.0.1", web.port)) as asking:
                asking.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                began = time.monotonic()
                assert web.end() == 0
                in_time(time.monotonic() - began, 5)  # two, and what a busy machine adds
        finally:
            os.kill(pid, signal.SIGCONT)
    assert "Traceback" not in web.log


STRANGE = [
    b"\x16\x03\x01\x02\x00",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n",
    b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"  # noqa: ISC004 (one request)
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n",
]


def test_what_is_no_http_and_what_nobody_would_send_is_not_worth_a_line(home: Path) -> None:
    with Web(home, "--redis-url", NOWHERE) as web:
        for words in STRANGE:
            with socket.create_connection(("127.0.0.1", web.port)) as line:
                line.sendall(words)
                line.shutdown(socket.SHUT_WR)
                line.settimeout(10)
                answered = line.recv(200)
            assert b" 500 " not in answered
        assert get(web.port, "/").status == 503
        assert web.end() == 0
    assert len(web.log.splitlines()) == 1


REFUSED = [
    (["--host", "0.0.0.0"], {}, "BEAT_WEB_TOKEN or BEAT_WEB_USERS"),  # noqa: S104 (it is refused)
    (["--host", "no.such.host.invalid"], {"BEAT_WEB_TOKEN": "x" * 16}, "cannot be served at no.such.host.invalid"),
    (["--port", "70000"], {}, "must be a whole number (0 to 65,535)"),
    ([], {"BEAT_WEB_TOKEN": "short"}, "BEAT_WEB_TOKEN is no token"),
    ([], {"BEAT_WEB_USERS": "ann:elevenchars"}, "BEAT_WEB_USERS has a password that is too short: write 12 characters"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_cannot_be_is_one_sentence(number: int, home: Path) -> None:
    arguments, environ, words = REFUSED[number]
    done = called("web", *arguments, cwd=home, **environ)
    assert (done.returncode, words in done.stderr.decode()) == (78, True), done.stderr
    assert b"elevenchars" not in done.stderr + done.stdout
    assert b"Traceback" not in done.stderr


def test_a_port_that_is_taken_is_told_before_anything_ticks(home: Path) -> None:
    lay_out(home, {"tasks.py": TASKS})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for command in (["web", "--port", port], ["run", "tasks", "--web", "--web-port", port]):
            done = called(*command, cwd=home, BEAT_REDIS_URL=NOWHERE)
            assert (done.returncode, b"another process is there" in done.stderr) == (78, True), done.stderr
            assert b"has started" not in done.stderr


def test_without_its_libraries_it_says_how_to_get_them(home: Path) -> None:
    lay_out(home, {"sitecustomize.py": "import sys\nsys.modules['uvicorn'] = None\n", "tasks.py": TASKS})
    for command in (["web"], ["run", "tasks", "--web"]):
        path = f"{ROOT}{os.pathsep}{home}"
        with Started(home, sys.executable, "-m", "beat", *command, PYTHONPATH=path) as started:
            assert started.process.wait(30) == 78
        assert "pip install 'rq-beat[web]'" in started.log


def test_the_page_is_served_beside_a_beat_whose_ticks_no_load_holds_up(
    home: Path, server: PrivateRedis, redis: Redis
) -> None:
    lay_out(home, {"tasks.py": TASKS})
    redis.flushall()
    port = free_port()
    with Beat(home, server.url, "--web", "--web-port", str(port)) as beat:
        beat.says(f"the web UI is served at http://127.0.0.1:{port}/")
        beat.says("fired tick")
        stop = threading.Event()
        crowd = [threading.Thread(target=_ask, args=(port, stop)) for _ in range(8)]
        for each in crowd:
            each.start()
        before = len(_lateness(beat))
        wait_until(lambda: len(_lateness(beat)) >= before + 4, what=lambda: beat.log)
        stop.set()
        for each in crowd:
            each.join()
        assert sorted(_lateness(beat)[before:])[1] < 500, (
            beat.log
        )  # the second best of four: others use this machine, too
        assert get(port, "/").status == 200
        assert beat.end() == 0
    assert "Traceback" not in beat.log


def _ask(port: int, stop: threading.Event) -> None:
    while not stop.is_set():
        get(port, "/")


def _lateness(beat: Beat) -> list[int]:
    return [int(ms) for ms in re.findall(r"fired tick .* (\d+) ms after", beat.log)]
