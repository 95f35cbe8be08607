"""A slow lane, for what has become slow: `beat dev examples/policies/slow_lane.py`.

A search takes half a second: after three of them within a minute its ticks go to another queue, where they keep nobody
waiting. `beat history search` tells when and why. `lookup` is quick, and stays where it is.
"""

from __future__ import annotations

import time

from beat import periodic


@periodic(every="1s", queue="quick", slow_queue="slow", slow_after="300ms", slow_times=3)
def search() -> str:
    """Search for half a second."""
    time.sleep(0.5)
    return "found"


@periodic(every="1s", queue="quick", slow_queue="slow", slow_after="3s", slow_times=3)
def lookup() -> str:
    """Look something up."""
    return "looked up"
