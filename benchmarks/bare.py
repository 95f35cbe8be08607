"""What no scheduler can do without, and nothing else: to wake at an instant, and to push one element.

    python -m benchmarks.bare URL LIST TIMES

It wakes at the half seconds, where nobody else is due, and ends by itself. Each element names its instant.
"""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING, Any

from redis import Redis

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> None:
    url, key, times = arguments
    redis: Any = Redis.from_url(url)
    redis.ping()  # connects
    for instant in halves(time.time(), int(times)):
        time.sleep(max(0.0, instant - time.time()))
        redis.rpush(key, instant)


def halves(now: float, times: int) -> list[float]:
    """The next half seconds, since the epoch."""
    return [math.floor(now + 0.5) + 0.5 + n for n in range(times)]


if __name__ == "__main__":
    main(sys.argv[1:])
