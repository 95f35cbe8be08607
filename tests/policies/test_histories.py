"""Whatever the policies, the outages and the length of the runs: every tick gets one verdict, and it is the model's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from redis import ConnectionPool

from beat.testing.fake_redis import Clocked
from tests.policies.histories import histories
from tests.policies.stage import History, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beat.embedded import PrivateRedis
    from beat.testing import ManualClock

    Connect = Callable[[ManualClock], Clocked]

LONG = bool(os.environ.get("LONG_TESTS"))


@pytest.fixture(scope="session")
def connect(server: PrivateRedis) -> Iterator[Connect]:
    """Clients of an empty real server, whose scripts go by a manual clock."""
    with ConnectionPool.from_url(server.url) as pool:

        def connect(clock: ManualClock) -> Clocked:
            client = Clocked(clock, connection_pool=pool)
            client.flushall()
            return client

        yield connect


def play(history: History, connect: Connect | None = None) -> None:
    stage = Stage(history, connect)
    stage.plays(*history.passes)
    stage.recovers()


@settings(max_examples=3000 if LONG else 200)
@given(history=histories())
def test_every_tick_has_the_verdict_of_the_model(connect: Connect, history: History) -> None:
    play(history, connect)


@settings(max_examples=300 if LONG else 20)
@given(history=histories())
def test_so_it_has_in_a_manual_beat_of_a_users_tests(history: History) -> None:
    play(history)
