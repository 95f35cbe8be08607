"""A canary in every place that holds a secret, and escape sequences in all that users write: neither comes out again.

One stage for all: two beats at the level `debug`, one for people and one for machines, on a Redis with a password; a
job that fails; strange things that somebody else wrote into Redis; every command that answers a question; the page, its
token and its users; a wrong password; and a Redis that dies.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import httpx
import pytest
from redis import Redis

from beat import cli
from beat.dev import embedded
from tests.cli.test_web import Web
from tests.process.commands import called, on_a_terminal
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.rq_worker import SIMPLE, Steps, Worker
from tests.support.schedulers import Beat
from tests.web.visitor import Visitor, walked

if TYPE_CHECKING:
    from collections.abc import Iterator

CANARY, OTHER = "tweet-8f1c", "chirp-77aa"
ESCAPES = "\x1b[31mred\x1b]0;title\x07\r\x08\x00\x9b2J\u202e"
SHOWN = "\\x1b[31mred"
TASKS = f"""
from beat import periodic

ESCAPES = {ESCAPES!r}

@periodic(every="1s", args=[ESCAPES], meta={{"who": ESCAPES}})
def wild(words): ...

@periodic(every="1s", overlap="skip", queue="failing")
def fails():
    raise ValueError("redis://ann:{OTHER}@db/0 " + ESCAPES)
