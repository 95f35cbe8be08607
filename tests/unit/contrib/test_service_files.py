"""What is shipped for systemd, Docker Compose and Kubernetes names only commands, options and settings there are."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from beat.cli import COMMANDS
from beat.config.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent.parent
UNIT, COMPOSE = ROOT / "contrib/systemd/beat.service", ROOT / "contrib/compose.yaml"
FILES = [
    UNIT,
    COMPOSE,
    ROOT / "docs/guides/operating.md",
    ROOT / "docs/guides/monitoring.md",
    ROOT / "docs/guides/web.md",
]
GIVEN = {"INCIDENT"}
"""What a command of an alert's channel finds in its environment."""
NAMES = [file.name for file in FILES]
_LINE = re.compile(r"^\s*(?:ExecStart=|command:|test:|(?:- )?exec:|#\s+docker compose .* exec )(.*)$", re.MULTILINE)


def calls(text: str) -> Iterator[list[str]]:
    """Each call of `beat` that something is told to start, word by word, whether as a list or as a line."""
    for line in _LINE.findall(text):
        words = re.sub(r"[\[\]{},\"']", " ", line.partition(";")[0]).split()
        places = [n for n, word in enumerate(words) if word.rpartition("/")[2] == "beat"]
        if places:
            yield words[places[-1] + 1 :]  # before it: a path, a shell, the name of a service


def test_the_calls_are_found() -> None:
    found = {tuple(each) for file in FILES for each in calls(file.read_text(encoding="utf-8"))}
    assert {("run",), ("health", "--local"), ("health", "--local", "--max-age", "3m"), ("list",)} <= found


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_every_command_and_option_exists(file: Path) -> None:
    known = {name for group in COMMANDS.values() for name in group}
    for name, *words in calls(file.read_text(encoding="utf-8")):
        assert name in known, name
        command = importlib.import_module(f"beat.cli.{name}").command
        options = {each for param in command.params for each in param.opts}
        assert not [each for each in words if each.startswith("-") and each not in options], (name, words)


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_every_variable_is_a_setting(file: Path) -> None:
    named = set(re.findall(r"\bBEAT_([A-Z_]+[A-Z])\b", file.read_text(encoding="utf-8")))
    assert not named - {name.upper() for name in Settings.model_fields} - GIVEN


def test_they_are_part_of_the_source_distribution() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert "contrib" in built["targets"]["sdist"]["include"]


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed: nobody has verified contrib/systemd/beat.service here")
    unit = tmp_path / "beat.service"
    unit.write_text(UNIT.read_text(encoding="utf-8").replace("/srv/app/.venv/bin/beat", sys.executable))
    done = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_compose_takes_the_file() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed: nobody has verified contrib/compose.yaml here")
    done = subprocess.run([docker, "compose", "-f", COMPOSE, "config", "-q"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
