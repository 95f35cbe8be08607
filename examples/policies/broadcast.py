"""route="broadcast", one job for every queue: `beat dev examples/policies/broadcast.py`.

Each host works at a queue of its own, and every tick becomes a job for each of them. A tick has succeeded when all of
its jobs have; only then does `tell` follow, once.
"""

from __future__ import annotations

from beat import get_current_run, periodic


@periodic(every="3s", queues=["host-a", "host-b", "host-c"], route="broadcast")
def flush() -> str:
    """Empty the cache of this host."""
    run = get_current_run()
    return f"flushed part {run.shard}" if run else "flushed"


@periodic(follows="flush", queue="host-a")
def tell() -> str:
    """Tell that all of them are empty."""
    return "all are flushed"
