"""The page, asked as a program would ask it: the real app over a real Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from beat import Client
from tests.web.inhabited import inhabited
from tests.web.visitor import Visitor

if TYPE_CHECKING:
    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store
    from tests.support.schedulers_in_turn import Crew


@pytest.fixture
def client(redis: Redis, server: PrivateRedis) -> Client:  # noqa: ARG001 (it empties the server)
    """Asks that Redis without a page."""
    return Client(server.url, by="tester")


@pytest.fixture
def visitor(redis: Redis, server: PrivateRedis) -> Visitor:  # noqa: ARG001 (it empties the server)
    """Somebody who looks at the page."""
    return Visitor.of(server.url)


@pytest.fixture
def crew(store: Store, server: PrivateRedis) -> Crew:
    """An installation with a past."""
    return inhabited(store, server)


@pytest.fixture
def program(crew: Crew) -> Visitor:
    """A program that asks its API."""
    return Visitor.of(crew.url)
