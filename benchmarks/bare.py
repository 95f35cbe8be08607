"""Do the least that any scheduler does: wake at an instant and push one element.

    python -m benchmarks.bare URL LIST TIMES

The process wakes at half seconds, when nothing else is due, and exits after TIMES. Each element names its instant.
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
    """Return the next `times` half seconds, in seconds since the epoch."""
    return [math.floor(now + 0.5) + 0.5 + n for n in range(times)]


if __name__ == "__main__":
    main(sys.argv[1:])
