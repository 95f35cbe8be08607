"""overlap="skip" where nothing overlaps: `beat dev examples/policies/overlap_short.py`.

A tick comes every second, a glance takes a tenth of one: none is ever skipped.
"""

from __future__ import annotations

import time

from beat import periodic


@periodic(every="1s", overlap="skip", queue="glances")
def glance() -> str:
    """Look whether there is news."""
    time.sleep(0.1)
    return "no news"
