"""Has beat become slow? A ratio and a count of one run, for CI: they hardly depend on the machine.

    python -m benchmarks.guard

beat beside RQ's own `enqueue_many`, in turns on one private Redis. Busy machines are given another try: noise passes, a
doubling of the cost does not. How many `redis.call` a fire takes is counted in tests/redis/test_speed.py.
"""

from __future__ import annotations

import sys

from benchmarks.firing import BeatAct, floor
from benchmarks.stage import stage

JOBS = 5_000
LEAST = 1.0
"""Usually it is 1.3 to 2; half of that must not pass."""
TRIES = 5


def main() -> int:
    with stage() as made:
        beat, best = BeatAct(made), 0.0
        for attempt in range(1, TRIES + 1):
            ours = beat(JOBS, 1)["fires per second"]
            theirs = floor(made, "enqueue_many", JOBS, 1)["fires per second"]
            best = max(best, ours / theirs)
            print(f"try {attempt}: {ours:,.0f} fires per second, {ours / theirs:.2f} × enqueue_many", flush=True)
            if best >= LEAST:
                return 0
    print(
        f"beat has become slow: {best:.2f} × enqueue_many at best, {LEAST} is the least. See `make bench`.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
