"""`beat doctor` as people and programs meet it: on a terminal, in a pipe, as JSON, without Redis."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis

from beat.dev import embedded
from tests.cli.test_command_line import beat, document, refused, without_colours
from tests.process.commands import on_a_terminal
from tests.support.files import lay_out
from tests.support.lines import MINUTE, NINE, Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def running() -> Iterator[Path]:
    """A directory in which a private Redis runs, as `beat dev` would have it."""
    directory = lay_out(Path(tempfile.mkdtemp(prefix="beat-")), {"pyproject.toml": ""})
    with embedded.start(directory / embedded.DIRECTORY):
        yield directory
    shutil.rmtree(directory)


@pytest.fixture
def redis(running: Path) -> Iterator[Redis]:
    url = embedded.running(running / embedded.DIRECTORY)
    assert url
    with Redis.from_url(url, decode_responses=True) as client:
        client.flushall()
        yield client


@pytest.fixture
def here(running: Path, redis: Redis) -> Path:
    """With a schedule that is late, for no scheduler is running."""
    book = Ledger("report").registered(NINE, NINE + MINUTE).fired(NINE + MINUTE)
    book.keep(redis, queue="mail", kept="1")
    redis.zadd("beat:due", {"report": 5})
    return running


def test_an_empty_redis_is_fine(redis: Redis, running: Path) -> None:
    assert redis.dbsize() == 0
    done = beat("doctor", cwd=running)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("0 problems, 0 warnings, ")


def test_a_problem_ends_with_1_and_has_its_remedy_below(here: Path) -> None:
    done = beat("doctor", cwd=here)
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if "no scheduler is running: nothing fires" in line)
    assert lines[at].split()[0] == "problem"
    assert lines[at + 1].strip() == "→ beat run app.tasks"
    assert [line for line in lines if not line.startswith(" ")][:-1] == [
        "Redis", "What it takes", "Beats", "Schedules", "Queues", "What stands in Redis", "Rights",
    ]  # fmt: skip


def test_piped_each_finding_is_one_line_without_colours(here: Path) -> None:
    done = beat("doctor", cwd=here)
    assert "\x1b" not in done.stdout
    words = ("ok", "note", "warning", "problem", "→")
    assert {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")} <= {*words}


@pytest.mark.parametrize("columns", [80, 200])
def test_on_a_terminal_it_fits(columns: int, here: Path) -> None:
    code, received = on_a_terminal("doctor", cwd=here, columns=columns)
    assert code == 1
    assert "\x1b[31m" in received  # red
    lines = without_colours(received).splitlines()
    own = [line for line in lines if "redis.sock" not in line]  # a path is not broken
    assert max(map(len, own)) <= columns
    assert "  problem" in "\n".join(lines)


def test_as_json_it_is_one_document(here: Path) -> None:
    found = document("doctor", cwd=here)
    assert found["sound"] is False
    assert found["counts"]["problem"] == sum(each["level"] == "problem" for each in found["findings"])
    late = next(each for each in found["findings"] if each["check"] == "late")
    assert late.keys() == {"group", "check", "level", "what", "remedy"}
    assert late["group"] == "schedules"
    assert late["remedy"] == "beat show report"


def test_without_redis_it_ends_with_69(tmp_path: Path) -> None:
    for arguments in (["doctor"], ["doctor", "--acl"], ["doctor", "--json"]):
        code, said = refused(*arguments, "--redis-url", f"unix://joe:hunter2@{tmp_path}/none.sock", cwd=tmp_path)
        assert code == 69
        assert "no Redis answers at unix://joe:***@" in said
        assert "hunter2" not in said


def test_the_rule_is_alone_on_stdout(here: Path) -> None:
    done = beat("doctor", "--acl", "--user", "joe", cwd=here)
    assert done.returncode == 0
    (rule,) = done.stdout.splitlines()
    assert rule.startswith("ACL SETUSER joe on ")
    assert "ACL SETUSER joe >PASSWORD" in done.stderr
    assert "left out" in done.stderr
    whole = beat("doctor", "--acl", "--every-feature", cwd=here)
    assert "left out" not in whole.stderr
    assert len(whole.stdout) > len(done.stdout)


def test_the_rule_as_json_is_a_list_of_words(here: Path, redis: Redis) -> None:
    admin: Any = redis
    found = document("doctor", "--acl", "--user", "joe", cwd=here)
    assert found["user"] == "joe"
    assert admin.execute_command("ACL", "SETUSER", found["user"], *found["rule"]) == "OK"
    admin.execute_command("ACL", "DELUSER", "joe")


@pytest.mark.parametrize("name", ["", "a b", "(x", "x)", "a\nb"])
def test_a_name_that_is_none_is_refused(name: str, here: Path) -> None:
    code, said = refused("doctor", "--acl", "--user", name, cwd=here)
    assert code == 2
    assert "cannot be a name" in said
