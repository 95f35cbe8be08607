"""What type checkers say of declarations: each line that ends with `# refused` is an error, and no other is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.process_pool import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DECLARATIONS = """
from datetime import date, datetime, timedelta, timezone

import beat
import rq
from beat import Every, Monitor, Registry, Requires, Schedule, periodic, register


def done() -> None: ...


@periodic("0 9 * * *", tz="Europe/Paris", retry=rq.Retry(3), on_success=rq.Callback(done), seconds=False)
def one() -> int:
    return 1


@periodic(every="15m", phase=60, requires=["one", Requires("two", within="1h")], monitor=Monitor("sentry"))
def two() -> int:
    return 2


@periodic(follows="one", retry={"max": 3, "interval": [10, 60]}, on_failure="app.hooks.bad", job_timeout="1h")
async def three() -> int:
    return 3


number: int = one() + two()
register(done, "@daily", exclude=[date(2026, 1, 1), ("2026-01-02", date(2026, 1, 5)), lambda day: day.day == 1])
register(done, every=timedelta(hours=1), start=datetime(2026, 1, 1, tzinfo=timezone.utc), on_stopped=done)
register(Schedule(id="x", func="app.tasks.x", timing=Every("1d")))
Registry().periodic("@daily", args=[1], kwargs={"a": 1}, queues=("a", "b"), route="shortest")(done)
text: str = one()  # refused
periodic()  # refused
periodic("0 9 * * *", every="1h")  # refused
periodic("0 9 * * *", follows="one")  # refused
periodic(every="1h", follows="one")  # refused
periodic(every="1h", seconds=True)  # refused
periodic("@daily", phase=5)  # refused
periodic("@daily", timezone="UTC")  # refused
periodic("@daily", retry="often")  # refused
periodic("@daily", exclude=5)  # refused
periodic("@daily", requires=5)  # refused
periodic("@daily", monitor=5)  # refused
periodic("@daily", on_success=5)  # refused
periodic("@daily", overlap="never")  # refused
register(done)  # refused
register(done, "@daily", every="1h")  # refused
beat.perodic  # refused
"""
REFUSED = {number for number, line in enumerate(DECLARATIONS.split("\n"), 1) if line.endswith("# refused")}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "declarations.py"
    file.write_text(DECLARATIONS, encoding="utf-8")
    return file


def test_mypy_refuses_declarations_that_cannot_work(file: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={file.parent / 'cache'}", file.name]
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert {int(line) for line in re.findall(r"^declarations\.py:(\d+): error:", done.stdout, re.MULTILINE)} == REFUSED


def test_pyright_refuses_the_same(file: Path) -> None:
    checker = shutil.which("pyright") or shutil.which("basedpyright")
    if checker is None:
        pytest.skip(
            "neither pyright nor basedpyright is installed: pip install basedpyright, which brings its own node"
        )
    settings = {"typeCheckingMode": "standard", "reportUnusedExpression": False, "extraPaths": [str(ROOT)]}
    (file.parent / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [checker, "--outputjson", "--pythonpath", sys.executable, file.name]
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert {each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"} == REFUSED
