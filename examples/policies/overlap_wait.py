"""overlap="wait", one after the other: `beat dev examples/policies/overlap_wait.py`.

A tick comes every second, a letter takes two and a half: two ticks wait for their turn, the others are skipped.
"""

from __future__ import annotations

import time

from beat import get_current_run, periodic


@periodic(every="1s", overlap="wait", max_waiting=2, queue="letters")
def letter() -> str:
    """Write a letter, and say which tick it is for: not the newest, but the one whose turn it was."""
    time.sleep(2.5)
    run = get_current_run()
    return f"written for {run.scheduled_for:%H:%M:%S}" if run and run.scheduled_for else "written"
