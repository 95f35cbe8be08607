"""A group, room that schedules share: `beat dev examples/policies/group.py`.

Four reports tick every four seconds and take one and a half: two of them run at a time, and the others wait for their
turn, the oldest tick first. An alert that finds its group full is skipped. From `redis-cli HSET beat:groups reports
"wait 4 1000"` on, four run at once.
"""

from __future__ import annotations

import time

import beat
from beat import periodic

beat.group("reports", max_running=2)
beat.group("alerts", max_running=1, when_full="skip")


@periodic(every="4s", group="reports", id="report-north", args=["north"], queue="reports")
@periodic(every="4s", group="reports", id="report-east", args=["east"], queue="reports")
@periodic(every="4s", group="reports", id="report-south", args=["south"], queue="reports")
@periodic(every="4s", group="reports", id="report-west", args=["west"], queue="reports")
def report(region: str) -> str:
    """Ask the database for a while, which has others to answer."""
    time.sleep(1.5)
    return f"reported {region}"


@periodic(every="1s", group="alerts", id="alert-disk", args=["disk"], queue="alerts")
@periodic(every="1s", group="alerts", id="alert-load", args=["load"], queue="alerts")
def alert(about: str) -> str:
    """Look for two seconds whether somebody is to be called: while one looks, no other need."""
    time.sleep(2)
    return f"all is well with {about}"
