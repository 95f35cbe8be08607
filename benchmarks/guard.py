"""Check in CI whether beat has become slow, by a ratio that hardly depends on the machine.

    python -m benchmarks.guard

beat and RQ's own `enqueue_many` take turns on one private Redis. The majority of five tries decides, so noise passes
the check but a doubled cost fails it. tests/integration/test_speed.py counts the `redis.call` of a fire.
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
"""The usual ratio is 2 to 3.5, depending on the server's allocator. At twice the cost, it hardly ever reaches 1.5."""
TRIES = 5
"""The majority decides, so one try that a busy machine made too slow or too fast does not."""


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
    """Return whether beat is fast enough; None while the remaining tries could change the result."""
    quick = sum(ratio >= LEAST for ratio in ratios)
    slow = len(ratios) - quick
    return None if max(quick, slow) <= TRIES // 2 else quick > slow


if __name__ == "__main__":
    sys.exit(main())
