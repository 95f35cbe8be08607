"""The schedules of a shop, for pictures: imported by the beat and the worker of the stage alone."""

from __future__ import annotations

import time

import beat
from beat import periodic


@periodic(every="10m", description="Keeps the front page quick")
def cache_warm() -> None:
    time.sleep(0.3)


@periodic(every="15m", queue="mail", kwargs={"batch": 200, "smtp_password": "hunter2"})
def invoice_emails(batch: int, smtp_password: str) -> dict[str, object]:  # noqa: ARG001 (nobody may see it)
    time.sleep(2)
    return beat.Report(success=True, message=f"{batch} invoices sent", details={"sent": batch, "bounced": 3})


@periodic(every="20m", overlap="skip", description="Stock from the three warehouses")
def inventory_sync() -> None:
    time.sleep(6)


@periodic("5 * * * *", retry=2, description="Rates of the central bank")
def exchange_rates() -> None:
    raise ConnectionError("rates.example.com: 503 Service Unavailable")


@periodic("0 */3 * * *", overlap="wait", job_timeout="1h")
def search_reindex() -> None:
    time.sleep(9)


@periodic("30 2 * * *", tz="Europe/Berlin", misfire="all", job_timeout="2h")
def nightly_backup() -> None:
    time.sleep(5)


@periodic(follows="nightly_backup")
def verify_backup() -> None:
    time.sleep(1)


@periodic("0 9 * * mon-fri", tz="America/New_York", jitter="5m", description="For the managers of each region")
def sales_report() -> None:
    time.sleep(3)


@periodic("0 4 * * *", exclude=["2026-12-25"])
def session_cleanup() -> None:
    time.sleep(1)


@periodic("H * * * *", queue="mail")
def newsletter() -> None:
    time.sleep(1)


@periodic("0 0 1 * *", tz="Europe/Berlin")
def month_end_closing() -> None:
    time.sleep(20)
