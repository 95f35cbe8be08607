"""requires, not before another one has succeeded: `beat dev examples/policies/requires.py`.

`collect` succeeds every other time. `summary` ticks as often, and is skipped when there is nothing new; `digest` is
content with a success within the last minute. `beat history summary` names what was missing.
"""

from __future__ import annotations

from beat import Requires, get_current_run, periodic


@periodic(every="2s", queue="etl")
def collect() -> str:
    """Fetch what is new, if the others have sent it."""
    run = get_current_run()
    if run and run.scheduled_for and run.scheduled_for.second % 4:
        raise RuntimeError("the others have sent nothing")
    return "collected"


@periodic("1/2 * * * * *", seconds=True, requires="collect", queue="etl")
def summary() -> str:
    """Sum up what was collected since the last tick."""
    return "summed up"


@periodic(every="3s", requires=Requires("collect", within="1m"), queue="etl")
def digest() -> str:
    """Send what there is."""
    return "sent"
