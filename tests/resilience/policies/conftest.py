"""The Redis of these tests."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from beat.dev import embedded
from tests.resilience.policies.clients import clients

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.resilience.policies.clients import Connect


@pytest.fixture(scope="session")
def connect() -> Iterator[Connect]:
    """Makes clients of a real server, whose scripts go by a manual clock: one of their own, where no other beat is."""
    with (
        tempfile.TemporaryDirectory(prefix="beat-") as place,
        embedded.start(Path(place) / "redis") as server,
        clients(server) as connect,
    ):
        yield connect
