"""The Redis of these tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.policies.clients import clients

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.embedded import PrivateRedis
    from tests.policies.clients import Connect


@pytest.fixture(scope="session")
def connect(server: PrivateRedis) -> Iterator[Connect]:
    """Makes clients of a real server, whose scripts go by a manual clock."""
    with clients(server) as connect:
        yield connect
