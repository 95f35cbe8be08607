"""From when, until when, how often, and not on these days: `beat dev examples/policies/bounds.py`.

After ten seconds `beat show reminder` and `beat show sale` say that they have finished, `beat history office` why it
has not run.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from beat import periodic

OPENS = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=4)
"""To be seen within ten seconds. In your code write the date: a definition should be the same in every process."""


def is_day_off(day: date) -> bool:
    """Every day, in this office."""
    return isinstance(day, date)


@periodic(every="1s", max_runs=3, queue="bounded")
def reminder() -> str:
    """Remind three times, and never again."""
    return "do not forget"


@periodic(every="1s", start=OPENS, end=OPENS + timedelta(seconds=3), queue="bounded")
def sale() -> str:
    """Sell from the opening on until the end."""
    return "sold"


@periodic(every="2s", exclude=["2026-12-24..2027-01-01", is_day_off], queue="bounded")
def office() -> str:
    """Work, but not on holidays, nor on days that a function knows."""
    return "worked"
