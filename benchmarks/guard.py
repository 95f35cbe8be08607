"""Has beat become slow? A ratio and a count of one run, for CI: they hardly depend on the machine.

    python -m benchmarks.guard

beat beside RQ's own `enqueue_many`, in turns on one private Redis; the most of five tries decide, so that noise passes
and a doubling of the cost does not. How many `redis.call` a fire takes is counted in tests/integration/test_speed.py.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benchmarks.firing import BeatAct, floor
from benchmarks.stage import stage

if TYPE_CHECKING:
    from collections.abc import Sequence

JOBS = 5_000
LEAST = 1.5
"""Usually it is 2 to 3.5, as the server's allocator is: at twice the cost it is hardly ever reached."""
TRIES = 5
"""Most of them decide: one that a busy machine spoiled does not, nor one that it let off."""


def main() -> int:
    ratios: list[float] = []
    with stage() as made:
        beat = BeatAct(made)
        while (verdict := judged(ratios)) is None:
            ours = beat(JOBS, 1, times=1)["fires per second"]
            theirs = floor(made, "enqueue_many", JOBS, 1)["fires per second"]
            ratios.append(ours / theirs)
            print(f"try {len(ratios)}: {ours:,.0f} fires per second, {ratios[-1]:.2f} × enqueue_many", flush=True)
    if not verdict:
        found = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"beat has become slow: {found} × enqueue_many, {LEAST} is the least. See `make bench`.", file=sys.stderr)
    return int(not verdict)


def judged(ratios: Sequence[float]) -> bool | None:
    """Whether it is quick enough; None while the tries that are left could still decide otherwise."""
    quick = sum(ratio >= LEAST for ratio in ratios)
    slow = len(ratios) - quick
    return None if max(quick, slow) <= TRIES // 2 else quick > slow


if __name__ == "__main__":
    sys.exit(main())
