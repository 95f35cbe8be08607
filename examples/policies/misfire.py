"""What becomes of ticks that nobody fired in time: `beat dev examples/policies/misfire.py`.

Let it run for a few seconds, end it with Ctrl-C, count to ten, and start it again: `total` fires for the latest of the
ticks that were missed, `alarm` for none of them, `invoice` for each, three at a time and oldest first.
"""

from __future__ import annotations

from beat import get_current_run, periodic


@periodic(every="1s", misfire="once", misfire_after="2s", queue="late")
def total() -> str:
    """Add up all that there is: one total makes up for those that were missed."""
    return _tick()


@periodic(every="1s", misfire="skip", misfire_after="2s", queue="late")
def alarm() -> str:
    """Ring: an alarm that is late is worse than none."""
    return _tick()


@periodic(every="1s", misfire="all", misfire_after="2s", catchup_limit=3, catchup_window="1h", queue="late")
def invoice() -> str:
    """Write the invoice of that second: none may be missing."""
    return _tick()


def _tick() -> str:
    run = get_current_run()
    return f"{run.triggered_by}: {run.scheduled_for:%H:%M:%S}" if run and run.scheduled_for else "nobody's tick"
