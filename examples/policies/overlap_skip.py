"""overlap="skip", one at a time: `beat dev examples/policies/overlap_skip.py`.

A tick comes every second, a copy takes three: the ticks in between are skipped. `beat history copy` names each of them.
"""

from __future__ import annotations

import time

from beat import periodic


@periodic(every="1s", overlap="skip", queue="copies")
def copy() -> str:
    """Copy what takes three seconds to copy."""
    time.sleep(3)
    return "copied"
