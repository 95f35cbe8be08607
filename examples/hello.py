"""The first five minutes: `beat dev examples/hello.py`. Change a line while it runs, and see.

beat puts a job into a queue at every tick; an RQ worker takes it out and calls the function.
"""

from __future__ import annotations

import random

from beat import get_current_run, periodic


@periodic(every="2s")
def hello() -> None:
    """Say hello, and for which tick."""
    run = get_current_run()  # None when the function is simply called: hello()
    tick = f"{run.scheduled_for:%H:%M:%S} UTC" if run and run.scheduled_for else "nobody's clock"
    print(f"hello at {tick}")


@periodic("* * * * *", tz="Asia/Tokyo", priority="high")
def minute() -> None:
    """Strike every minute by the clocks of Tokyo; a high priority is worked on first."""
    print("a new minute in Tokyo")


@periodic(every="15s", retry=3)
def moody() -> None:
    """Fail now and then: RQ shows the error and tries again, at most three times."""
    if random.choice([True, False, False]):
        raise RuntimeError("not in the mood, try me again")
    print("in the mood")
