"""What a service manager hears: systemd's datagrams, on real sockets."""

from __future__ import annotations

import os
import secrets
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from beat.engine import systemd
from beat.engine.systemd import Notifier

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Manager:
    """A service manager that listens, and a clock that a test sets."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.now = 1000.0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address.replace("@", "\0", 1))
        self._socket.settimeout(0)

    def heard(self) -> list[str]:
        """What came since it was last asked."""
        found: list[str] = []
        while True:
            try:
                found.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return found

    def notifier(self, **environ: str) -> Notifier:
        return Notifier({"NOTIFY_SOCKET": self.address, **environ})

    def fed(self, watched: Notifier, seconds: float, silent_s: float = 0.0) -> int:
        """How often the watchdog is fed, if the main thread comes round as it should for so long."""
        end, heard = self.now + seconds, list[str]()
        while self.now < end:
            watched.alive(silent_s)
            heard += self.heard()  # a socket keeps ten messages
            self.now += watched.turn_s
        return heard.count("WATCHDOG=1")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    made = Manager(f"{home}/notify" if request.param == "path" else f"@beat-{secrets.token_hex(8)}")
    monkeypatch.setattr(systemd, "time", SimpleNamespace(monotonic=lambda: made.now))
    yield made
    made.close()


def test_what_is_told_arrives_as_one_message(manager: Manager) -> None:
    manager.notifier().tell("READY=1", "STATUS=fine")
    assert manager.heard() == ["READY=1\nSTATUS=fine"]


def test_a_status_is_told_when_it_is_news(manager: Manager) -> None:
    told = manager.notifier()
    for words in ("starting", "starting", "3 schedules", "starting"):
        told.status(words)
    assert manager.heard() == ["STATUS=starting", "STATUS=3 schedules", "STATUS=starting"]


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "relative/path"])
def test_without_a_socket_nothing_is_told(address: str) -> None:
    silent = Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000"})
    silent.tell("READY=1")
    silent.status("fine")
    silent.alive(0)
    assert silent.turn_s == 0.5


def test_a_socket_that_is_gone_is_no_error(home: Path) -> None:
    gone = Notifier({"NOTIFY_SOCKET": f"{home}/nowhere", "WATCHDOG_USEC": "1000000"})
    gone.tell("READY=1")
    gone.alive(0)


@pytest.mark.parametrize("seconds", [0.5, 2, 30])
def test_the_watchdog_is_fed_at_half_of_its_time(manager: Manager, seconds: float) -> None:
    fed = manager.fed(manager.notifier(WATCHDOG_USEC=str(int(seconds * 1e6))), 10 * seconds)
    assert 19 <= fed <= 45


def test_the_watchdog_of_another_process_is_not_fed(manager: Manager) -> None:
    usec = "2000000"
    assert manager.fed(manager.notifier(WATCHDOG_USEC=usec, WATCHDOG_PID="1"), 10) == 0
    assert manager.fed(manager.notifier(WATCHDOG_USEC=usec, WATCHDOG_PID=str(os.getpid())), 10) > 0


@pytest.mark.parametrize("usec", ["", "0", "-5", "soon", "²"])
def test_a_watchdog_that_never_bites_is_not_fed(manager: Manager, usec: str) -> None:
    assert manager.fed(manager.notifier(WATCHDOG_USEC=usec), 10) == 0


def test_while_a_thread_is_silent_the_watchdog_is_not_fed(manager: Manager) -> None:
    watched = manager.notifier(WATCHDOG_USEC="20000000")
    assert manager.fed(watched, 60, silent_s=9.0) > 0
    assert manager.fed(watched, 60, silent_s=11.0) == 0
    assert manager.fed(watched, 60) > 0
