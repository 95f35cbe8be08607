from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.resilience import ledger_nemesis

if TYPE_CHECKING:
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis

RUNS = 100 if os.environ.get("LONG_TESTS") else 40  # `make ledger` has a thousand


def test_outcomes_are_what_the_jobs_say_though_everything_is_killed(
    home: Path, server: PrivateRedis, redis: Redis
) -> None:
    assert "all as the jobs say" in ledger_nemesis.run(home, server.url, RUNS, seed=1)
    assert redis.zcard("beat:open") == 0
