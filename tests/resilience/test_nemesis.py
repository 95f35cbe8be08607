from __future__ import annotations

from typing import TYPE_CHECKING

from tests.resilience import nemesis

if TYPE_CHECKING:
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis


def test_three_beats_of_which_one_is_killed_again_and_again(home: Path, server: PrivateRedis, redis: Redis) -> None:
    assert "each became exactly one job" in nemesis.run(home, server.url, 15, every_s=3)
    assert redis.exists("beat:schedule:tick")
