"""Not all at once: `beat dev examples/policies/spread.py`.

`north`, `east` and `west` tick at the same instants and fire up to three seconds later, each tick at an instant of its
own. `cron` is done by cron fields: the id chooses the second.
"""

from __future__ import annotations

from beat import get_current_run, periodic


@periodic(every="4s", jitter="3s", id="north", args=["north"], queue="spread")
@periodic(every="4s", jitter="3s", id="east", args=["east"], queue="spread")
@periodic(every="4s", jitter="3s", id="west", args=["west"], queue="spread")
def ask(station: str) -> str:
    """Ask a station, which has others to answer."""
    run = get_current_run()  # its tick is the nominal one, whenever it fires
    return f"{station} at {run.scheduled_for:%H:%M:%S}" if run and run.scheduled_for else station


@periodic("H/10 * * * * *", seconds=True, id="backup-orders", args=["orders"], queue="spread")
@periodic("H/10 * * * * *", seconds=True, id="backup-users", args=["users"], queue="spread")
def back_up(table: str) -> str:
    """Copy a table every ten seconds, each from another second on."""
    return f"copied {table}"
