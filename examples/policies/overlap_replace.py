"""overlap="replace", the newest wins: `beat dev examples/policies/overlap_replace.py`.

A tick comes every two seconds, a forecast would take half a minute: each is stopped in its worker for the next one. The
only worker has no time for headlines: each is taken out of the queue for the next one.
"""

from __future__ import annotations

import time

from beat import periodic


@periodic(every="2s", overlap="replace", queue="forecasts")
def forecast() -> str:
    """Compute what nobody wants any more when the next one begins."""
    time.sleep(30)
    return "computed"


@periodic(every="2s", overlap="replace", priority="low", queue="headlines")
def headline() -> str:
    """Print the headline, if ever there is time."""
    return "printed"
