"""`beat config`: what it shows, where it shows it, and what it never shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from beat.cli.config import command
from beat.config.settings import Settings
from beat.errors import ConfigError

if TYPE_CHECKING:
    from click.testing import Result

ROOT = Path(__file__).parents[3]
CANARY = "hunter2"
SECRET_URL = f"redis://user:{CANARY}@localhost:6379/0?password={CANARY}"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with an empty pyproject.toml, and an environment without settings."""
    for name in list(os.environ):
        if name.startswith("BEAT_") or name.endswith("REDIS_URL"):
            monkeypatch.delenv(name)
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, **environ: str) -> Result:
    result = CliRunner().invoke(command, arguments, env=environ, catch_exceptions=False)
    assert result.exit_code == 0
    return result


def started(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command as an operator starts it."""
    program = [sys.executable, "-m", "beat", "config", *arguments]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **environ}
    return subprocess.run(program, env=environ, capture_output=True, text=True, check=False)


def on_a_terminal(*arguments: str, columns: int, **environ: str) -> str:
    """What a terminal of that width gets, without its colours."""
    ours, theirs = os.openpty()
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(columns), "TERM": "xterm", **environ}
    program = [sys.executable, "-m", "beat", "config", *arguments]
    with subprocess.Popen(program, env=environ, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        received = b""
        try:
            while part := os.read(ours, 4096):
                received += part
        except OSError:  # how Linux says that the other end is closed
            pass
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*m", "", received.decode())


def test_every_setting_is_shown_with_its_value_and_source(here: Path) -> None:
    (here / "pyproject.toml").write_text("[tool.beat]\nlock_ttl = 15\nmodules = ['app.a', 'app.b']")
    lines = run(BEAT_INTERVAL="500ms").stdout.splitlines()
    shown = {cells[0]: cells[1:] for cells in (re.split(r"\s{2,}", line) for line in lines)}
    assert list(shown) == ["setting", *Settings.model_fields]
    assert shown["interval"] == ["500ms", "BEAT_INTERVAL"]
    assert shown["lock_ttl"] == ["15s", "pyproject.toml [tool.beat] lock_ttl"]
    assert shown["modules"] == ["app.a, app.b", "pyproject.toml [tool.beat] modules"]
    assert shown["page_size"] == ["100", "default"]
    assert shown["queues"] == ["high=high, normal=default, low=low", "default"]
    assert shown["setup"] == ["-", "default"]


def test_the_value_that_counts_is_shown_for_a_setting_that_depends_on_another() -> None:
    assert re.search(r"^misfire_after +1m +default$", run(BEAT_LOCK_TTL="30s").stdout, re.MULTILINE)


def test_verbose_tells_what_each_setting_accepts_and_means() -> None:
    plain, verbose = run().stdout, run("--verbose").stdout
    assert verbose.startswith(plain)
    for name, field in Settings.model_fields.items():
        assert re.search(rf"^{name} .*default .*{re.escape(field.description or '?')}$", verbose, re.MULTILINE)
    assert "a duration (100ms to 1m), default 1s" in verbose


def test_json_is_one_document(here: Path) -> None:
    tables = ("[tool.beat.presets]\nnightly = '0 3 * * *'", "[tool.beat.groups]\na = 5", "[tool.beat.nonsense]")
    (here / "pyproject.toml").write_text("\n".join(tables))
    result = run("--json", BEAT_INTERVAL="500ms", BEAT_LOCK_TTL="30s", BEAT_MODULES="a b")
    document = json.loads(result.stdout)
    assert list(document) == ["schema_version", "settings", "warnings"]
    assert document["schema_version"] == 1
    assert list(document["settings"]) == list(Settings.model_fields)
    settings = document["settings"]
    assert settings["interval"] == {"value": 0.5, "source": "BEAT_INTERVAL", "default": 1}
    assert settings["lock_ttl"] == {"value": 30, "source": "BEAT_LOCK_TTL", "default": 10}
    assert settings["misfire_after"] == {"value": 60, "source": "default", "default": None}
    assert settings["modules"] == {"value": ["a", "b"], "source": "BEAT_MODULES", "default": []}
    assert settings["presets"]["value"] == {"nightly": "0 3 * * *"}
    assert settings["groups"]["value"] == {"a": "wait 5 1000"}
    assert document["warnings"] == ["pyproject.toml [tool.beat] nonsense is not a setting."]
    assert result.stderr == ""


def test_warnings_are_words_and_go_to_stderr() -> None:
    result = run(BEAT_INTERVALL="2s")
    assert result.stderr == "warning: BEAT_INTERVALL is not a setting. Did you mean 'BEAT_INTERVAL'?\n"
    assert "INTERVALL" not in result.stdout


def test_wrong_settings_are_left_to_the_group_to_tell() -> None:
    with pytest.raises(ConfigError, match="BEAT_INTERVAL='abc'"):
        run(BEAT_INTERVAL="abc")


def test_help_teaches_the_order_and_gives_examples() -> None:
    said = run("--help").stdout
    places = ["--redis-url", "BEAT_REDIS_URL", "RQ_REDIS_URL", " REDIS_URL", "pyproject.toml", "the default"]
    found = [said.index(place) for place in places]
    assert found == sorted(found)
    assert "beat config --json" in said


@pytest.mark.parametrize(
    ("variable", "arguments"), [("BEAT_REDIS_URL", []), ("RQ_REDIS_URL", ["--json"]), ("REDIS_URL", ["--verbose"])]
)
def test_the_password_appears_nowhere(variable: str, arguments: list[str]) -> None:
    done = started(*arguments, **{variable: SECRET_URL})
    assert done.returncode == 0
    assert "redis://user:***@localhost:6379/0?password=***" in done.stdout
    assert variable in done.stdout
    assert CANARY not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "url",
    [
        f"redis://user:{CANARY}@localhost:99999",
        f"redis://:{CANARY}#@localhost/0",
        f"user:{CANARY}@localhost:6379",
        CANARY,
    ],
)
def test_the_password_of_a_wrong_url_appears_nowhere(url: str) -> None:
    done = started(BEAT_REDIS_URL=url)
    assert done.returncode == 78
    assert done.stdout == ""
    assert done.stderr.startswith("error: BEAT_REDIS_URL='")
    assert done.stderr.count("\n") == 1
    assert CANARY not in done.stderr


def test_the_password_of_a_broken_pyproject_appears_nowhere(here: Path) -> None:
    (here / "pyproject.toml").write_text(f'[tool.beat]\nredis_url = "{SECRET_URL}')
    done = started()
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.startswith("error: pyproject.toml is not valid TOML: ")
    assert CANARY not in done.stderr


def test_a_pipe_gets_no_drawing_and_nothing_cut_short() -> None:
    modules = ",".join(f"application.tasks.number_{n}" for n in range(40))
    shown = started("--verbose", BEAT_MODULES=modules, COLUMNS="40").stdout
    assert modules.replace(",", ", ") in shown
    assert shown.isascii()
    assert "\x1b" not in shown


def test_a_terminal_gets_a_table_with_nothing_cut_short() -> None:
    modules = ",".join(f"application.tasks.number_{n}" for n in range(40))
    shown = on_a_terminal(columns=60, BEAT_MODULES=modules)
    assert "─" in shown
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 60
    for n in range(40):
        assert f"number_{n}" in shown


def test_a_terminal_shows_no_password_either() -> None:
    shown = on_a_terminal("--verbose", columns=200, BEAT_REDIS_URL=SECRET_URL)
    assert "redis://user:***@localhost:6379/0?password=***" in shown
    assert CANARY not in shown
