"""Three schedules: `beat check examples/tasks.py -v` shows when they tick."""

from __future__ import annotations

from beat import periodic


@periodic("0 9 * * mon-fri", tz="America/New_York", queue="reports", kwargs={"kind": "daily"})
def report(kind: str) -> str:
    """Send the report to everybody who asked for it."""
    return f"sent the {kind} report"


@periodic(every="15m", priority="high", retry=3)
async def poll() -> int:
    """Look for new mail."""
    return 0


@periodic("15 4 * * sun", tz="Europe/Paris", job_timeout="2h")
def backup() -> None:
    """Copy the database."""
