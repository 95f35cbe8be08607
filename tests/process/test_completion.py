"""Completion in a shell: what the script of a shell asks, and what beat answers."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from beat.storage.keys import Keys
from tests.cli.test_command_line import SCRIPT
from tests.process.commands import called
from tests.support.facts import in_time

if TYPE_CHECKING:
    from redis import Redis

    from beat.dev.embedded import PrivateRedis

KEYS = Keys()
SHELL = shutil.which("bash")
BASH = r"""
eval "$(_BEAT_COMPLETE=bash_source beat)"
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
[[ "{words}" == *" " ]] && COMP_WORDS+=("") && COMP_CWORD=$((COMP_CWORD + 1))
_beat_completion beat
echo "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    return tmp_path


def known(redis: Redis, *ids: str, prefix: str = KEYS.prefix) -> None:
    redis.zadd(Keys(prefix).index("all"), dict.fromkeys(ids, 0))


def heard(line: str, cwd: Path, url: str, **environ: str) -> list[str]:
    """What a shell hears that asks for the end of a line."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_BEAT_COMPLETE": "bash_complete"}
    done = called(cwd=cwd, BEAT_REDIS_URL=url, **asked, **environ)
    assert (done.returncode, done.stderr) == (0, b"")
    return [each.removeprefix("plain,") for each in done.stdout.decode().split()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_beat(here: Path, shell: str) -> None:
    done = called(cwd=here, _BEAT_COMPLETE=f"{shell}_source")
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"_BEAT_COMPLETE={shell}_complete" in done.stdout.decode()


def test_commands_options_and_their_values_are_completed(here: Path, server: PrivateRedis) -> None:
    assert heard("beat re", here, server.url) == ["resume", "reschedule", "remove", "redis"]
    assert heard("beat list --over", here, server.url) == ["--overridden"]
    assert heard("beat list --state re", here, server.url) == ["retired"]
    assert heard("beat --redis-url redis://localhost:1 li", here, server.url) == ["list"]
    assert heard("beat nonsense x", here, server.url) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("beat show n", ["nightly", "noon"]),
        ("beat why nig", ["nightly"]),
        ("beat pause nightly no", ["noon"]),
        ("beat history --failed n", ["nightly", "noon"]),
        ("beat history --since ", []),
        ("beat list --after x", ["x"]),
        ("beat add --follows ni", ["nightly"]),
        ("beat show ", ["nightly", "noon", "x"]),
        ("beat show nobody", []),
        ("beat show *", []),
        ("beat why nightly ", []),
        ("beat verify no", ["noon"]),
        ("beat trigger no", ["noon"]),
        ("beat resume no", ["noon"]),
        ("beat reschedule no", ["noon"]),
        ("beat backfill no", ["noon"]),
        ("beat remove no", ["noon"]),
        ("beat run n", []),
    ],
)
def test_ids_are_completed_where_an_id_is_to_stand(
    here: Path, redis: Redis, server: PrivateRedis, line: str, expected: list[str]
) -> None:
    known(redis, "noon", "nightly", "x")
    assert heard(line, here, server.url) == expected


def test_ids_are_those_of_the_redis_and_the_prefix_that_are_set(here: Path, redis: Redis, server: PrivateRedis) -> None:
    known(redis, "nightly")
    known(redis, "another", prefix="app:")
    assert heard("beat show ", here, "redis://localhost:1", BEAT_PREFIX="app:") == []
    assert heard("beat show ", here, server.url, BEAT_PREFIX="app:") == ["another"]
    assert heard(f"beat show --redis-url {server.url} ni", here, "redis://localhost:1") == ["nightly"]


def test_of_very_many_ids_a_shell_hears_the_first(here: Path, redis: Redis, server: PrivateRedis) -> None:
    known(redis, *(f"customer_{n:05}" for n in range(10_000)))
    assert heard("beat show customer_01", here, server.url) == [f"customer_{n:05}" for n in range(1000, 1200)]


def test_a_redis_that_is_away_or_says_nothing_is_passed_over_in_silence(here: Path) -> None:
    assert heard("beat show n", here, f"unix://{here}/none.sock") == []
    assert heard("beat show n", here, "no url at all") == []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        assert heard("beat show n", here, f"redis://127.0.0.1:{silent.getsockname()[1]}") == []
        in_time(time.monotonic() - began, 5)  # it waits for half a second


@pytest.mark.skipif(SHELL is None, reason="there is no bash on this machine")
@pytest.mark.parametrize(
    ("words", "expected"), [("beat sho", "show"), ("beat show ni", "nightly"), ("beat show ", "nightly")]
)
def test_a_real_bash_completes(here: Path, redis: Redis, server: PrivateRedis, words: str, expected: str) -> None:
    known(redis, "nightly")
    done = subprocess.run(
        [SHELL or "", "--norc", "-c", BASH.format(words=words)],
        cwd=here,
        env={
            "PATH": f"{SCRIPT.parent}:/usr/bin:/bin",
            "PYTHONPATH": str(Path(__file__).parent.parent.parent),
            "BEAT_REDIS_URL": server.url,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout.strip(), done.stderr) == (expected, "")
