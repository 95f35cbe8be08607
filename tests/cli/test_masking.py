"""Secrets on the command line: what the web UI masks is masked there, too, until somebody asks to see it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.config.masking import MASK
from beat.history import ledger
from beat.policies.definition_diff import Difference, masked, summary
from tests.cli import test_command_line
from tests.integration.test_control import FUNC, deploy
from tests.support.builders import schedule
from tests.support.files import lay_out
from tests.support.lines import MINUTE, NINE, Ledger
from tests.support.schedulers import Beat

if TYPE_CHECKING:
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

SECRETS = {"password": "hunter2", "where": "redis://ann:hunter2@host/0", "copies": 2}
FAILED = ledger.Error("OSError", f"no answer: {SECRETS['where']}", f"Traceback\nOSError: {SECRETS['where']}\n")
PING = "https://hc-ping.com/hunter2-4f1e"


@pytest.fixture
def here(home: Path, store: Store) -> Path:
    """A schedule from data with secrets in its arguments, and one with a run that reported some."""
    lay_out(home, {"pyproject.toml": ""})
    deploy(store, schedule("report"), functions=[FUNC])
    Client(store.client, by="ann", monitor_hosts="hc-ping.com").add(
        "secretive", func=FUNC, every="1h", kwargs=SECRETS, monitor=PING
    )
    book = Ledger("talking").registered(NINE - MINUTE, NINE)
    book.fired(NINE).ended(NINE, details={"session_cookie": "hunter2", "rows": 3}).keep(store.client)
    book = Ledger("failing").registered(NINE - MINUTE, NINE)
    book.fired(NINE).ended(NINE, "failed", error=FAILED)
    book.keep(store.client, consecutive_failures="1", last_error=FAILED.message)
    return home


@pytest.fixture
def beat(here: Path, server: PrivateRedis) -> Any:
    """What a call of `beat` prints."""

    def call(*arguments: str) -> str:
        done = test_command_line.beat(*arguments, cwd=here, BEAT_REDIS_URL=server.url)
        assert done.returncode == 0, done
        return done.stdout

    return call


COMMANDS = [
    ["show", "secretive", "--json"],
    ["show", "secretive"],
    ["list", "--json"],
    ["history", "talking", "--json"],
    ["history", "talking", "-v"],
    ["why", "talking", "2026-11-16T09:00Z"],
    ["why", "talking", "2026-11-16T09:00Z", "--json"],
    ["show", "failing"],
    ["show", "failing", "--json"],
    ["list"],
    ["history"],
    ["history", "failing"],
    ["history", "failing", "-v"],
    ["history", "failing", "--json"],
    ["why", "failing", "2026-11-16T09:00Z"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_secret_is_masked_unless_it_is_to_be_revealed(beat: Any, command: list[str]) -> None:
    assert "hunter2" not in beat(*command)
    if command != ["show", "secretive"]:  # which shows no arguments
        assert "hunter2" in beat(*command, "--reveal")


def test_the_rest_of_the_arguments_is_shown(beat: Any) -> None:
    shown = json.loads(beat("show", "secretive", "--json"))["schedule"]["definition"]["kwargs"]
    assert shown == {"password": MASK, "where": f"redis://ann:{MASK}@host/0", "copies": 2}
    revealed = json.loads(beat("show", "secretive", "--json", "--reveal"))["schedule"]["definition"]
    assert (revealed["kwargs"], revealed["monitor"]) == (SECRETS, PING)


def test_a_masked_export_is_refused_and_a_revealed_one_is_taken(
    beat: Any, here: Path, server: PrivateRedis, redis: Redis
) -> None:
    given = {"BEAT_REDIS_URL": server.url, "BEAT_MONITOR_HOSTS": "hc-ping.com"}
    (here / "masked.json").write_text(beat("list", "secretive", "--json"))
    described = {"id": "other", "func": FUNC, "every": "1h", "description": f"reads redis://ann:{MASK}@host"}
    (here / "described.json").write_text(json.dumps({"schedules": [described]}))
    (here / "whole.json").write_text(beat("list", "secretive", "--json", "--reveal"))
    redis.delete("beat:schedule:secretive")
    redis.srem("beat:schedules", "secretive")
    done = test_command_line.beat("add", "--file", "masked.json", cwd=here, **given)
    assert done.returncode == 4
    assert "is masked" in done.stderr + done.stdout
    assert "beat list --json --reveal" in done.stderr + done.stdout
    done = test_command_line.beat("add", "--file", "described.json", cwd=here, **given)
    assert done.returncode == 4
    assert "description is masked" in done.stderr + done.stdout
    done = test_command_line.beat("add", "--file", "whole.json", cwd=here, **given)
    assert done.returncode == 0, done
    assert json.loads(redis.hget("beat:schedule:secretive", "definition") or "{}")["kwargs"] == SECRETS


PLANNED = """
    from os import environ
    from beat import periodic

    WORD = environ["WORD"]

    @periodic(every="1h", kwargs={"password": WORD, "copies": 2}, monitor=f"https://hc-ping.com/{WORD}",
              description=f"from redis://ann:{WORD}@host/0")
    def nightly(**kwargs): ...
"""


def test_a_plan_and_the_log_mask_what_becomes_of_a_secret(here: Path, server: PrivateRedis) -> None:
    lay_out(here, {"tasks.py": PLANNED})
    with Beat(here, server.url, WORD="hunter2") as old:
        old.says("registered")
    given = {"BEAT_REDIS_URL": server.url, "WORD": "hunter3"}
    for form in ([], ["--json"]):
        done = test_command_line.beat("plan", *form, cwd=here, **given)
        assert "hunter" not in done.stdout + done.stderr
        assert done.stdout.count(" (another)") == 3
        revealed = test_command_line.beat("plan", "--reveal", *form, cwd=here, **given).stdout
        assert revealed.count("hunter2") == revealed.count("hunter3") == 3
    with Beat(here, server.url, WORD="hunter3") as new:
        new.says("the definition was replaced: kwargs.password changed")
    assert "hunter" not in old.log + new.log


def test_a_password_that_is_cut_off_is_masked_in_the_log() -> None:
    was, becomes = ({"description": f"{'x' * 70} redis://ann:{word * 5}@host"} for word in ("hunter2", "hunter3"))
    assert "hunter" not in summary(was, becomes)


def test_an_option_is_masked_whatever_it_is_called() -> None:
    assert masked(Difference("kwargs.redis://ann:hunter2@host", 1, 2)) == (f"kwargs.redis://ann:{MASK}@host", 1, 2)
    assert masked(Difference("kwargs.a", None, None)) == ("kwargs.a", None, None)
    assert masked(Difference("args", [{"token": 1}], [{"token": 2}])) == (
        "args", [{"token": MASK}], '[{"token": "•••"}] (another)',
    )  # fmt: skip
    assert masked(Difference("kwargs", "{'key': Key('x', token='hunter2')}", None)) == ("kwargs", MASK, None)
