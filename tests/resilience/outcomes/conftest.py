"""One stage for all tests of a process: each schedule has its own queue, and is fired by one test at a time."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from beat.dev import embedded
from tests.resilience.outcomes.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """A stage on a Redis of its own, which no other test empties."""
    home = Path(tempfile.mkdtemp(prefix="beat-"))
    with embedded.start(home / "redis") as server, Stage(home, server.url) as made:
        yield made
    shutil.rmtree(home, ignore_errors=True)
