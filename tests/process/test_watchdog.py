"""A beat of which a thread hangs ends; one that was stopped, or waits for Redis, lives on. And what systemd hears."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from beat.dev import embedded
from beat.timing import clock
from tests.resilience.proxy import Proxy
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.schedulers import TASKS, Beat, Started, seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from beat.dev.embedded import PrivateRedis

LIMIT_S = 3
SHORT = f"""
from beat.engine import systemd, watchdog
systemd.TURN_S = 0.2
watchdog.END_S, watchdog.EXCHANGES, watchdog.LONGEST_TURN_S, watchdog.PATIENCE = {LIMIT_S}, 0, 1, 1
from beat.cli import main
main()
"""
HANGS = """
import threading
import time
from beat import periodic

began = []

def rests(day):
    {how}

@periodic(every="1s", exclude=rests)
def tick(): ...
"""
WAYS = {"waits": "threading.Event().wait()", "spins": "while True: pass"}
SLOW_AT_FIRST = """
    if not began:
        for n in range(15):
            began.append(print(f"step {n}", flush=True))
            time.sleep(0.1)
    return False
"""
HOUSEKEEPER_HANGS = f"""
import threading
from beat.engine.run_tracker import Watcher
Watcher.turn = lambda self: threading.Event().wait()
{SHORT}
"""


@pytest.fixture
def here(home: Path) -> Path:
    return lay_out(home, {"tasks.py": TASKS})


def short(here: Path, url: str, *arguments: str, code: str = SHORT, **environment: str) -> Started:
    """A beat whose watchdog has little patience."""
    return Started(here, sys.executable, "-c", code, "run", "tasks", *arguments, BEAT_REDIS_URL=url, **environment)


def lives_on(beat: Beat, redis: Any) -> None:
    """It fires for longer than its watchdog waits."""
    until = clock.text(clock.at(seconds_of(redis) + LIMIT_S + 2))
    wait_until(lambda: (redis.hget("beat:schedule:tick", "last_run") or "") >= until, what=lambda: beat.log)
    assert beat.process.poll() is None
    assert "hangs" not in beat.log
    assert beat.end() == 0


@pytest.mark.parametrize("how", WAYS)
def test_a_beat_whose_ticker_hangs_says_so_and_ends_with_70(
    here: Path, server: PrivateRedis, redis: Any, how: str
) -> None:
    lay_out(here, {"tasks.py": HANGS.format(how=WAYS[how])})
    with short(here, server.url) as beat:
        assert beat.process.wait(30) == 70
    words = [
        "ERROR   the ticker has been at one step for N s: it seems to hang",
        "ERROR   the ticker hangs, for N s now: this beat ends, and its supervisor should start another",
        "has stopped; 0 ticks fired",
        "\nthe ticker hangs, for N s now; where its threads are:\n",
        "\nbeat-ticker:\n",
        ", in rests\n",
    ]
    log = re.sub(r"for \d+ s\b", "for N s", beat.log)  # a busy machine looks late
    found = [log.find(each) for each in words]
    assert -1 not in found, beat.log
    assert found == sorted(found)
    assert "Traceback" not in beat.log
    assert redis.keys("beat:instance:*") == [], "the heartbeat is taken away"


def test_a_beat_whose_housekeeper_hangs_ends_too(here: Path, server: PrivateRedis, redis: Any) -> None:
    with short(here, server.url, code=HOUSEKEEPER_HANGS) as beat:
        assert beat.process.wait(30) == 70
    assert re.search(r"the housekeeper hangs, for \d+ s now: this beat ends", beat.log)
    assert "Watcher.turn = lambda" not in beat.log, "a program given with -c has no lines"
    assert "\nbeat-housekeeper:\n" in beat.log
    assert redis.exists("beat:schedule:tick")


def test_the_lines_are_json_where_that_is_asked_for(here: Path, server: PrivateRedis, redis: Any) -> None:
    lay_out(here, {"tasks.py": HANGS.format(how=WAYS["waits"])})
    with short(here, server.url, "--log-format", "json") as beat:
        assert beat.process.wait(30) == 70
    lines = [json.loads(line) for line in beat.log.splitlines() if line.startswith("{")]
    told = [line for line in lines if line["event"] in {"stuck", "hung"}]
    assert [(line["event"], line["thread"]) for line in told] == [("stuck", "ticker"), ("hung", "ticker")]
    assert told[1]["seconds"] >= LIMIT_S
    assert redis.exists("beat:schedule:tick")


def test_a_reader_of_the_log_who_hangs_too_keeps_nobody_from_ending(
    here: Path, server: PrivateRedis, redis: Any
) -> None:
    lay_out(here, {"tasks.py": HANGS.format(how="print('x' * 100_000); threading.Event().wait()")})
    command = [sys.executable, "-c", SHORT, "run", "tasks", "--redis-url", server.url]
    with subprocess.Popen(command, cwd=here, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.wait(30) == 70
    assert redis.exists("beat:schedule:tick")


def test_a_beat_that_was_stopped_for_long_lives_on(here: Path, server: PrivateRedis, redis: Any) -> None:
    lay_out(here, {"tasks.py": HANGS.format(how=SLOW_AT_FIRST)})
    with short(here, server.url) as beat:
        beat.says("step 5")
        beat.freeze()
        time.sleep(2 * LIMIT_S)  # this is what is tested: time that passes while nobody works
        beat.thaw()
        lives_on(beat, redis)


def test_a_beat_lives_on_while_redis_is_away(here: Path) -> None:
    with embedded.start(here / "redis") as private, short(here, private.url) as beat:
        beat.says("fired tick")
        private.kill()
        beat.says("Redis does not work for us")
        time.sleep(2 * LIMIT_S)  # this is what is tested: time that passes in vain
        assert beat.process.poll() is None
        with embedded.start(here / "redis"):
            beat.says("Redis works again")
            assert "hangs" not in beat.log
            assert beat.end() == 0


def test_a_beat_lives_on_while_redis_does_not_answer(here: Path, server: PrivateRedis, redis: Any) -> None:
    with Proxy(server.url) as proxy, short(here, f"{proxy.url}?socket_timeout=1&socket_connect_timeout=1") as beat:
        beat.says("fired tick")
        proxy.freeze()
        beat.says("Redis does not work for us")
        time.sleep(2 * LIMIT_S)  # this is what is tested: time that passes in vain
        proxy.thaw()
        beat.says("Redis works again")
        lives_on(beat, redis)


def test_a_long_interval_is_no_hanging(here: Path, server: PrivateRedis, redis: Any) -> None:
    lay_out(here, {"tasks.py": TASKS.replace("1s", "52w")})
    with short(here, server.url, BEAT_INTERVAL="10s") as beat:
        beat.says("registered")
        seen = wait_until(lambda: last_pass(redis))
        wait_until(lambda: last_pass(redis) > seen)
        assert beat.end() == 0
    assert "hang" not in beat.log


def last_pass(redis: Any) -> str:
    [name] = redis.keys("beat:instance:*") or [""]
    return str(redis.hget(name, "last_pass") or "")


# --- systemd ---------------------------------------------------------------------------------------------------------


FINE = "STATUS=1 schedule of its own code"


class Systemd:
    """The socket that a service manager listens on."""

    def __init__(self, path: Path) -> None:
        self.environment = {"NOTIFY_SOCKET": str(path)}
        self.heard: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(0)

    def hears(self, line: str) -> bool:
        """Whether that has been said by now."""
        while True:
            try:
                self.heard += self._socket.recv(4096).decode().split("\n")
            except BlockingIOError:
                return line in self.heard

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd(here: Path) -> Iterator[Systemd]:
    made = Systemd(here / "notify")
    yield made
    made.close()


def test_systemd_hears_when_it_is_ready_alive_and_stopping(
    here: Path, server: PrivateRedis, redis: Any, systemd: Systemd
) -> None:
    with Beat(here, server.url, **systemd.environment, WATCHDOG_USEC="1000000") as beat:
        wait_until(lambda: systemd.hears("READY=1"))
        assert redis.exists("beat:schedule:tick"), "it is registered by then"
        systemd.heard.clear()
        wait_until(lambda: systemd.hears("WATCHDOG=1") and systemd.heard.count("WATCHDOG=1") >= 3)
        assert not systemd.hears("STOPPING=1")
        assert beat.end() == 0
    assert systemd.hears("STOPPING=1")
    assert FINE in systemd.heard


def test_systemd_hears_that_a_beat_waits_for_redis(here: Path, systemd: Systemd) -> None:
    away = "STATUS=Redis does not work for us: waiting for it"
    with Beat(here, f"unix://{here}/redis/redis.sock", **systemd.environment, WATCHDOG_USEC="6000000"):
        wait_until(lambda: systemd.hears(away))
        systemd.heard.clear()
        wait_until(lambda: systemd.hears("WATCHDOG=1"))
        assert not systemd.hears("READY=1")
        with embedded.start(here / "redis") as private:
            wait_until(lambda: systemd.hears("READY=1"))
            wait_until(lambda: systemd.hears(FINE))
            private.kill()
            systemd.heard.clear()
            wait_until(lambda: systemd.hears(away))
            systemd.heard.clear()
            wait_until(lambda: systemd.hears("WATCHDOG=1") and systemd.heard.count("WATCHDOG=1") >= 3)


def test_the_watchdog_of_systemd_is_not_fed_while_the_ticker_hangs(
    here: Path, server: PrivateRedis, redis: Any, systemd: Systemd
) -> None:
    lay_out(here, {"tasks.py": HANGS.format(how="print('it hangs', flush=True); " + WAYS["waits"])})
    with Beat(here, server.url, **systemd.environment, WATCHDOG_USEC="1000000") as beat:
        beat.says("it hangs")
        time.sleep(2)  # longer than systemd would have waited
        systemd.hears("WATCHDOG=1")
        systemd.heard.clear()
        time.sleep(3)  # this is what is tested: that nothing comes
        assert not systemd.hears("WATCHDOG=1")
        assert beat.process.poll() is None
    assert redis.exists("beat:schedule:tick")


def test_systemd_hears_why_a_beat_ends(here: Path, server: PrivateRedis, redis: Any, systemd: Systemd) -> None:
    lay_out(here, {"tasks.py": HANGS.format(how=WAYS["waits"])})
    with short(here, server.url, **systemd.environment) as beat:
        assert beat.process.wait(30) == 70
    assert systemd.hears("STOPPING=1")
    assert re.fullmatch(r"STATUS=the ticker hangs, for \d+ s now", systemd.heard[-1])
    assert redis.exists("beat:schedule:tick")


def test_a_socket_that_nobody_listens_on_is_no_trouble(here: Path, server: PrivateRedis, redis: Any) -> None:
    with Beat(here, server.url, NOTIFY_SOCKET=f"{here}/nobody", WATCHDOG_USEC="1000000") as beat:
        beat.says("fired tick")
        assert beat.end() == 0
    assert "WARN" not in beat.log
    assert "ERROR" not in beat.log
    assert redis.exists("beat:schedule:tick")
