"""Schedules of all kinds, for the browser's tests and for screenshots: imported by real beats and workers alone."""

from __future__ import annotations

import datetime as dt
import time

import beat
from beat import periodic


@periodic(every="5s")
def cache_warm() -> str:
    """Quick, and always well."""
    time.sleep(0.05)
    return "warm"


@periodic(every="10s", description="Takes its time", kwargs={"copies": 2, "api_token": "hunter2"})
def report(copies: int, api_token: str) -> dict[str, object]:  # noqa: ARG001 (a secret that nobody may see)
    """Says how it went."""
    time.sleep(0.4)
    return beat.Report(success=True, message=f"{copies} copies sent", details={"copies": copies})


@periodic(every="15s")
def fragile() -> None:
    """Never well."""
    raise ValueError("<script>alert('no')</script> the upstream said 503")


@periodic(every="20s", overlap="skip", job_timeout=60)
def slow_import() -> None:
    """Takes longer than there is between its ticks."""
    time.sleep(30)


@periodic("0 9 * * mon-fri", tz="America/New_York", queue="slow", description="Every working day in New York")
def billing() -> None:
    """Rarely."""


@periodic("30 2 * * *", tz="Europe/Berlin", misfire="all", jitter="5m")
def nightly_backup() -> None:
    """At an hour that one day of the year does not have."""


@periodic("0 0 1 1 *", end=dt.datetime(2030, 1, 1, tzinfo=dt.UTC))
def new_year() -> None:
    """Once a year, for a while."""


@periodic("0 4 1 1 *", queue="exports", kwargs={"seconds": 3, "api_token": "hunter2"})
def export(seconds: float, api_token: str) -> dict[str, object]:  # noqa: ARG001 (a secret that nobody may see)
    """Only when somebody asks for it, and long enough to be watched."""
    time.sleep(seconds)
    return beat.Report(success=True, message="42 rows written", details={"rows": 42})
