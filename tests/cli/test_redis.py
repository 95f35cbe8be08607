"""`beat redis`: what a terminal sees, what a pipe gets, and how it ends."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis

from beat.cli.redis import Status, plain, raw, shown, text
from beat.dev import embedded
from tests.process.commands import called, on_a_terminal

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

NASTY = b'\xff\x1b[31m\n\r\t\a\b\0"\\\xc3\xa9'


@pytest.fixture(scope="module")
def project() -> Iterator[Path]:
    """A directory in which a private Redis runs, as `beat dev` would have it."""
    directory = Path(tempfile.mkdtemp(prefix="beat-"))
    (directory / "pyproject.toml").write_text("", encoding="utf-8")
    with embedded.start(directory / embedded.DIRECTORY):
        yield directory
    shutil.rmtree(directory)


@pytest.fixture
def url(project: Path) -> Iterator[str]:
    found = embedded.running(project / embedded.DIRECTORY)
    assert found
    yield found
    with redis.Redis.from_url(found) as client:
        client.flushall()


@pytest.fixture
def client(url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(url) as connected:
        yield connected


def piped(*words: str | bytes, cwd: Path, **environ: str) -> subprocess.CompletedProcess[bytes]:
    done = called("redis", *words, cwd=cwd, **environ)
    assert b"Traceback" not in done.stderr
    return done


def said(*words: str, cwd: Path, **environ: str) -> tuple[int, str]:
    """The exit code and the words of a command that has nothing to give."""
    done = piped(*words, cwd=cwd, **environ)
    assert done.stdout == b""
    return done.returncode, done.stderr.decode().strip()


def seen(*words: str, cwd: Path) -> str:
    """All that a terminal receives."""
    code, received = on_a_terminal("redis", *words, cwd=cwd)
    assert code == 0, received
    return received


# ---- the forms of a reply


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Status(b"OK"), "OK"),
        (b"OK", '"OK"'),
        (b"", '""'),
        (12, "(integer) 12"),
        (None, "(nil)"),
        ([], "(empty array)"),
        ([b"last_run", b"x"], '1) "last_run"\n2) "x"'),
        ([b"a", [b"b", [b"c", b"d"]], b"e"], '1) "a"\n2) 1) "b"\n   2) 1) "c"\n      2) "d"\n3) "e"'),
        ([redis.ResponseError("ERR x"), None, []], "1) (error) ERR x\n2) (nil)\n3) (empty array)"),
        ([*[None] * 9, [b"a", b"b"]], "".join(f" {n}) (nil)\n" for n in range(1, 10)) + '10) 1) "a"\n    2) "b"'),
        (NASTY, r'"\xff\x1b[31m\n\r\t\a\b\x00\"\\\xc3\xa9"'),
        (Status(b"\x1b[2J"), r"\x1b[2J"),
        ([redis.ResponseError("\x1b[2J")], r"1) (error) \x1b[2J"),
    ],
)  # fmt: skip
def test_a_terminal_sees_what_redis_cli_shows(reply: object, expected: str) -> None:
    assert shown(reply) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Status(b"OK"), b"OK"),
        (NASTY, NASTY),
        (12, b"12"),
        (None, b""),
        ([b"a", [b"b", 3], None, b"c"], b"a\nb\n3\n\nc"),
    ],
)
def test_a_pipe_gets_bare_values(reply: object, expected: bytes) -> None:
    assert raw(reply) == expected


def test_text_for_people_cannot_steer_the_terminal() -> None:
    assert text(b"# Server\r\nname:\x1b[31mred\xff\r\n") == "# Server\nname:\\x1b[31mred\\xff"


def test_json_has_what_redis_has() -> None:
    reply = {b"a": [1, 1.5, float("inf"), None, True, {b"x"}], b"\xff": redis.ResponseError("ERR x")}
    expected = {"a": [1, 1.5, "inf", None, True, ["x"]], "\\xff": {"error": "ERR x"}}
    assert plain(reply) == expected


# ---- the command


def test_a_hash_on_a_terminal_and_in_a_pipe(project: Path, client: redis.Redis) -> None:
    client.hset("beat:schedule:hello", mapping={"last_run": "2026-11-16T09:00:00Z", "run_count": 3})
    words = ("--", "HGETALL", "beat:schedule:hello")
    assert seen(*words, cwd=project) == '1) "last_run"\n2) "2026-11-16T09:00:00Z"\n3) "run_count"\n4) "3"\n'
    assert piped(*words, cwd=project).stdout == b"last_run\n2026-11-16T09:00:00Z\nrun_count\n3\n"
    document = json.loads(piped("--json", *words, cwd=project).stdout)
    assert document == {"schema_version": 1, "reply": {"last_run": "2026-11-16T09:00:00Z", "run_count": "3"}}


def test_a_status_has_no_quotes_and_a_string_has(project: Path, client: redis.Redis) -> None:
    assert seen("SET", "a", "OK", cwd=project) == "OK\n"
    assert seen("GET", "a", cwd=project) == '"OK"\n'
    assert client.get("a") == b"OK"


def test_bytes_go_in_and_out_unchanged(project: Path, client: redis.Redis) -> None:
    value = NASTY.replace(b"\0", b"")  # no argument of a process can hold it
    piped(b"SET", b"\xfe", value, cwd=project)
    assert client.get(b"\xfe") == value
    assert piped(b"GET", b"\xfe", cwd=project).stdout == value + b"\n"


def test_what_looks_like_an_option_belongs_to_the_command(project: Path, client: redis.Redis) -> None:
    assert piped("RPUSH", "l", "-1", "--json", cwd=project).stdout == b"2\n"
    assert client.lrange("l", 0, -1) == [b"-1", b"--json"]


def test_a_wrong_option_before_the_command_is_ours_to_refuse(project: Path) -> None:
    code, words = said("--jsn", "PING", cwd=project)
    assert code == 2
    assert "--jsn" in words


def test_info_is_readable(project: Path) -> None:
    assert seen("info", "server", cwd=project).startswith("# Server\nredis_version:")


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_an_error_of_redis_is_one_line(project: Path, json_too: tuple[str, ...]) -> None:
    code, words = said(*json_too, "NONSENSE", "x", cwd=project)
    assert code == 1
    assert re.fullmatch(r"error: (ERR )?unknown command 'NONSENSE', with args beginning with: 'x'", words)


@pytest.mark.parametrize("word", ["SUBSCRIBE", "psubscribe", "SSUBSCRIBE", "monitor", "SYNC", "PSYNC"])
def test_what_never_ends_is_refused(project: Path, word: str) -> None:
    code, words = said(word, "x", cwd=project)
    assert code == 2
    assert f"{word.upper()} never ends, and this shows one reply: use redis-cli for it" in words


@pytest.mark.parametrize("words", [("HELLO", "3"), ("client", "reply", "off")])
def test_what_changes_the_connection_is_refused(project: Path, words: tuple[str, ...]) -> None:
    code, answer = said(*words, cwd=project)
    assert code == 2
    assert "changes the connection, which ends with this command" in answer


def test_no_command_is_a_mistake(project: Path) -> None:
    code, words = said(cwd=project)
    assert code == 2
    assert "there is no command to send: beat redis -- PING" in words


# ---- which Redis


def test_without_a_redis_there_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    nowhere = f"unix://{tmp_path}/none.sock"
    code, words = said("--redis-url", nowhere, "PING", cwd=tmp_path)
    assert code == 69
    assert words.startswith(f"error: no Redis answers at {nowhere}: ")
    assert words.endswith("; start one, or give --redis-url")


def test_a_url_that_is_set_wins_over_the_private_redis(project: Path) -> None:
    code, words = said("PING", cwd=project, BEAT_REDIS_URL=f"unix://{project}/none.sock")
    assert code == 69
    assert f"unix://{project}/none.sock" in words


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_a_wrong_password_is_not_shown(project: Path, url: str, json_too: tuple[str, ...]) -> None:
    wrong = url.replace("unix://", "unix://joe:hunter2@")
    code, words = said(*json_too, "--redis-url", wrong, "PING", cwd=project)
    assert code == 69
    assert "unix://joe:***@" in words
    assert "invalid username-password pair" in words
    assert "hunter2" not in words


def test_a_user_who_may_not_is_told_what(project: Path, url: str) -> None:
    piped("ACL", "SETUSER", "joe", "on", ">hunter2", "~*", "+get", cwd=project)
    code, words = said("--redis-url", url.replace("unix://", "unix://joe:hunter2@"), "SET", "a", "b", cwd=project)
    piped("ACL", "DELUSER", "joe", cwd=project)
    assert code == 69
    assert "unix://joe:***@" in words
    assert "has no permissions to run the 'set' command" in words
    assert "hunter2" not in words


@pytest.mark.parametrize("query", ["protocol=3", "protocol=2&socket_timeout=5"])
def test_the_url_does_not_change_what_is_shown(project: Path, url: str, query: str) -> None:
    assert seen("--redis-url", f"{url}&{query}", "CONFIG", "GET", "port", cwd=project) == '1) "port"\n2) "0"\n'


def test_a_url_that_redis_py_cannot_use_is_configuration(project: Path, url: str) -> None:
    code, words = said("--redis-url", f"{url}&colour=red", "PING", cwd=project)
    assert code == 78
    assert "colour" in words


def test_a_redis_that_hangs_does_not_hang_us(project: Path, url: str) -> None:
    code, words = said("--redis-url", f"{url}&socket_timeout=0.2", "BLPOP", "nothing", "0", cwd=project)
    assert code == 69
    assert words.endswith("does not answer in time")


def test_shutdown_is_its_own_reply(project: Path) -> None:
    with embedded.start(project / "other") as private:
        done = piped("--redis-url", private.url, "SHUTDOWN", cwd=project)
        assert (done.returncode, done.stderr) == (0, b"")
        assert embedded.running(project / "other") is None
