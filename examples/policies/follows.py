"""follows, as soon as another one has succeeded: `beat dev examples/policies/follows.py`.

`load` runs after every success of `extract`, exactly once, and `publish` after every success of `load`; neither has
times of its own. A run that fails is followed by nothing.
"""

from __future__ import annotations

from beat import get_current_run, periodic


@periodic(every="2s", queue="chain")
def extract() -> str:
    """Fetch what is new: every third time the others do not answer."""
    run = get_current_run()
    if run and run.scheduled_for and run.scheduled_for.second % 6 == 0:
        raise RuntimeError("the others do not answer")
    return "extracted"


@periodic(follows="extract", queue="chain")
def load() -> str:
    """Store it."""
    run = get_current_run()
    return f"loaded after {run.after}" if run else "loaded"


@periodic(follows="load", overlap="skip", queue="chain")
def publish() -> str:
    """Show it to everybody."""
    return "published"
