"""Channels on real sockets and real processes: what they are sent, and what beat says when they do not take it."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import sys
import threading
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from beat.notify.channels import Channel
from beat.notify.delivery import Caller, NotTaken, send
from tests.support.facts import wait_until
from tests.support.stand_in import StandIn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FACTS = {"incident": "r.run.report.1-0", "state": "opened", "text": "report failed", "schedule": "report"}
KEY = "s"
SHORT = timedelta(milliseconds=200)


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn() as made:
        yield made


def why(channel: Channel) -> str:
    with pytest.raises(NotTaken) as caught:
        send(channel, FACTS)
    return str(caught.value)


def test_a_webhook_is_sent_all_of_it_signed(server: StandIn) -> None:
    assert send(Channel("ops", "webhook", url=f"{server.url}/a?b=c", secret=KEY), FACTS) == "answered 200"
    [request] = server.requests
    assert (request.path, request.json) == ("/a?b=c", FACTS)
    assert request.headers["X-Beat-Incident"] == "r.run.report.1-0"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["X-Beat-Signature"] == f"sha256={hmac.new(b's', request.body, hashlib.sha256).hexdigest()}"


def test_a_slack_webhook_is_sent_the_sentence(server: StandIn) -> None:
    send(Channel("ops", "slack", url=server.url), {**FACTS, "text": "report failed: <!channel> & more"})
    [request] = server.requests
    assert (request.path, request.json) == ("/", {"text": "report failed: &lt;!channel&gt; &amp; more"})
    assert "X-Beat-Signature" not in request.headers


@pytest.mark.parametrize(
    ("status", "words"),
    [(500, "answered 500"), (404, "answered 404"), (302, "answered 302, and redirects are not followed")],
)
def test_what_is_not_taken_is_said_and_nothing_is_followed(server: StandIn, status: int, words: str) -> None:
    server.answer = lambda _: status
    assert why(Channel("ops", "webhook", url=server.url)) == words
    assert len(server.requests) == 1


def test_nobody_there_is_said_without_the_url() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert (
        why(Channel("ops", "webhook", url=f"http://127.0.0.1:{port}/hunter2"))
        == "ConnectionRefusedError: Connection refused"
    )


def test_a_server_that_never_answers_is_left_in_time(server: StandIn) -> None:
    done = threading.Event()
    server.answer = lambda _: 200 if done.wait(30) else 0
    assert why(Channel("ops", "webhook", url=server.url, timeout=SHORT)) == "took longer than 0.2 s"
    done.set()


def test_a_server_that_answers_a_byte_at_a_time_is_left_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle() -> None:
            client, _ = listening.accept()
            with client, suppress(OSError):
                client.sendall(b"HTTP/1.1 200 OK\r\n")
                while not gone.wait(0.02):
                    client.sendall(b"X: y\r\n")

        gone = threading.Event()
        thread = threading.Thread(target=trickle)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        assert why(Channel("ops", "webhook", url=url, timeout=SHORT)) == "took longer than 0.2 s"
        gone.set()
        thread.join()


def test_a_host_that_is_no_name_is_said_without_the_url() -> None:
    assert why(Channel("ops", "webhook", url="http://hooks..example.com/hunter2")) == "UnicodeError: cannot be reached"


def test_what_does_not_speak_http_is_said_without_its_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            client, _ = listening.accept()
            with client:
                client.recv(65536)
                client.sendall(b"hunter2\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        found = why(Channel("ops", "webhook", url=f"http://127.0.0.1:{listening.getsockname()[1]}"))
        thread.join()
    assert found == "did not answer in HTTP: BadStatusLine"


def command(code: str, *more: str, timeout: timedelta = timedelta(seconds=30)) -> Channel:
    return Channel("ops", "command", command=(sys.executable, "-c", code, *more), timeout=timeout)


def test_a_command_is_given_the_alert_and_the_incident_and_no_shell(tmp_path: Path) -> None:
    code = "import os, sys; open(sys.argv[1], 'w').write(os.environ['BEAT_INCIDENT'] + sys.argv[2] + sys.stdin.read())"
    assert send(command(code, str(tmp_path / "said"), "$HOME;"), FACTS) == "ended with 0"
    assert (tmp_path / "said").read_text() == "r.run.report.1-0$HOME;" + json.dumps(FACTS)


def test_a_command_that_fails_says_why() -> None:
    assert (
        why(command("import sys; print('no pager\\nhere', file=sys.stderr); sys.exit(3)"))
        == "ended with 3: no pager here"
    )
    assert why(Channel("ops", "command", command=("/nowhere/page",))) == "cannot be started: No such file or directory"


def test_a_command_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    fifo = tmp_path / "held"
    code = f"import subprocess, sys; subprocess.run(['sleep', '60'], stdout=open({str(fifo)!r}, 'w'))"
    assert why(command(code, timeout=timedelta(seconds=1))) == "took longer than 1 s, and was killed"


# --- functions -------------------------------------------------------------------------------------------------------


def test_a_function_is_called_with_the_alert() -> None:
    heard: list[Any] = []
    assert Caller(Channel("f", "function", function=heard.append)).send(FACTS) == "returned"
    assert heard == [FACTS]


def test_a_function_that_raises_has_not_taken_it() -> None:
    def page(_: Any) -> None:
        raise KeyError("no\nuser")

    with pytest.raises(NotTaken, match=r"raised KeyError: 'no\\nuser'"):
        Caller(Channel("f", "function", function=page)).send(FACTS)


class Hanging:
    """A function that has not returned when its time is over, until it may go on; its caller was left with FACTS."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.may_go_on = threading.Event()
        self.caller = Caller(Channel("f", "function", function=self._page, timeout=SHORT))
        with pytest.raises(NotTaken, match=r"took longer than 0\.2 s"):
            self.caller.send(FACTS)

    def _page(self, alert: Any) -> None:
        self.calls.append(alert)
        self.may_go_on.wait(30)


def test_a_function_that_hangs_is_not_called_again_before_it_returns() -> None:
    hanging = Hanging()
    with pytest.raises(NotTaken, match="is still at an earlier alert"):
        hanging.caller.send(FACTS)
    hanging.may_go_on.set()
    assert len(hanging.calls) == 1


def test_a_function_that_returned_after_its_time_has_taken_it_and_is_not_called_again() -> None:
    hanging, other = Hanging(), {**FACTS, "incident": "another"}
    hanging.may_go_on.set()

    def is_taken() -> bool:
        with suppress(NotTaken):
            return hanging.caller.send(other) == "returned"
        return False

    wait_until(is_taken)
    assert hanging.caller.send(FACTS) == "returned"
    assert hanging.calls == [FACTS, other]
