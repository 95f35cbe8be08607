"""Every test has a time limit, so a defect that never returns fails one test and does not hold a worker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_every_test_has_a_time_limit(pytestconfig: pytest.Config) -> None:
    assert 0 < float(pytestconfig.getini("timeout")) <= 300


def test_a_test_that_never_returns_fails_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "test_loop.py").write_text("def test_loop():\n    while True:\n        pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(PROJECT), "--timeout=0.5"]
    ended = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stderr
    assert "Timeout (>0.5s) from pytest-timeout" in ended.stdout