"""
REFUSED = TASKS.replace("overlap", "description=ESCAPES, overlap")
COMMANDS = [
    "--help", "list", "show wild", "show fails --json", "history -v", "why fails 2026-01-01T00:00Z", "doctor", "config",
    "config --json", "health", "check refused", "plan canary_tasks", "pause fails --reason", "list --state",
    "list --redis-url",
]  # fmt: skip
MORE = {
    "pause fails --reason": [ESCAPES.replace("\0", "")],
    "list --state": [ESCAPES.replace("\0", "")],
    "list --redis-url": [f"redis://ann:{CANARY}@127.0.0.1:1/x"],
}
HAPPENED = ["cannot be used", "failed after"]
WEB = {"BEAT_WEB_TOKEN": f"{CANARY}-{CANARY}", "BEAT_WEB_USERS": f"ann:{CANARY}-{CANARY},bob:{CANARY}-{CANARY}"}
PAGE = "page "


@pytest.fixture
def said() -> Iterator[dict[str, str]]:
    """All that was written to stdout and stderr, by what wrote it."""
    home = lay_out(Path(tempfile.mkdtemp(prefix="beat-")), {"canary_tasks.py": TASKS, "refused.py": REFUSED})
    try:
        with embedded.start(home / "redis", options=["--requirepass", CANARY]) as private:
            socket = private.url.partition("?")[0].removeprefix("unix://")
            url = f"unix://ann:{CANARY}@{socket}?db=0&client_name={CANARY}"
            lay_out(home, {"pyproject.toml": f'[tool.beat]\nredis_url = "{url}"\nsecret = "{CANARY}"\n'})
            with Redis.from_url(f"unix://:{CANARY}@{socket}") as client:
                yield {name: text.replace("\r\n", "\n") for name, text in _everything(home, url, client, private.kill)}
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _everything(home: Path, url: str, client: Any, kill: Any) -> Iterator[tuple[str, str]]:
    client.acl_setuser("ann", enabled=True, passwords=[f"+{CANARY}"], categories=["+@all"], keys=["*"], channels=["*"])
    told = {"module": "canary_tasks", "BEAT_REDIS_URL": url}
    wrong = called("run", "canary_tasks", cwd=home, BEAT_REDIS_URL=url.replace(f":{CANARY}", f":not-{CANARY}", 1))
    yield "a wrong password", (wrong.stdout + wrong.stderr).decode()
    with contextlib.ExitStack() as stack:
        beats = {
            form: Beat(home, url, "--log-level", "debug", "--log-format", form, **told) for form in ("text", "json")
        }
        for beat in beats.values():
            stack.enter_context(beat)
            beat.says("has started")
        wait_until(lambda: client.llen("rq:queue:failing"))
        options = [*SIMPLE, "--burst", "--path", str(home)]
        with Worker(url, Steps(home / "steps.log"), "failing", options=options) as worker:
            assert worker.ends() == 0, worker.log
        _vandalise(client)
        wait_until(lambda: all(words in "".join(beat.log for beat in beats.values()) for words in HAPPENED))
        yield from ((each, _answered(home, *each.split(), *MORE.get(each, []))) for each in COMMANDS)
        yield "a terminal", on_a_terminal("history", "-v", cwd=home, NO_COLOR="1")[1]
        web = stack.enter_context(Web(home, BEAT_REDIS_URL=url, BEAT_LOG_LEVEL="debug", **WEB))
        yield from _pages(web, url, "while Redis is there")
        kill()
        yield from _pages(web, url, "while Redis is away")
        yield "web", web.log
        for beat in beats.values():
            beat.says("Redis does not work for us")
        yield from ((form, beat.log) for form, beat in beats.items())
    yield "without Redis", _answered(home, "list")


def _pages(web: Web, url: str, when: str) -> Iterator[tuple[str, str]]:
    """What who knows a password is shown, and a stranger."""
    for path, answer in walked(Visitor.of(url)):
        yield f"{PAGE}{path} {when}", f"{answer.status_code} {answer.text}"
    for headers in ({}, {"Authorization": f"Bearer {CANARY}"}, {"Authorization": f"Bearer {WEB['BEAT_WEB_TOKEN']}"}):
        stranger = httpx.get(f"http://127.0.0.1:{web.port}/", headers=headers)
        yield f"{PAGE}{len(str(headers))} {when}", f"{stranger.status_code} {stranger.headers} {stranger.text}"


def _vandalise(client: Any) -> None:
    """Anybody can write anything."""
    client.hset("beat:schedule:wild", mapping={"next_run": ESCAPES, "last_error": ESCAPES})
    client.hset("beat:schedule:fails", "description", ESCAPES)
    client.zadd("beat:due", {f"evil{ESCAPES}": 0})
    client.hset(f"beat:schedule:evil{ESCAPES}", mapping={"state": ESCAPES, "rev": ESCAPES})
    client.sadd("beat:schedules", f"evil{ESCAPES}")
    client.lpush("beat:runs:fails", json.dumps({"type": ESCAPES, "at": ESCAPES}))


def _answered(home: Path, *arguments: str) -> str:
    done = called(*arguments, cwd=home, **WEB)
    return (done.stdout + done.stderr).decode()


def test_no_secret_and_nothing_that_steers_a_terminal_comes_out(said: dict[str, str]) -> None:
    # one test, so that the stage is set once, however many processes share the tests
    assert [name for name, text in said.items() if CANARY in text] == []
    terminals = {name: text for name, text in said.items() if not name.startswith(PAGE)}
    wild = {name: [line for line in text.split("\n") if not line.isprintable()] for name, text in terminals.items()}
    assert {name: lines for name, lines in wild.items() if lines} == {}
    assert [name for name, text in said.items() if "please report it" in text] == []
    _is_what_was_hidden(said)
    _is_for_machines(said["json"])


def _is_what_was_hidden(said: dict[str, str]) -> None:
    """What was looked for was there, and is shown in another way."""
    assert "ann:***@" in said["config"]
    assert re.search(r"web_token +\*\*\* +BEAT_WEB_TOKEN\n.*web_users +2 users +BEAT_WEB_USERS", said["config"])
    assert said[f"{PAGE}/ while Redis is there"].startswith("200 ")
    assert "Redis does not answer." in said[f"{PAGE}/ while Redis is away"]
    assert said[f"{PAGE}2 while Redis is there"].startswith("401 ")
    assert "client_name=***" in said["config"]
    assert "Redis refuses user 'ann'" in said["a wrong password"]
    assert [name for name in ("history -v", "a terminal", "show wild") if SHOWN not in said[name]] == []
    logged = said["text"] + said["json"].replace("\\\\", "\\")  # whichever of them met it
    assert SHOWN in logged
    assert "ValueError: redis://***@db/0" in logged
    assert OTHER not in logged


def _is_for_machines(lines: str) -> None:
    read = [json.loads(line) for line in lines.splitlines()]
    assert {"advice", "started", "redis_away"} <= {each["event"] for each in read}
    assert all(each["component"] for each in read)


def test_a_bug_tells_no_secret_either(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(_: object) -> NoReturn:
        raise LookupError(f"redis://ann:{CANARY}@db/0 {ESCAPES}")

    monkeypatch.setattr(cli.cli, "invoke", fails)
    with pytest.raises(SystemExit, match="70"):
        cli.main(["list"])
    shown = capsys.readouterr().err
    assert "LookupError: redis://***@db/0 \\x1b[31mred" in shown
    assert CANARY not in shown
