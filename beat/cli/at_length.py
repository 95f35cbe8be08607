"""A run at length: its facts, and all that is known of its error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.cli import output
from beat.words import telling

if TYPE_CHECKING:
    from beat.history import Fired


def show(run: Fired) -> None:
    """Prints it."""
    output.table(["job", run.job_id], telling.details(run))
    if run.advice:
        output.echo()
        output.say(output.printable(str(run.advice)))
    if run.error and run.error.traceback:
        output.echo()
        output.echo(output.printable(run.error.traceback.rstrip("\n")))
